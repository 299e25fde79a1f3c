//! Clients of a metrics endpoint, good and bad, all on loopback and bounded in
//! number.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that scrape.
const SCRAPERS: u32 = 4;
/// Connections that each kind of bad client holds at most.
const HELD_MAX: usize = 64;
/// A bad client does something so often.
const PAUSE: Duration = Duration::from_millis(5);
/// A client waits for an answer no longer.
const PATIENCE: Duration = Duration::from_secs(30);

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// What the good clients have seen.
#[derive(Debug, Default)]
pub(crate) struct StormResult {
    /// Whole answers.
    pub(crate) scrapes: u32,
    /// Anything else.
    pub(crate) failures: u32,
    /// The longest time that a scrape took.
    pub(crate) longest: Duration,
    /// Connections that bad clients made.
    pub(crate) bad: u32,
}

/// Scrapes `count` times, `per_second` of them in a second if the endpoint is
/// fast enough, while other clients send nothing, half a request, garbage, or
/// read an answer byte by byte.
pub(crate) fn storm(address: SocketAddr, count: u32, per_second: u32) -> StormResult {
    let over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let bad = [silent, half, garbage, slow]
            .map(|client| scope.spawn(move || until(over, || client(address))));
        let gap = Duration::from_secs(1) * SCRAPERS / per_second.max(1);
        let good: Vec<_> = (0..SCRAPERS)
            .map(|_| scope.spawn(move || scraper(address, count / SCRAPERS, gap)))
            .collect();
        let mut seen = StormResult::default();
        for scraper in good {
            let Ok(one) = scraper.join() else { continue };
            seen.scrapes += one.scrapes;
            seen.failures += one.failures;
            seen.longest = seen.longest.max(one.longest);
        }
        over.store(true, Ordering::Relaxed);
        seen.bad = bad.into_iter().filter_map(|client| client.join().ok()).sum();
        seen
    })
}

fn scraper(address: SocketAddr, count: u32, gap: Duration) -> StormResult {
    let (start, mut seen) = (Instant::now(), StormResult::default());
    for number in 0..count {
        thread::sleep((gap * number).saturating_sub(start.elapsed()));
        let begun = Instant::now();
        match scrape(address) {
            Ok(answer) if answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"# EOF\n") => {
                seen.scrapes += 1;
            }
            _ => seen.failures += 1,
        }
        seen.longest = seen.longest.max(begun.elapsed());
    }
    seen
}

fn scrape(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = connect(address)?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Makes bad clients until it is over; how many.
fn until(over: &AtomicBool, client: impl Fn() -> io::Result<TcpStream>) -> u32 {
    let (mut held, mut made) = (Vec::new(), 0);
    while !over.load(Ordering::Relaxed) {
        if held.len() == HELD_MAX {
            held.remove(0);
        }
        held.extend(client());
        made += 1;
        thread::sleep(PAUSE);
    }
    made
}

/// Says nothing.
fn silent(address: SocketAddr) -> io::Result<TcpStream> {
    connect(address)
}

/// Stops in the middle.
fn half(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connect(address)?;
    stream.write_all(&REQUEST[..9])?;
    Ok(stream)
}

/// Sends more than a request may have, and no request.
fn garbage(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connect(address)?;
    let bytes: Vec<u8> =
        (0..8192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    stream.write_all(&bytes)?;
    Ok(stream)
}

/// Takes a few bytes of the answer, and no more.
fn slow(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connect(address)?;
    stream.write_all(REQUEST)?;
    stream.read_exact(&mut [0; 16])?;
    Ok(stream)
}
