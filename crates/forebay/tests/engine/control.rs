//! Depth, sleep, wake-ups and cancellation.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use forebay::DirectFile;
use forebay::engine::{Backend, BackendChoice, Engine, EngineConfig, Operation, PushError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::bench::{BLOCK, Bench, engine, filled, next};

tests_of! {
    IoUring io_uring, LinuxAio linux_aio, Threads threads, Null null;
    the_depth_is_a_limit,
    an_idle_wait_ends_at_its_timeout,
    a_watched_descriptor_tells_of_wake_ups,
    a_watched_descriptor_tells_of_completions,
    a_wake_up_before_the_sleep_ends_it,
    every_wake_up_from_another_thread_arrives,
    a_waker_outlives_its_engine,
    a_completion_waits_to_be_popped,
    many_operations_pass_through_one_slot,
    popping_ends_however_fast_pushes_complete,
}

fn null() -> DirectFile {
    DirectFile::options().read(true).write(true).open("/dev/null").unwrap()
}

fn the_depth_is_a_limit(backend: BackendChoice) {
    let mut engine = engine(backend, 3);
    for token in 0..3 {
        engine.push(token, Operation::write(null(), token, filled(BLOCK, 0))).unwrap();
    }
    let fourth = Operation::write(null(), 3, filled(BLOCK, 0));
    let (error, fourth) = engine.push(3, fourth).unwrap_err();
    assert_eq!(error, PushError::Full);
    assert!(matches!(fourth, Operation::Write { offset: 3, .. }));
    assert_eq!(engine.in_flight(), 3);

    let _first = next(&mut engine);
    assert_eq!(engine.in_flight(), 2);
    engine.push(3, fourth).unwrap();
    let mut tokens: Vec<_> = (0..3).map(|_| next(&mut engine).token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens[2], 3);
    assert_eq!(engine.in_flight(), 0);
    assert!(engine.pop().is_none());
}

fn an_idle_wait_ends_at_its_timeout(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(1)] {
        engine.submit_and_wait(Some(timeout)).unwrap();
        assert!(engine.pop().is_none());
    }
}

/// Whether the descriptor is readable, or becomes so.
fn is_readable(engine: &Engine, timeout: Duration) -> bool {
    let mut fds = [PollFd::new(engine, PollFlags::IN)];
    let timeout = timeout.try_into().unwrap();
    rustix::event::poll(&mut fds, Some(&timeout)).unwrap() == 1
}

fn a_watched_descriptor_tells_of_wake_ups(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    let waker = engine.waker();
    for _ in 0..3 {
        // What the last round left is taken.
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        while engine.pop().is_some() {}
        engine.watch();
        assert!(!is_readable(&engine, Duration::ZERO));
        waker.wake();
        assert!(is_readable(&engine, Duration::from_secs(60)));
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        while engine.pop().is_some() {}
        waker.wake();
        engine.watch();
        assert!(is_readable(&engine, Duration::ZERO), "a wake-up before the watch");
    }
}

fn a_watched_descriptor_tells_of_completions(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    for token in 0..100 {
        let write = Operation::write(file.clone(), token * BLOCK as u64, filled(BLOCK, 0));
        bench.engine.push(token, write).unwrap();
        let mut completed = None;
        while completed.is_none() {
            bench.engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
            completed = bench.engine.pop();
            bench.engine.watch();
            let patience = Duration::from_secs(60);
            assert!(completed.is_some() || is_readable(&bench.engine, patience));
        }
    }
}

fn a_wake_up_before_the_sleep_ends_it(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    let waker = engine.waker();
    for timeout in [None, Some(Duration::MAX)] {
        waker.wake();
        waker.wake();
        engine.submit_and_wait(timeout).unwrap();
        assert!(engine.pop().is_none());
    }
}

fn every_wake_up_from_another_thread_arrives(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    let waker = engine.waker();
    let (ask, asked) = channel();
    let (answer, answered) = channel();
    let other = thread::spawn(move || {
        for number in asked {
            answer.send(number).unwrap();
            waker.wake();
        }
    });
    for number in 0..2000 {
        ask.send(number).unwrap();
        // Sleeping for ever is what a lost wake-up would look like.
        while answered.try_recv() != Ok(number) {
            engine.submit_and_wait(None).unwrap();
            assert!(engine.pop().is_none());
        }
    }
    drop(ask);
    other.join().unwrap();
}

fn a_waker_outlives_its_engine(backend: BackendChoice) {
    let waker = engine(backend, 1).waker();
    waker.wake();
    thread::spawn(move || waker.clone().wake()).join().unwrap();
}

fn a_completion_waits_to_be_popped(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    engine.push(7, Operation::write(null(), 0, filled(BLOCK, 0))).unwrap();
    assert!(engine.pop().is_none(), "nothing completes before it is submitted");
    engine.submit_and_wait(None).unwrap();
    while engine.in_flight() > 0 {
        // Does not sleep while there is something to pop.
        engine.submit_and_wait(None).unwrap();
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        if let Some(completed) = engine.pop() {
            assert_eq!((completed.token, completed.result.unwrap()), (7, BLOCK));
        }
    }
}

fn many_operations_pass_through_one_slot(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    let mut operation = Operation::write(null(), 0, filled(BLOCK, 0));
    for token in 0..1000 {
        engine.push(token, operation).unwrap();
        let completed = next(&mut engine);
        assert_eq!((completed.token, completed.result.unwrap()), (token, BLOCK));
        operation = completed.operation;
    }
}

fn popping_ends_however_fast_pushes_complete(backend: BackendChoice) {
    const DEPTH: u64 = 20;
    let mut engine = engine(backend, DEPTH as u32);
    for token in 0..DEPTH {
        engine.push(token, Operation::write(null(), 0, filled(BLOCK, 0))).unwrap();
    }
    for _ in 0..100 {
        engine.submit_and_wait(None).unwrap();
        let mut popped = 0;
        while let Some(completed) = engine.pop() {
            popped += 1;
            engine.push(completed.token, completed.operation).unwrap();
        }
        assert!(popped <= DEPTH);
    }
}

/// A read that completes only when something is written to the other end.
fn endless_read() -> (DirectFile, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    (DirectFile::from_fd(reader).unwrap(), writer)
}

#[test]
fn io_uring_cancels_what_the_kernel_has() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let mut engine = engine(BackendChoice::IoUring, 2);
    let (pipe, _writer) = endless_read();
    engine.push(1, Operation::read(pipe.clone(), 0, filled(BLOCK, 0))).unwrap();
    engine.push(2, Operation::read(pipe, 0, filled(BLOCK, 0))).unwrap();
    engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert!(engine.pop().is_none());
    assert!(!engine.cancel(3));
    assert!(engine.cancel(2));
    let completed = next(&mut engine);
    assert_eq!(completed.token, 2);
    assert_eq!(completed.result.unwrap_err().raw_os_error(), Some(Errno::CANCELED.raw_os_error()));
    assert_eq!(engine.in_flight(), 1);
    // More often than there is room for cancellations.
    for _ in 0..10 {
        engine.cancel(1);
    }
    assert_eq!(next(&mut engine).token, 1);
    assert!(!engine.cancel(1));
}

#[test]
fn a_late_cancellation_spares_the_next_operation() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let mut engine = engine(BackendChoice::IoUring, 1);
    let (pipe, writer) = endless_read();
    engine.push(1, Operation::write(null(), 0, filled(BLOCK, 0))).unwrap();
    engine.submit_and_wait(None).unwrap();
    assert!(engine.cancel(1));
    assert_eq!(next(&mut engine).token, 1);
    engine.push(2, Operation::read(pipe, 0, filled(BLOCK, 0))).unwrap();
    engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert!(engine.pop().is_none());
    rustix::io::write(&writer, b"data").unwrap();
    assert_eq!(next(&mut engine).result.unwrap(), 4);
}

#[test]
fn threads_cancel_what_has_not_begun() {
    let mut bench = Bench::new(BackendChoice::Threads);
    let path = bench.path("kept");
    std::fs::write(&path, "").unwrap();
    bench.engine.push(1, Operation::unlink(&path, 0).unwrap()).unwrap();
    assert!(bench.engine.cancel(1));
    assert!(!bench.engine.cancel(1));
    let completed = next(&mut bench.engine);
    assert_eq!(completed.result.unwrap_err().raw_os_error(), Some(Errno::CANCELED.raw_os_error()));
    assert!(path.exists());
}

#[test]
fn settings_out_of_range_are_errors() {
    let config = |depth_max, threads_max| EngineConfig {
        backend: BackendChoice::Null,
        depth_max,
        threads_max,
        ..EngineConfig::default()
    };
    for (depth_max, threads_max) in [(0, 1), (forebay::engine::DEPTH_MAX + 1, 1), (1, 0)] {
        let error = Engine::new(&config(depth_max, threads_max)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[test]
fn the_largest_depth_is_possible() {
    for backend in [BackendChoice::Auto, BackendChoice::Threads, BackendChoice::Null] {
        let engine = engine(backend, forebay::engine::DEPTH_MAX);
        assert!(engine.backend() == Backend::IoUring || backend != BackendChoice::Auto);
    }
}
