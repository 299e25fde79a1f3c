use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tempfile::TempDir;

use super::*;
use crate::{AlignedBuf, BufferPool, DirectFile};

const BLOCK: usize = 4096;

/// A backend whose context has room for `room` requests. `None` if the system has no linux-aio.
fn aio(room: u32, shutdown_timeout: Duration) -> Option<Aio> {
    Aio::new(room, 4, shutdown_timeout).ok()
}

fn next(aio: &mut Aio) -> Completion {
    loop {
        if let Some(completed) = aio.pop() {
            return completed;
        }
        aio.submit_and_wait(Some(Duration::from_secs(60))).unwrap();
    }
}

/// A file of 64 blocks, each filled with its number.
fn file(direct: bool) -> (TempDir, DirectFile) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let blocks: Vec<u8> = (0..64).flat_map(|number| [number; BLOCK]).collect();
    std::fs::write(&path, blocks).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    (dir, open(&path, direct))
}

fn open(path: &Path, direct: bool) -> DirectFile {
    DirectFile::options().read(true).write(true).direct(direct).open(path).unwrap()
}

fn read(file: &DirectFile, block: u64) -> Operation {
    let buffer = AlignedBuf::new(BLOCK, BLOCK).unwrap();
    Operation::read(file.clone(), block * BLOCK as u64, buffer)
}

fn write(file: &DirectFile) -> Operation {
    Operation::write(file.clone(), 0, AlignedBuf::new(BLOCK, BLOCK).unwrap())
}

/// Half of an attempt: the kernel gets no request, and the test supplies its answer.
fn request(operation: Operation) -> Request {
    Request { token: 1, operation, segments: Vec::new() }
}

fn negated(error: Errno) -> i64 {
    (-error.raw_os_error()).into()
}

fn errno(completed: Completion) -> Option<Errno> {
    Errno::from_io_error(&completed.result.unwrap_err())
}

/// Gives the kernel a request that never ends.
fn hang(aio: &mut Aio, buffer: AlignedBuf) {
    let never = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let file = DirectFile::from_fd(never).unwrap();
    let entry = aio.requests.vacant_entry();
    aio.queued.push_back(ControlBlock::poll(&file, entry.key() as u64));
    entry.insert(request(Operation::read(file, 0, buffer)));
    aio.submit_requests().unwrap();
    assert_eq!((aio.in_kernel(), aio.is_full), (1, false));
}

/// A backend with more reads than its context has room for. `None` if the system has no linux-aio.
fn overfilled() -> Option<(Aio, TempDir)> {
    let mut aio = aio(1, Duration::from_secs(60))?;
    let (dir, file) = file(true);
    for token in 0..COUNT {
        aio.push(token, read(&file, token % 64));
    }
    let may_not_block = file.is_direct() && file.may_not_block();
    assert_eq!(aio.is_full, may_not_block, "ends are collected by a submission only");
    Some((aio, dir))
}

const COUNT: u64 = 2000;

/// Waits until all reads have ended once each, with the right data.
fn drain(aio: &mut Aio, mut wait: impl FnMut(&mut Aio)) {
    let mut seen = vec![false; COUNT as usize];
    while seen.contains(&false) {
        wait(aio);
        while let Some(completed) = aio.pop() {
            assert_eq!(completed.result.unwrap(), BLOCK);
            assert!(!mem::replace(&mut seen[completed.token as usize], true));
            let Operation::Read { mut buffer, .. } = completed.operation else { panic!() };
            let block = (completed.token % 64) as u8;
            assert!(buffer.zeroed().iter().all(|&byte| byte == block));
        }
    }
    assert!(aio.requests.is_empty() && aio.queued.is_empty());
    aio.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert!(aio.pop().is_none());
}

#[test]
fn more_than_there_is_room_for_end_once_each() {
    let Some((mut aio, _dir)) = overfilled() else { return };
    drain(&mut aio, |aio| aio.submit_and_wait(None).unwrap());
}

#[test]
fn an_event_loop_is_told_that_there_is_room_again() {
    let Some((mut aio, _dir)) = overfilled() else { return };
    drain(&mut aio, |aio| {
        aio.watch();
        assert!(is_readable(aio, Duration::from_secs(60)));
        aio.submit_and_wait(Some(Duration::ZERO)).unwrap();
    });
}

/// Whether the watched descriptor is readable within `timeout`.
fn is_readable(aio: &Aio, timeout: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(aio.descriptor.watched(), PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&timeout.try_into().unwrap())).unwrap() == 1
}

#[test]
fn operations_without_room_can_be_cancelled_and_those_in_the_kernel_cannot() {
    let Some(mut aio) = aio(1, Duration::from_millis(10)) else { return };
    let (_dir, file) = file(true);
    hang(&mut aio, AlignedBuf::new(BLOCK, BLOCK).unwrap());
    aio.push(2, read(&file, 0));
    if aio.queued.is_empty() {
        return;
    }
    assert!(!aio.cancel(1) && aio.cancel(2) && !aio.cancel(2));
    aio.submit_and_wait(None).unwrap();
    assert_eq!(errno(aio.pop().unwrap()), Some(Errno::CANCELED));
}

#[test]
fn one_that_the_kernel_refuses_stops_none_of_its_batch() {
    let Some(mut aio) = aio(16, Duration::from_secs(60)) else { return };
    let (dir, file) = file(true);
    let path = dir.path().join("data");
    let read_only = DirectFile::options().read(true).open(path).unwrap();
    for token in 0..12 {
        aio.push(token, if token % 3 == 1 { write(&read_only) } else { read(&file, token) });
    }
    for _ in 0..12 {
        let completed = next(&mut aio);
        if completed.token % 3 == 1 {
            assert_eq!(errno(completed), Some(Errno::BADF));
        } else {
            assert_eq!(completed.result.unwrap(), BLOCK);
        }
    }
}

#[test]
fn buffered_files_and_flushes_are_the_pools_and_one_wait_is_for_both() {
    let Some(mut aio) = aio(16, Duration::from_secs(60)) else { return };
    let (dir, direct) = file(true);
    let buffered = open(&dir.path().join("data"), false);
    for round in 0..100 {
        aio.push(0, read(&direct, round % 64));
        aio.push(1, read(&buffered, round % 64));
        aio.push(2, Operation::SyncData { file: buffered.clone() });
        let in_kernel = usize::from(direct.is_direct() && direct.may_not_block());
        assert_eq!(aio.requests.len(), in_kernel);
        let mut tokens: Vec<_> = (0..3).map(|_| next(&mut aio).token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, [0, 1, 2]);
    }
}

#[test]
fn blocking_operations_are_counted_and_done_by_a_thread() {
    let Some(mut aio) = aio(8, Duration::from_secs(60)) else { return };
    let (_dir, file) = file(true);
    aio.ended(request(write(&file)), negated(Errno::AGAIN));
    assert!(aio.pop().is_none(), "it goes on");
    assert_eq!(aio.retries(), Retries { reads: 0, writes: 1 });
    assert_eq!(next(&mut aio).result.unwrap(), BLOCK);
    assert_eq!(aio.retries(), Retries { reads: 0, writes: 1 });
}

#[test]
fn a_file_without_attempts_is_tried_once_and_not_counted() {
    let Some(mut aio) = aio(8, Duration::from_secs(60)) else { return };
    let (_dir, file) = file(true);
    aio.ended(request(read(&file, 0)), negated(Errno::OPNOTSUPP));
    assert_eq!(next(&mut aio).result.unwrap(), BLOCK);
    assert!(!file.may_not_block());
    aio.push(2, read(&file, 0));
    assert!(aio.requests.is_empty(), "the pool has it");
    assert_eq!(next(&mut aio).result.unwrap(), BLOCK);
    assert_eq!(aio.retries(), Retries::default());
}

/// An argument may be invalid only for the attempt.
#[test]
fn an_invalid_argument_is_for_a_thread_to_judge() {
    let Some(mut aio) = aio(8, Duration::from_secs(60)) else { return };
    let (_dir, file) = file(true);
    aio.ended(request(read(&file, 0)), negated(Errno::INVAL));
    assert_eq!(next(&mut aio).result.unwrap(), BLOCK);
    assert!(file.may_not_block());
}

#[test]
fn an_error_of_the_disk_is_the_operations() {
    let Some(mut aio) = aio(8, Duration::from_secs(60)) else { return };
    let (_dir, file) = file(true);
    aio.ended(request(read(&file, 0)), negated(Errno::IO));
    assert_eq!(errno(aio.pop().unwrap()), Some(Errno::IO));
}

/// From now on the kernel takes no requests from the calling thread.
fn refuse_submissions() {
    let filter = SeccompFilter::new(
        BTreeMap::from([(libc::SYS_io_submit, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(Errno::AGAIN.raw_os_error().cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program = BpfProgram::try_from(filter.unwrap()).unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

#[test]
fn operations_refused_for_lack_of_memory_are_kept_and_fail_when_nothing_ends() {
    let refused = thread::spawn(|| {
        let Some(mut aio) = aio(8, Duration::from_secs(60)) else { return };
        let (_dir, file) = file(true);
        refuse_submissions();
        aio.push(1, read(&file, 0));
        if aio.queued.is_empty() {
            return;
        }
        for _ in 0..2 {
            let error = aio.submit_and_wait(None).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(Errno::AGAIN));
        }
        assert!(aio.cancel(1));
        assert_eq!(errno(aio.pop().unwrap()), Some(Errno::CANCELED));
    });
    refused.join().unwrap();
}

#[test]
fn operations_without_room_are_retried_while_others_hang_without_spinning() {
    let refused = thread::spawn(|| {
        let Some(mut aio) = aio(8, Duration::from_millis(10)) else { return };
        let (_dir, file) = file(true);
        hang(&mut aio, AlignedBuf::new(BLOCK, BLOCK).unwrap());
        refuse_submissions();
        aio.push(1, read(&file, 0));
        if aio.queued.is_empty() {
            return;
        }
        // Without another submission of the requests this would never return.
        aio.submit_and_wait(None).unwrap();
        assert!(aio.is_full && aio.pop().is_none());
        aio.watch();
        assert!(!is_readable(&aio, Duration::ZERO));
    });
    refused.join().unwrap();
}

#[test]
fn a_request_that_hangs_does_not_hold_the_drop_and_keeps_its_buffer() {
    for shutdown_timeout in [Duration::ZERO, Duration::from_millis(10)] {
        let Some(mut aio) = aio(8, shutdown_timeout) else { return };
        let (_dir, file) = file(true);
        let buffers = BufferPool::new(BLOCK, 2 * BLOCK);
        hang(&mut aio, buffers.take(BLOCK).unwrap());
        aio.push(2, read(&file, 0));
        aio.watch();
        drop(aio);
        assert_eq!(buffers.kept_bytes(), 0);
    }
}
