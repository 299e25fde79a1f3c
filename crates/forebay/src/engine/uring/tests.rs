use std::sync::Mutex;

use super::*;
use crate::{AlignedBuf, DirectFile};

/// Held by a test while no operation of the fallback pool may end.
static GATE: Mutex<()> = Mutex::new(());

fn stuck(_: &mut Operation) -> io::Result<usize> {
    let _open = GATE.lock();
    Ok(0)
}

fn next(uring: &mut Uring) -> Completion {
    loop {
        uring.submit_and_wait(Some(Duration::from_secs(60))).unwrap();
        if let Some(completed) = uring.pop() {
            return completed;
        }
    }
}

/// As on a kernel before 6.9.
#[test]
fn a_truncation_that_blocks_does_not_hold_what_the_ring_does() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1), None) else { return };
    let descriptor = Arc::clone(&uring.descriptor);
    uring.fallback_pool =
        Some(Threads::with_descriptor(descriptor, 1, Duration::from_secs(1), stuck));
    let gate = GATE.lock().unwrap();
    let file = DirectFile::options().read(true).open("/dev/zero").unwrap();
    uring.push(1, Operation::Truncate { file: file.clone(), len: 7 }).unwrap();
    uring.push(2, Operation::Truncate { file: file.clone(), len: 7 }).unwrap();
    let buffer = AlignedBuf::new(4096, 4096).unwrap();
    uring.push(3, Operation::read(file, 0, buffer)).unwrap();
    assert_eq!(next(&mut uring).token, 3);
    assert!(uring.cancel(2), "it waits for the first");
    assert_eq!(next(&mut uring).token, 2);
    uring.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert!(uring.pop().is_none());
    drop(gate);
    assert_eq!(next(&mut uring).token, 1);
}

fn write(file: DirectFile) -> Operation {
    Operation::write(file, 0, AlignedBuf::new(4096, 4096).unwrap())
}

/// Half of an attempt: the kernel gets no request, and the test supplies its answer.
fn submitted(uring: &mut Uring) -> SlotId {
    let file = DirectFile::options().write(true).open("/dev/null").unwrap();
    uring.slots.insert(1, write(file)).unwrap()
}

#[test]
fn blocking_operations_are_counted_and_done_by_a_kernel_thread() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1), None) else { return };
    let id = submitted(&mut uring);
    assert!(uring.end(id, -Errno::AGAIN.raw_os_error()).is_none(), "it goes on");
    assert_eq!(uring.retries, Retries { reads: 0, writes: 1 });
    assert_eq!(next(&mut uring).result.unwrap(), 4096);
    assert_eq!(uring.retries, Retries { reads: 0, writes: 1 });
}

#[test]
fn a_refusal_of_the_last_attempt_is_the_callers() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1), None) else { return };
    let id = submitted(&mut uring);
    uring.slots.get_mut(id).unwrap().attempt = Attempt::InThread;
    let ended = uring.end(id, -Errno::AGAIN.raw_os_error()).unwrap();
    assert_eq!(Errno::from_io_error(&ended.result.unwrap_err()), Some(Errno::AGAIN));
    assert_eq!(uring.retries, Retries::default());
}

#[test]
fn an_operation_cancelled_between_two_attempts_ends() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1), None) else { return };
    let id = submitted(&mut uring);
    assert!(uring.cancel(1));
    let ended = uring.end(id, -Errno::AGAIN.raw_os_error()).unwrap();
    assert_eq!(Errno::from_io_error(&ended.result.unwrap_err()), Some(Errno::CANCELED));
    assert_eq!((uring.retries, uring.slots.occupied()), (Retries::default(), 0));
}

/// `/dev/full` does not support `RWF_NOWAIT`.
#[test]
fn a_file_without_attempts_is_tried_once_and_not_counted() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1), None) else { return };
    let file = DirectFile::options().write(true).open("/dev/full").unwrap();
    for _ in 0..2 {
        uring.push(1, write(file.clone())).unwrap();
        let error = next(&mut uring).result.unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
        assert!(!file.may_not_block());
    }
    assert_eq!(uring.retries, Retries::default());
}

fn null() -> DirectFile {
    DirectFile::options().write(true).open("/dev/null").unwrap()
}

/// The number of system calls that submit this number of writes, which complete at once.
fn enters(uring: &mut Uring, writes: usize) -> usize {
    let before = uring.enters.get();
    for token in 0..writes as u64 {
        uring.push(token, write(null())).unwrap();
    }
    uring.submit_and_wait(Some(Duration::ZERO)).unwrap();
    let enters = uring.enters.get() - before;
    for _ in 0..writes {
        next(uring).result.unwrap();
    }
    enters
}

#[test]
fn the_kernel_is_entered_once_for_each_batch() {
    let Ok(mut uring) = Uring::new(64, Duration::from_secs(1), None) else { return };
    // This call finds out which attempts the file supports.
    enters(&mut uring, 1);
    for (writes, expected) in [(0, 0), (1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (32, 8), (63, 16)] {
        assert_eq!(enters(&mut uring, writes), expected, "{writes} writes");
    }
}

#[test]
fn a_sleep_hands_over_what_is_left_of_a_batch() {
    let Ok(mut uring) = Uring::new(64, Duration::from_secs(1), None) else { return };
    let (reader, writer) = io::pipe().unwrap();
    let pipe = DirectFile::from_fd(reader).unwrap();
    let before = uring.enters.get();
    for token in 0..2 {
        let buffer = AlignedBuf::new(4096, 4096).unwrap();
        uring.push(token, Operation::read(pipe.clone(), 0, buffer)).unwrap();
    }
    rustix::io::write(&writer, &[1; 4096]).unwrap();
    uring.submit_and_wait(None).unwrap();
    assert_eq!(uring.enters.get() - before, 1);
}

/// The kernel thread of the ring stays awake for the whole test.
#[test]
fn a_polled_ring_is_not_entered_for_what_it_takes() {
    let idle = Some(Duration::from_secs(3_600));
    let Ok(mut uring) = Uring::new(64, Duration::from_secs(1), idle) else { return };
    let before = uring.enters.get();
    for token in 0..32 {
        uring.push(token, write(null())).unwrap();
    }
    for _ in 0..32 {
        while uring.pop().is_none() {
            std::thread::yield_now();
            uring.submit_and_wait(Some(Duration::ZERO)).unwrap();
        }
    }
    assert_eq!(uring.enters.get() - before, 0);
}
