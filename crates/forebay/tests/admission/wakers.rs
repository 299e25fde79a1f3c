//! Wakers that do more than they should, and threads that end.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use forebay::{AdmitFuture, Class, Op, Scheduler};

use crate::executor::{block_on, poll_once};
use crate::takes_at_once;
use crate::tasks::paced_at;

struct Panics;

impl Wake for Panics {
    #[expect(clippy::panic, reason = "what is tried")]
    fn wake(self: Arc<Self>) {
        panic!("the mistake of a waker");
    }
}

/// Asks for a permit on the thread that wakes it, and waits for it there.
struct Asks(Class);

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        drop(self.0.admit(Op::Read, 4096).unwrap());
    }
}

/// A task that waits for a permit, with this waker.
fn waiting(class: &Class, waker: impl Wake + Send + Sync + 'static) -> Pin<Box<AdmitFuture>> {
    let mut admit = Box::pin(class.admit_async(Op::Read, 4096));
    let waker = Waker::from(Arc::new(waker));
    assert!(admit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    admit
}

/// A class of which nothing can go for 50 ms, and then one at a time.
fn used_up() -> Class {
    let class = paced_at(20);
    while class.try_admit(Op::Read, 4096).unwrap().is_some() {}
    class
}

/// Fails if it takes a minute.
fn ends(work: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        work();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_waker_that_panics_does_not_reach_whoever_woke_it() {
    let class = takes_at_once(1).add_class("class", 100).unwrap();
    let held = class.admit(Op::Read, 4096).unwrap();
    let mut admit = waiting(&class, Panics);
    drop(held);
    assert!(poll_once(admit.as_mut()).is_ready());
}

#[test]
fn a_waker_that_panics_does_not_stop_the_timer() {
    let class = used_up();
    let _admit = waiting(&class, Panics);
    ends(move || drop(block_on(class.admit_async(Op::Read, 4096)).unwrap()));
}

#[test]
fn a_waker_that_waits_for_a_permit_keeps_nobody_waiting() {
    let class = used_up();
    let _admit = waiting(&class, Asks(class.clone()));
    let waits = class.clone();
    let thread = thread::spawn(move || drop(waits.admit(Op::Read, 4096).unwrap()));
    ends(move || thread.join().unwrap());
}

thread_local! {
    static LAST: RefCell<Option<AtItsEnd>> = const { RefCell::new(None) };
}

/// What a thread does when it ends.
struct AtItsEnd(Scheduler, Class);

impl Drop for AtItsEnd {
    fn drop(&mut self) {
        let Self(scheduler, class) = self;
        let _entered = class.enter();
        drop(scheduler.admit(Op::Read, 4096).unwrap());
        drop(class.admit(Op::Read, 4096).unwrap());
    }
}

#[test]
fn a_thread_can_ask_for_permits_while_it_ends() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let used = class.clone();
    let thread = thread::spawn(move || {
        // What a thread uses first is gone last.
        LAST.set(Some(AtItsEnd(scheduler, used.clone())));
        let _entered = used.enter();
    });
    thread.join().unwrap();
    assert!(class.permit_counters().operations[Op::Read.index()] > 0);
}
