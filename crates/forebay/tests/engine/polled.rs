//! Rings whose entries are taken by a thread of the kernel (`SQPOLL`).

use std::io::ErrorKind;
use std::iter;
use std::thread;
use std::time::Duration;

use forebay::DirectFile;
use forebay::engine::{Backend, BackendChoice, Engine, EngineConfig, Operation};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::backends::skipped;
use crate::bench::{BLOCK, Bench, filled, next};

/// Sleeps at the first occasion.
fn polled(depth_max: u32) -> EngineConfig {
    let sqpoll = Some(Duration::ZERO);
    EngineConfig { backend: BackendChoice::IoUring, depth_max, sqpoll, ..EngineConfig::default() }
}

/// Says so where the kernel has none.
fn engine(depth_max: u32) -> Option<Engine> {
    Engine::new(&polled(depth_max)).map_err(skipped).ok()
}

#[test]
fn written_bytes_are_read_whether_the_thread_sleeps_or_not() {
    let Some(engine) = engine(32) else { return };
    let mut bench = Bench::with(engine);
    let file = bench.file();
    for round in 0..20 {
        bench.write(&file, 0, filled(BLOCK, round));
        if round % 4 == 0 {
            // longer than the thread of the kernel looks for entries
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(bench.read(&file, 0, BLOCK), [round; BLOCK]);
    }
    assert_eq!(bench.engine.backend(), Backend::IoUring);
}

#[test]
fn many_operations_and_cancellations_pass_through_a_short_queue() {
    for depth in [1, 3, 8] {
        let Some(mut engine) = engine(depth) else { return };
        let (reader, _writer) = std::io::pipe().unwrap();
        let pipe = DirectFile::from_fd(reader).unwrap();
        for _ in 0..200 {
            for token in 0..depth.into() {
                engine.push(token, Operation::read(pipe.clone(), 0, filled(BLOCK, 0))).unwrap();
            }
            let mut ended = Vec::new();
            for token in 0..depth.into() {
                // The thread of the kernel may not have come to earlier ones yet.
                while !engine.cancel(token) {
                    engine.submit_and_wait(Some(Duration::from_millis(1))).unwrap();
                    ended.extend(iter::from_fn(|| engine.pop()));
                }
            }
            ended.extend((ended.len()..depth as usize).map(|_| next(&mut engine)));
            for completion in ended {
                let error = completion.result.unwrap_err();
                assert_eq!(Errno::from_io_error(&error), Some(Errno::CANCELED));
            }
        }
    }
}

#[test]
fn wake_ups_from_another_thread_arrive_in_a_sleep_and_where_it_is_watched() {
    let Some(mut engine) = engine(8) else { return };
    for is_watched in [false, true] {
        for _ in 0..100 {
            if is_watched {
                engine.watch();
            }
            let waker = engine.waker();
            let thread = thread::spawn(move || waker.wake());
            if is_watched {
                rustix::event::poll(&mut [PollFd::new(&engine, PollFlags::IN)], None).unwrap();
                engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
            } else {
                engine.submit_and_wait(None).unwrap();
            }
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_watched_descriptor_tells_of_completions() {
    let Some(mut engine) = engine(8) else { return };
    let file = DirectFile::options().write(true).open("/dev/null").unwrap();
    for token in 0..100 {
        engine.push(token, Operation::write(file.clone(), 0, filled(BLOCK, 0))).unwrap();
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        let completed = loop {
            if let Some(completed) = engine.pop() {
                break completed;
            }
            engine.watch();
            rustix::event::poll(&mut [PollFd::new(&engine, PollFlags::IN)], None).unwrap();
            engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        };
        assert_eq!(completed.token, token);
    }
}

#[test]
fn a_drop_ends_what_hangs_and_is_sound_when_it_does_not_wait() {
    for shutdown_timeout in [Duration::from_secs(60), Duration::ZERO] {
        let config = EngineConfig { shutdown_timeout, ..polled(64) };
        let Some(mut engine) = Engine::new(&config).map_err(skipped).ok() else { return };
        let (reader, writer) = std::io::pipe().unwrap();
        let pipe = DirectFile::from_fd(reader).unwrap();
        for token in 0..64 {
            engine.push(token, Operation::read(pipe.clone(), 0, filled(BLOCK, 0))).unwrap();
        }
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        drop(engine);
        // Memory freed too early would be in use again now.
        let canaries: Vec<_> = (0..64).map(|_| filled(BLOCK, 0x5a)).collect();
        rustix::io::write(&writer, &[1; BLOCK]).unwrap();
        assert!(canaries.iter().all(|canary| canary.iter().all(|&byte| byte == 0x5a)));
    }
}

#[test]
fn another_backend_refuses_it() {
    for backend in [BackendChoice::LinuxAio, BackendChoice::Threads, BackendChoice::Null] {
        let error = Engine::new(&EngineConfig { backend, ..polled(8) }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("choose io_uring"), "{error}");
    }
}
