//! Processes that are killed, and forked.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use forebay::Forked;

use crate::{Bed, MIB};

const BLOCK: usize = 8192;
const BLOCKS: u64 = 512;

/// What a child does until it is killed: tells the number of each block once it is written.
fn write_blocks(bed: &Bed, mut told: impl Write) -> ! {
    let own = forebay::Scheduler::builder().build().unwrap();
    let class = own.add_class("class", 100).unwrap();
    let writer = class.buffered_writer(bed.file("data")).unwrap().with_dirty_max(MIB);
    for number in 0u64.. {
        let block = [(number % 251) as u8; BLOCK];
        writer.write_all_at(&block, number % BLOCKS * BLOCK as u64).unwrap();
        told.write_all(&[0]).unwrap();
    }
    unreachable!()
}

#[test]
fn a_killed_process_loses_nothing_that_a_write_has_returned_for() {
    let bed = Bed::new();
    for round in 0..100usize {
        bed.file("data").set_len(0).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        // SAFETY: the child does what the test is about, and does not come back.
        let child = unsafe { libc::fork() };
        if child == 0 {
            write_blocks(&bed, writer);
        }
        drop(writer);
        let count = 1 + round * 7919 % 1000;
        reader.read_exact(&mut vec![0; count]).unwrap();
        // SAFETY: ends that child, and takes its end.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        let file = bed.file("data");
        let told = (count + rest.len()) as u64;
        for number in told.saturating_sub(BLOCKS)..told {
            let mut block = [0; BLOCK];
            file.read_exact_at(&mut block, number % BLOCKS * BLOCK as u64).unwrap();
            let next = number + BLOCKS;
            // the one that was not told may be there already, in part
            let kept =
                block.iter().all(|byte| [number, next].map(|n| (n % 251) as u8).contains(byte));
            assert!(kept, "round {round}: block {number} of {told}");
        }
    }
}

#[test]
fn a_child_is_refused_and_its_drop_leaves_its_parents_writer() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&[7; 4096], 0).unwrap();
    let is_forked = |result: std::io::Result<()>| {
        let error = result.unwrap_err();
        error.get_ref().is_some_and(|source| source.is::<Forked>())
    };
    // SAFETY: the child does what the test is about, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = is_forked(writer.write_all_at(&[9], 0))
            && is_forked(writer.sync_data())
            && is_forked(writer.write_back())
            && writer.dirty() == 0
            && is_forked(bed.class.buffered_writer(bed.file("data")).map(drop));
        drop(writer);
        // SAFETY: ends the child without what its parent does at its end.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let mut status = 0;
    // SAFETY: waits for a child of this process, into a number of its own.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child failed");
    writer.sync_data().unwrap();
    assert_eq!(bed.admitted(), 4096);
}

#[test]
fn a_childs_drop_waits_for_nothing_that_its_parent_had_locked() {
    let bed = Bed::new();
    let open = |name: &str| bed.class.buffered_writer(bed.file(name)).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["one", "two", "three", "four"] {
            let (writer, over) = (open(name), &over);
            scope.spawn(move || {
                let data = [7; 65_536];
                for place in (0..512).cycle().take_while(|_| !over.load(Ordering::Relaxed)) {
                    writer.write_all_at(&data, place * 65_536).unwrap();
                }
            });
        }
        let mut statuses = Vec::new();
        for _ in 0..200 {
            let writer = open("dropped");
            writer.write_all_at(&[7; 100], 0).unwrap();
            // SAFETY: the child does what the test is about, and ends at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a child that hangs is ended by the signal.
                unsafe { libc::alarm(5) };
                drop(writer);
                // SAFETY: ends the child without what its parent does at its end.
                unsafe { libc::_exit(0) }
            }
            let mut status = 0;
            // SAFETY: waits for a child of this process, into a number of its own.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            statuses.push(status);
            if status != 0 {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == 0), "{statuses:?}");
    });
}

/// In a process of its own, which may start no thread from some moment on.
#[test]
fn a_writer_that_is_made_where_no_thread_can_be_started_can_be_flushed() {
    const CHILD: &str = "FOREBAY_TEST_WITHOUT_THREADS";
    let name = "killed::a_writer_that_is_made_where_no_thread_can_be_started_can_be_flushed";
    // SAFETY: the call only reads who the process is.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become a user whose threads are limited");
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        return make_writers_without_threads();
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let status = child.args(["--exact", name]).env(CHILD, "1").status().unwrap();
    assert!(status.success(), "{status}");
}

fn make_writers_without_threads() {
    let bed = Bed::new();
    let file = bed.file("data");
    let go = Barrier::new(9);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                go.wait();
                for _ in 0..2_000 {
                    if let Ok(writer) = bed.class.buffered_writer(&file) {
                        writer.write_at(&[1; 4096], 0).unwrap();
                        writer.sync_data().unwrap();
                    }
                }
            });
        }
        let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
        // SAFETY: the process is this test's own, and the limit outlives the call.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit), 0);
            assert_eq!(libc::setuid(65_534), 0);
        }
        go.wait();
    });
    assert!(bed.class.buffered_writer(&file).is_err(), "no thread can be had");
}

#[test]
fn futures_of_the_parent_write_and_flush_nothing_in_a_child() {
    let bed = Bed::limited(MIB / 16);
    let file = bed.file("data");
    let writer = bed.class.buffered_writer(&file).unwrap().with_dirty_max(MIB);
    writer.write_all_at(&[1; 1 << 20], 0).unwrap();
    let mut write = Box::pin(writer.write_at_async(b"of the child", 8 * MIB));
    let mut flush = Box::pin(writer.sync_data_async());
    let mut context = Context::from_waker(Waker::noop());
    assert!(write.as_mut().poll(&mut context).is_pending());
    assert!(flush.as_mut().poll(&mut context).is_pending());
    // SAFETY: the child does what the test is about, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_refused = |error: &std::io::Error| {
            error.get_ref().is_some_and(|inner| inner.downcast_ref() == Some(&Forked))
        };
        let refused = matches!(write.as_mut().poll(&mut context), Poll::Ready(Err(error)) if is_refused(&error))
            && matches!(flush.as_mut().poll(&mut context), Poll::Ready(Err(error)) if is_refused(&error));
        // SAFETY: ends the child without what its parent does at its end.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let mut status = 0;
    // SAFETY: waits for that child, into a number of its own.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child was not refused");
    assert!(file.metadata().unwrap().len() < 8 * MIB, "the child has written");
}
