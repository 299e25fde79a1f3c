//! Engines dropped with operations in flight.

use std::time::Duration;

use forebay::DirectFile;
use forebay::engine::{BackendChoice, Engine, EngineConfig, Operation};

use crate::bench::{BLOCK, Bench, engine, filled};

tests_of! {
    IoUring io_uring, LinuxAio linux_aio, Threads threads;
    operations_in_flight_end_before_their_memory_goes,
    an_impatient_drop_is_sound,
    a_drop_of_endless_patience_ends_with_the_operations,
    operations_never_submitted_are_dropped,
}

/// Fills an engine with reads and writes of a file, and drops it.
fn drop_busy(backend: BackendChoice, shutdown_timeout: Duration, submit: bool) {
    const DEPTH: u32 = 256;
    const LEN: usize = 16 * BLOCK;
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(LEN, 1));
    let config = EngineConfig { backend, depth_max: DEPTH, shutdown_timeout, ..Default::default() };
    let mut engine = Engine::new(&config).unwrap();
    for token in 0..u64::from(DEPTH) {
        let operation = match token % 4 {
            0 => Operation::write(file.clone(), token * LEN as u64, filled(LEN, 2)),
            1 => Operation::read(file.clone(), 0, filled(LEN, 3)),
            // The caller's own; where it is not aligned, an error is as good.
            2 => Operation::read(file.clone(), 0, vec![3; LEN]),
            _ => Operation::ReadVectored {
                file: file.clone(),
                offset: 0,
                buffers: vec![filled(BLOCK, 4), filled(BLOCK, 5)],
            },
        };
        engine.push(token, operation).unwrap();
    }
    if submit {
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
    }
    drop(engine);
    // Memory freed too early would be in use again now.
    let canaries: Vec<_> = (0..DEPTH).map(|_| filled(LEN, 0x5a)).collect();
    bench.run(Operation::SyncAll { file }).result.unwrap();
    assert!(canaries.iter().all(|canary| canary.iter().all(|&byte| byte == 0x5a)));
}

fn operations_in_flight_end_before_their_memory_goes(backend: BackendChoice) {
    drop_busy(backend, Duration::from_secs(60), true);
}

fn an_impatient_drop_is_sound(backend: BackendChoice) {
    drop_busy(backend, Duration::ZERO, true);
}

fn a_drop_of_endless_patience_ends_with_the_operations(backend: BackendChoice) {
    drop_busy(backend, Duration::MAX, true);
}

fn operations_never_submitted_are_dropped(backend: BackendChoice) {
    drop_busy(backend, Duration::from_secs(60), false);
}

#[test]
fn a_read_without_end_does_not_hold_the_drop() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let (reader, writer) = std::io::pipe().unwrap();
    let mut engine = engine(BackendChoice::IoUring, 8);
    let pipe = DirectFile::from_fd(reader).unwrap();
    for token in 0..8 {
        engine.push(token, Operation::read(pipe.clone(), 0, filled(BLOCK, 0))).unwrap();
    }
    engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
    drop(engine);
    // The reads are gone: what is written now waits for another reader.
    rustix::io::write(&writer, b"data").unwrap();
    let mut bytes = [0; 8];
    assert_eq!(rustix::io::read(&pipe, &mut bytes).unwrap(), 4);
}
