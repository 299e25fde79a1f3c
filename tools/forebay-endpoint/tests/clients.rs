//! Clients of all kinds, and a host program that they do not hurt.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay_endpoint::{Endpoint, EndpointConfig};

fn start(
    connections_max: usize,
    timeout: Duration,
    text: impl Fn() -> String + Send + 'static,
) -> Endpoint {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    Endpoint::start(&EndpointConfig { address, connections_max, timeout }, text).unwrap()
}

fn patient(text: &'static str) -> Endpoint {
    start(4, Duration::from_secs(600), move || text.into())
}

fn connect(endpoint: &Endpoint) -> TcpStream {
    let stream = TcpStream::connect(endpoint.address()).unwrap();
    // rather a failure than a test that hangs
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn ask(endpoint: &Endpoint, request: &[u8]) -> String {
    let mut stream = connect(endpoint);
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn scrape(endpoint: &Endpoint) -> String {
    ask(endpoint, b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[test]
fn a_scrape_gets_the_text() {
    let endpoint = patient("some text");
    let answer = scrape(&endpoint);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\ncontent-length: 9\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nsome text"), "{answer}");
}

#[test]
fn a_timeout_that_no_clock_reaches_is_none() {
    let endpoint = start(4, Duration::MAX, || "some text".into());
    assert!(scrape(&endpoint).ends_with("some text"));
}

#[test]
fn completed_waiters_lose_their_place_before_slow_ones() {
    let endpoint = start(2, Duration::from_secs(600), || "text".into());
    let mut slow = connect(&endpoint);
    let mut answered = connect(&endpoint);
    answered.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    answered.read_to_end(&mut Vec::new()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(scrape(&endpoint).ends_with("text"));
    slow.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("text"), "{answer}");
}

#[test]
fn ten_thousand_scrapes() {
    let counter = Arc::new(AtomicUsize::new(0));
    let scrapes = Arc::clone(&counter);
    let endpoint = start(4, Duration::from_secs(600), move || {
        scrapes.fetch_add(1, Ordering::Relaxed);
        "x".repeat(20_000)
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2_500 {
                    assert!(scrape(&endpoint).ends_with('x'));
                }
            });
        }
    });
    let made = counter.load(Ordering::Relaxed);
    assert!((1..10_000).contains(&made), "{made} texts for 10000 scrapes within seconds");
}

#[test]
fn scrapes_within_a_quarter_of_a_second_get_one_text() {
    let counter = AtomicUsize::new(0);
    let endpoint = start(4, Duration::from_secs(600), move || {
        format!("text {}", counter.fetch_add(1, Ordering::Relaxed))
    });
    let texts: Vec<_> = (0..100)
        .map(|_| {
            let begun = Instant::now();
            let answer = scrape(&endpoint);
            (begun, answer[answer.find("text ").unwrap() + 5..].parse::<usize>().unwrap())
        })
        .collect();
    let elapsed = texts[0].0.elapsed();
    assert!((texts[99].1 as u128) <= elapsed.as_millis() / 250, "{elapsed:?}: {texts:?}");
    std::thread::sleep(Duration::from_millis(300));
    assert!(scrape(&endpoint).ends_with(&format!("text {}", texts[99].1 + 1)), "not for ever");
}

/// What a panic carries can panic when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn a_text_that_panics_is_an_error_and_the_next_one_is_served() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let endpoint =
        start(4, Duration::from_secs(600), move || match count.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("a panic of this test"),
            1 => std::panic::panic_any(Bomb),
            _ => "text".into(),
        });
    for (texts, expected) in (1..).zip(["HTTP/1.1 500", "HTTP/1.1 500", "HTTP/1.1 200"]) {
        // A text that took long to make is given out for longer.
        let mut answer = scrape(&endpoint);
        while made.load(Ordering::Relaxed) < texts {
            std::thread::sleep(Duration::from_millis(50));
            answer = scrape(&endpoint);
        }
        assert!(answer.starts_with(expected), "{answer}");
    }
}

/// 64 clients at a time, for 32 places, none of which wants its answer.
#[test]
fn clients_that_do_not_take_their_answer_make_way() {
    let patience = Duration::from_secs(600);
    let endpoint = start(32, patience, || "x".repeat(8 << 20));
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let mut stream = connect(&endpoint);
                    let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
                    // a little now and then, until it is cut off
                    let mut some = [0; 64];
                    while !over.load(Ordering::Relaxed)
                        && stream.read(&mut some).is_ok_and(|len| len > 0)
                    {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
            });
        }
        let scrapes: Vec<_> = (0..4).map(|_| scrape(&endpoint)).collect();
        over.store(true, Ordering::Relaxed);
        for answer in scrapes {
            assert!(answer.starts_with("HTTP/1.1 200") && answer.len() > 8 << 20);
        }
    });
}

#[test]
fn garbage_is_answered_or_cut_off() {
    let endpoint = patient("text");
    assert!(ask(&endpoint, b"\x00\xff\xfe\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(ask(&endpoint, &[b'a'; 6000]).starts_with("HTTP/1.1 431"));
    assert!(ask(&endpoint, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(scrape(&endpoint).ends_with("text"));
}

#[test]
fn a_client_that_sends_without_end_is_cut_off() {
    let endpoint = patient("text");
    let mut stream = connect(&endpoint);
    let sent = (0..100_000).take_while(|_| stream.write_all(&[b'a'; 1024]).is_ok()).count();
    assert!(sent < 100_000);
    assert!(scrape(&endpoint).ends_with("text"));
}

#[test]
fn half_open_connections_make_way_after_their_time() {
    let endpoint = start(4, Duration::from_millis(200), || "text".into());
    let silent: Vec<_> = (0..64).map(|_| connect(&endpoint)).collect();
    let half: Vec<_> = (0..64)
        .map(|_| {
            let mut stream = connect(&endpoint);
            let _ = stream.write_all(b"GET /metr");
            stream
        })
        .collect();
    // 128 connections in fours, each for 200 ms; then it is our turn
    assert!(scrape(&endpoint).ends_with("text"));
    drop((silent, half));
}

#[test]
fn silent_connections_make_way_for_whoever_has_a_request() {
    let endpoint = patient("some text");
    let silent: Vec<_> = (0..64).map(|_| connect(&endpoint)).collect();
    for _ in 0..10 {
        assert!(scrape(&endpoint).ends_with("some text"));
    }
    drop(silent);
}

#[test]
fn a_client_that_does_not_read_does_not_stop_others() {
    let endpoint = start(4, Duration::from_secs(600), || "x".repeat(16 << 20));
    let mut slow = connect(&endpoint);
    slow.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    assert!(ask(&endpoint, b"GET / HTTP/1.1\r\n\r\n").contains("/metrics"));
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.len() > 16 << 20);
}

#[test]
fn a_client_that_leaves_in_the_middle_is_forgotten() {
    let endpoint = start(1, Duration::from_secs(600), || "x".repeat(16 << 20));
    for _ in 0..8 {
        let mut stream = connect(&endpoint);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut some = [0; 1000];
        stream.read_exact(&mut some).unwrap();
        let _ = stream.shutdown(Shutdown::Both);
    }
    assert!(ask(&endpoint, b"GET / HTTP/1.1\r\n\r\n").contains("200 OK"));
}

#[test]
fn dropping_the_endpoint_frees_its_port() {
    let endpoint = patient("text");
    let waiting = connect(&endpoint);
    let address = endpoint.address();
    drop(endpoint);
    drop(waiting);
    let config = EndpointConfig { address, ..EndpointConfig::default() };
    // the port may be in TIME_WAIT for a listener without SO_REUSEADDR; std sets it
    Endpoint::start(&config, || "again".into()).unwrap();
}

#[test]
fn an_address_in_use_is_named() {
    let endpoint = patient("text");
    let address = endpoint.address();
    let config = EndpointConfig { address, ..EndpointConfig::default() };
    let error = Endpoint::start(&config, String::new).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn slow_readers_of_an_old_text_are_disconnected() {
    const LEN: usize = 32 << 20;
    let counter = AtomicUsize::new(0);
    let endpoint = start(8, Duration::from_secs(600), move || {
        let number = counter.fetch_add(1, Ordering::Relaxed).to_string();
        number.repeat(LEN / number.len())
    });
    let ask_for_text = || {
        let mut stream = connect(&endpoint);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        stream
    };
    // more than sockets hold, of a text that others soon replace
    let mut slow = ask_for_text();
    slow.read_exact(&mut [0; 1024]).unwrap();
    let begin = Instant::now();
    let mut texts = Vec::new();
    while texts.len() < 4 && begin.elapsed() < Duration::from_secs(300) {
        let answer = scrape(&endpoint);
        assert!(answer.len() > LEN / 2, "{} bytes", answer.len());
        let last = answer[answer.len() - 3..].to_owned();
        if texts.last() != Some(&last) {
            texts.push(last);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(texts.len(), 4, "the next texts are made all the same");
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.len() < LEN / 2, "{} bytes of a text that is gone", rest.len());
}

#[test]
fn signals_of_the_process_are_not_taken_by_the_thread() {
    let _endpoint = patient("text");
    let mut masks = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        // Threads of other tests end meanwhile.
        let status = std::fs::read_to_string(thread.unwrap().path().join("status"));
        let status = status.unwrap_or_default();
        let field = |key| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        if field("Name:") == Some("forebay-metrics") {
            masks.push(u64::from_str_radix(field("SigBlk:").unwrap(), 16).unwrap());
        }
    }
    let blocks = |signal: i32| masks.iter().all(|mask| mask & (1 << (signal - 1)) != 0);
    assert!(!masks.is_empty() && blocks(libc::SIGINT) && blocks(libc::SIGTERM), "{masks:x?}");
}

#[test]
fn a_child_that_drops_an_endpoint_leaves_the_parents() {
    let mut endpoint = Some(patient("text"));
    let address = endpoint.as_ref().unwrap().address();
    for _ in 0..3 {
        // SAFETY: the child drops the endpoint and ends at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(endpoint.take());
            // SAFETY: it ends the child without what its parent does at its end.
            unsafe { libc::_exit(0) }
        }
        let mut status = 1;
        // SAFETY: it waits for a child of this process, into a number of its own.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}
