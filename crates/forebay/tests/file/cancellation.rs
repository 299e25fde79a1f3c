//! Requests that are not wanted any more.

use std::fs;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use forebay::engine::BackendChoice;
use forebay::properties::Properties;
use forebay::{BufResult, BufferPool, DiskRates, FileOptions, RequestError};

use crate::fixture::{BLOCK, Bed, RATES, STUCK, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    dropping_a_waiting_request_gives_its_buffer_back,
    everything_can_be_dropped_at_once,
    a_wait_that_ends_in_time_leaves_the_request_on_its_way,
    a_wait_after_the_answer_was_taken_is_an_error,
    a_detached_write_goes_on_to_its_end_when_all_else_is_dropped,
    a_request_that_was_refused_says_so_when_it_is_detached,
}

/// Waits for what another thread is about to do.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::thread::yield_now();
    }
}

fn dropping_a_waiting_request_gives_its_buffer_back(backend: BackendChoice) {
    const REQUESTS: usize = 1000;
    let bed = Bed::with(backend, STUCK, 1);
    let file = bed.file();
    let pool = BufferPool::new(BLOCK, 2 * REQUESTS * BLOCK);
    let write = |n| file.write_at(&bed.class, pool.take(BLOCK).unwrap(), (n * BLOCK) as u64);
    let requests: Vec<_> = (0..REQUESTS).map(write).collect();
    assert_eq!(pool.kept_bytes(), 0);
    drop(requests);
    until(|| pool.kept_bytes() == REQUESTS * BLOCK);
    // Nothing waits any more, so the class can go once its last is done.
    until(|| bed.scheduler.remove_class(&bed.class).is_ok());
}

fn a_wait_that_ends_in_time_leaves_the_request_on_its_way(backend: BackendChoice) {
    let bed = Bed::with(backend, STUCK, 1);
    let file = bed.file();
    let write = |n: u64| file.write_at(&bed.class, filled(BLOCK, 1), n * BLOCK as u64);
    // a burst lets 32 through, and nothing comes after for an hour
    let _before: Vec<_> = (0..64).map(write).collect();
    let mut last = write(64);
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        assert!(last.wait_timeout(timeout).is_none());
    }
    let fast = format!(
        "disks: [{{mountpoint: {}, read_iops: 100000, write_iops: 100000, \
         read_bandwidth: 1000000000, write_bandwidth: 1000000000}}]",
        bed.dir().display()
    );
    bed.scheduler.reload(&Properties::parse("fast", &fast).unwrap()).unwrap();
    let BufResult(result, buffer) = last.wait_timeout(Duration::MAX).unwrap();
    assert_eq!((result.unwrap(), buffer.len()), (BLOCK, BLOCK));
    assert!(last.wait_timeout(Duration::ZERO).is_none(), "the answer is given once");
}

fn everything_can_be_dropped_at_once(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let requests: Vec<_> =
        (0..200u64).map(|n| file.write_at(&bed.class, filled(1 << 18, 1), n << 18)).collect();
    drop(file);
    drop(bed.scheduler);
    drop(bed.class);
    let mut ended = 0;
    for request in requests.into_iter().step_by(2) {
        // The rest is dropped; those with a waiter are served.
        assert_eq!(request.wait().into_result().unwrap().0, 1 << 18);
        ended += 1;
    }
    assert_eq!(ended, 100);
}

#[test]
fn a_read_without_end_is_cancelled_and_holds_nothing() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let bed = Bed::with(BackendChoice::IoUring, RATES, 1);
    let path = bed.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    // A pipe opened for both does not wait for another end.
    let options = FileOptions::new().read(true).write(true).direct(false);
    let pipe = bed.disk().open(&path, &options).unwrap();
    let pool = BufferPool::new(BLOCK, 1 << 20);
    let read = pipe.read_at(&bed.class, pool.take(BLOCK).unwrap(), 0);
    until(|| bed.disk().in_flight() > Duration::ZERO);
    drop(read);
    until(|| pool.kept_bytes() == BLOCK && bed.disk().in_flight() == Duration::ZERO);
}

fn a_wait_after_the_answer_was_taken_is_an_error(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let mut timed = file.write_at(&bed.class, filled(BLOCK, 1), 0);
    assert!(timed.wait_timeout(Duration::MAX).is_some());
    let BufResult(again, buffer) = timed.wait();
    assert!(again.unwrap_err().to_string().contains("taken"));
    assert!(buffer.is_empty());

    let mut polled = file.sync_all(&bed.class);
    let context = &mut Context::from_waker(Waker::noop());
    until(|| Pin::new(&mut polled).poll(context).is_ready());
    polled.wait().unwrap_err();
}

/// A megabyte in parts, each of which takes a while.
const SLOW: DiskRates = DiskRates {
    read_iops: 1_000,
    write_iops: 1_000,
    read_bandwidth: 10_000_000,
    write_bandwidth: 10_000_000,
};

fn a_detached_write_goes_on_to_its_end_when_all_else_is_dropped(backend: BackendChoice) {
    const LEN: usize = 1 << 20;
    let Bed { scheduler, class, dir } = Bed::with(backend, SLOW, 1);
    let path = dir.path().join("data");
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = scheduler.open(&path, &options).unwrap();
    file.write_at(&class, filled(LEN, 7), 0).detach().unwrap();
    drop((file, class, scheduler));
    let begun = Instant::now();
    let is_whole = || fs::read(&path).is_ok_and(|data| data == [7; LEN]);
    until(|| is_whole() || begun.elapsed() > Duration::from_secs(30));
    assert!(is_whole(), "{} bytes", fs::metadata(&path).unwrap().len());
}

fn a_request_that_was_refused_says_so_when_it_is_detached(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let error = bed.file().punch_hole(&bed.class, 0, 0).detach().unwrap_err();
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<RequestError>());
    assert_eq!(reason, Some(&RequestError::Empty));
}
