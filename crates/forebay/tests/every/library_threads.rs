//! What blocks, where a thread of the library would wait for itself.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use forebay::DeleteErrorCause;

use super::futures::{Bed, MIB, Waiting};

struct Calls<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// What `call` returns in the waker of `waiting`, once that gets on.
fn in_waker<R: Send + 'static>(
    bed: &Bed,
    mut waiting: Waiting,
    call: impl Fn() -> R + Send + Sync + 'static,
) -> R {
    let (tell, told) = channel();
    let waker = Waker::from(Arc::new(Calls(move || {
        let name = thread::current().name().map(str::to_owned);
        let _ = tell.send((call(), name));
    })));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    bed.go_on();
    let (result, thread) = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(thread.is_some_and(|name| name.starts_with("forebay-")));
    result
}

#[test]
fn a_deleter_does_not_wait_for_itself() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let bed = Bed::new();
    let mut deletions = bed.deletions();
    let (last, first) = (deletions.pop().unwrap(), deletions.swap_remove(0));
    let last = Arc::new(last);
    let waited = Arc::clone(&last);
    let waiting = Box::pin(async move { drop(first.await) });
    let error = in_waker(&bed, waiting, move || waited.wait().unwrap_err());
    assert!(matches!(error.cause, DeleteErrorCause::WaitsForItself), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::Deadlock);
    last.wait().unwrap();
    assert!(deletions.iter().all(|deletion| deletion.wait().is_ok()));
}

#[test]
fn a_thread_that_writes_parts_back_does_not_wait_for_parts() {
    let bed = Bed::new();
    let writer = Arc::clone(&bed.writer);
    let waiting = Box::pin(async move { drop(writer.write_at_async(&[7; 8192], 2 * MIB).await) });
    let other = bed.stopped.buffered_writer(File::create(bed.dir.path().join("other")).unwrap());
    let other = other.unwrap();
    other.write_at(&[7; 4096], 0).unwrap();
    let error = in_waker(&bed, waiting, move || other.sync_data().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Deadlock, "{error}");
    assert!(error.to_string().contains("EDEADLK"), "{error}");
    bed.writer.sync_data().unwrap();
}

#[test]
fn a_writer_is_woken_although_a_waker_waits_for_its_lock() {
    let bed = Bed::new();
    let run_queue = Arc::new(Mutex::new(0));
    // A task waits for room, and its waker for the lock.
    let (writer, of_waker) = (Arc::clone(&bed.writer), Arc::clone(&run_queue));
    let mut task: Waiting =
        Box::pin(async move { drop(writer.write_at_async(&[7; 8192], 2 * MIB).await) });
    let waker = Waker::from(Arc::new(Calls(move || *of_waker.lock().unwrap() += 1)));
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // A thread holds the lock and waits for room.
    let (done, ended) = channel();
    let (writer, of_thread) = (Arc::clone(&bed.writer), Arc::clone(&run_queue));
    thread::spawn(move || {
        let guard = of_thread.lock().unwrap();
        writer.write_at(&[7; 8192], 3 * MIB).unwrap();
        drop(guard);
        done.send(()).unwrap();
    });
    thread::sleep(Duration::from_millis(100));
    bed.go_on();
    ended.recv_timeout(Duration::from_secs(60)).unwrap();
}

/// The signals that each thread of this process blocks, as a bit mask, for threads of the library.
fn blocked_signals() -> Vec<(String, u64)> {
    let mut threads = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // A thread may end in between.
        let status = std::fs::read_to_string(task.unwrap().path().join("status"));
        let Ok(status) = status else { continue };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        if field("Name:").starts_with("forebay-") {
            let mask = u64::from_str_radix(field("SigBlk:"), 16).unwrap();
            threads.push((field("Name:").to_owned(), mask));
        }
    }
    threads
}

#[test]
fn signals_of_the_process_reach_no_thread_of_the_library() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    let (bed, mut waiting) = (Bed::new(), Vec::new());
    for (name, future) in super::futures::FUTURES {
        // The other future of deletions has the same files.
        if *name == "Deletion::removed" {
            continue;
        }
        let mut future = future(&bed);
        // One bed for all: some need not wait in it.
        _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        waiting.push(future);
    }
    let threads = blocked_signals();
    for expected in ["forebay-deleter", "forebay-disk-", "forebay-files", "forebay-look"] {
        assert!(
            threads.iter().any(|(name, _)| name.starts_with(expected)),
            "{expected}: {threads:?}"
        );
    }
    for (name, mask) in &threads {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGCHLD] {
            assert_ne!(mask & (1 << (signal - 1)), 0, "{name} takes signal {signal}");
        }
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGPROF] {
            assert_eq!(mask & (1 << (fault - 1)), 0, "{name} blocks signal {fault}");
        }
    }
    drop(waiting);
    bed.go_on();
}
