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
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1)) else { return };
    let descriptor = Arc::clone(uring.descriptor());
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

/// Half of an attempt: the kernel has not been asked, and what it says comes from the test.
fn asked(uring: &mut Uring) -> SlotId {
    let file = DirectFile::options().write(true).open("/dev/null").unwrap();
    uring.slots.insert(1, write(file)).unwrap()
}

#[test]
fn what_would_block_is_counted_and_done_by_a_thread_of_the_kernel() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1)) else { return };
    let id = asked(&mut uring);
    assert!(uring.end(id, -Errno::AGAIN.raw_os_error()).is_none(), "it goes on");
    assert_eq!(uring.retries(), Retries { reads: 0, writes: 1 });
    assert_eq!(next(&mut uring).result.unwrap(), 4096);
    assert_eq!(uring.retries(), Retries { reads: 0, writes: 1 });
}

#[test]
fn a_refusal_of_the_last_attempt_is_the_callers() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1)) else { return };
    let id = asked(&mut uring);
    uring.slots.get_mut(id).unwrap().attempt = Attempt::InThread;
    let ended = uring.end(id, -Errno::AGAIN.raw_os_error()).unwrap();
    assert_eq!(Errno::from_io_error(&ended.result.unwrap_err()), Some(Errno::AGAIN));
    assert_eq!(uring.retries(), Retries::default());
}

#[test]
fn what_was_cancelled_between_two_attempts_ends() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1)) else { return };
    let id = asked(&mut uring);
    assert!(uring.cancel(1));
    let ended = uring.end(id, -Errno::AGAIN.raw_os_error()).unwrap();
    assert_eq!(Errno::from_io_error(&ended.result.unwrap_err()), Some(Errno::CANCELED));
    assert_eq!((uring.retries(), uring.slots.occupied()), (Retries::default(), 0));
}

/// `/dev/full` knows no `RWF_NOWAIT`.
#[test]
fn a_file_without_attempts_is_tried_once_and_not_counted() {
    let Ok(mut uring) = Uring::new(8, Duration::from_secs(1)) else { return };
    let file = DirectFile::options().write(true).open("/dev/full").unwrap();
    for _ in 0..2 {
        uring.push(1, write(file.clone())).unwrap();
        let error = next(&mut uring).result.unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOSPC));
        assert!(!file.may_not_block());
    }
    assert_eq!(uring.retries(), Retries::default());
}
