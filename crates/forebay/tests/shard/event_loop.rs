//! A shard as a part of somebody else's event loop.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, Operation};
use forebay::shard::Shard;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::fixture::{BLOCK, Bed, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    the_descriptor_and_the_timeout_are_enough,
    a_wake_up_makes_the_descriptor_readable,
    a_wake_up_while_its_thread_was_away_ends_the_next_sleep,
}

/// Sleeps as an event loop would; false if nothing happened in a minute.
pub(crate) fn sleep(shard: &Shard) -> bool {
    let timeout = shard.timeout().unwrap_or(Duration::from_secs(60));
    // SAFETY: the descriptor is open as long as the shard.
    let fd = unsafe { BorrowedFd::borrow_raw(shard.as_raw_fd()) };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let deadline = Timespec::try_from(timeout).unwrap();
    let ready = rustix::event::poll(&mut fds, Some(&deadline)).unwrap();
    ready > 0 || timeout < Duration::from_secs(60)
}

fn the_descriptor_and_the_timeout_are_enough(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let (mut submitted, mut ended) = (0u64, 0u64);
    while ended < 300 {
        while submitted < 300 && submitted - ended < 20 {
            let len = if submitted % 10 == 0 { 64 * BLOCK } else { BLOCK };
            let offset = submitted * 64 * BLOCK as u64;
            bed.submit(Operation::write(file.clone(), offset, filled(len, 1)));
            submitted += 1;
        }
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        let before = ended;
        while let Some(finished) = bed.shard.pop() {
            finished.result.unwrap();
            ended += 1;
        }
        assert!(before < ended || sleep(&bed.shard), "a completion was not told of");
    }
}

fn a_wake_up_makes_the_descriptor_readable(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let waker = bed.shard.waker();
    for _ in 0..100 {
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        let thread = std::thread::spawn({
            let waker = waker.clone();
            move || waker.wake()
        });
        assert!(sleep(&bed.shard), "a wake-up was lost");
        thread.join().unwrap();
    }
}

/// Looking for what had come back took the wake-up, and the shard slept on what
/// was sent to it.
fn a_wake_up_while_its_thread_was_away_ends_the_next_sleep(backend: BackendChoice) {
    const LONG: Duration = Duration::from_secs(20);
    let mut bed = Bed::new(backend);
    for away_ms in [0, 6, 50] {
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        std::thread::sleep(Duration::from_millis(away_ms));
        bed.shard.waker().wake();
        let begin = Instant::now();
        bed.shard.run_once(Some(LONG)).unwrap();
        assert!(begin.elapsed() < LONG, "slept after {away_ms} ms away");
    }
}
