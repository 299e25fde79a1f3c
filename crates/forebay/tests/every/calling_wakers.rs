//! Wakers that call the library whenever they are cloned, woken or dropped.

use std::cell::Cell;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Deleter, DeleterOptions, Op};

use super::futures::{Bed, FUTURES};

thread_local! {
    /// What a waker calls may run wakers itself.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

struct Calls {
    call: Box<dyn Fn() + Send + Sync>,
    woken: AtomicUsize,
}

impl Calls {
    fn call(&self) {
        if !IS_CALLING.replace(true) {
            (self.call)();
            IS_CALLING.set(false);
        }
    }

    fn waker(self: &Arc<Self>) -> Waker {
        // SAFETY: the table treats the data as the `Arc` that it is.
        unsafe { Waker::from_raw(raw(Arc::clone(self))) }
    }
}

fn raw(calls: Arc<Calls>) -> RawWaker {
    RawWaker::new(Arc::into_raw(calls).cast(), &TABLE)
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: the waker has one count of the `Arc`, which the clone adds to.
        unsafe { Arc::increment_strong_count(data.cast::<Calls>()) };
        // SAFETY: that count is the clone's.
        let calls = unsafe { Arc::from_raw(data.cast::<Calls>()) };
        calls.call();
        raw(calls)
    },
    |data| {
        // SAFETY: the waker's count, which ends with it.
        let calls = unsafe { Arc::from_raw(data.cast::<Calls>()) };
        calls.woken.fetch_add(1, Ordering::SeqCst);
        calls.call();
    },
    |data| {
        // SAFETY: the waker is there, and its count with it.
        let calls = unsafe { &*data.cast::<Calls>() };
        calls.woken.fetch_add(1, Ordering::SeqCst);
        calls.call();
    },
    |data| {
        // SAFETY: the waker's count, which ends with it.
        let calls = unsafe { Arc::from_raw(data.cast::<Calls>()) };
        calls.call();
    },
);

/// Flushes, asks for permits, deletes and looks: in another class, and with the writer that a future
/// may wait for.
fn calls(bed: &Arc<Bed>) -> Arc<Calls> {
    let file = File::create(bed.dir.path().join("free")).unwrap();
    let writer = bed.free.buffered_writer(file).unwrap();
    let options = DeleterOptions::new().always_in_steps(true);
    let deleter = Deleter::new(&bed.free, options).unwrap();
    let bed = Arc::clone(bed);
    let call = move || {
        writer.write_at(&[7; 4096], 0).unwrap();
        // A thread of the library is refused what it would have to wait for.
        drop((writer.sync_data(), bed.free.admit(Op::Read, 4096).unwrap()));
        let deletion = deleter.delete(bed.dir.path().join("nothing"));
        drop((deletion.wait(), deletion.progress(), bed.scheduler.snapshot()));
        drop((bed.writer.write_back(), bed.writer.dirty(), bed.stopped.permit_counters()));
        drop(bed.stopped.try_admit(Op::Read, 4096).unwrap());
    };
    Arc::new(Calls { call: Box::new(call), woken: AtomicUsize::new(0) })
}

fn ends(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} does not end"));
}

#[test]
fn a_waker_may_call_the_library_when_it_is_cloned_woken_and_dropped() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, future) in FUTURES {
        ends(name, move || {
            let bed = Bed::new();
            let calls = calls(&bed);
            let mut waiting = future(&bed);
            // Polled twice: the first of the wakers is replaced and dropped.
            for _ in 0..2 {
                let waker = calls.waker();
                let polled = waiting.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending(), "{name}");
            }
            bed.go_on();
            let (begin, mut polls) = (Instant::now(), 0);
            loop {
                // Only when woken, but for one that was woken before it was polled again.
                let woken = calls.woken.load(Ordering::SeqCst);
                if woken > polls || begin.elapsed() > Duration::from_secs(30) {
                    polls = woken;
                    let waker = calls.waker();
                    if waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                        break;
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
            assert!(calls.woken.load(Ordering::SeqCst) > 0, "{name} was not woken");
        });
    }
}

#[test]
fn a_waker_may_call_the_library_when_its_future_is_dropped() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, future) in FUTURES {
        ends(name, move || {
            let bed = Bed::new();
            let calls = calls(&bed);
            let mut waiting = future(&bed);
            let waker = calls.waker();
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            drop(waker);
            drop(waiting);
            bed.go_on();
        });
    }
}
