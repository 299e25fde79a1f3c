//! Where a blocked thread sleeps.

use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use forebay_core::Time;

use crate::sys::sync::{self, AtomicBool, Clock, Ordering, Thread, thread_local};

thread_local! {
    static PARKING: Arc<Parking> = Arc::new(Parking::of_this_thread());
}

/// A thread's parking place. It waits for one permit at a time, so it has one.
///
/// The token that a thread is unparked with is not enough to go by: a waker
/// that it runs before it sleeps may park, too, and take it.
#[derive(Debug)]
pub(crate) struct Parking {
    thread: Thread,
    /// Unparked, and not awake since then.
    called: AtomicBool,
    granted: AtomicBool,
    /// The thread runs wakers of others before it sleeps here, and may wait there.
    away: AtomicBool,
}

impl Parking {
    pub(crate) fn of_this_thread() -> Self {
        Self {
            thread: sync::current(),
            called: AtomicBool::new(false),
            granted: AtomicBool::new(false),
            away: AtomicBool::new(false),
        }
    }

    /// The calling thread's, to wait for a grant that has not come yet.
    pub(crate) fn take_place() -> Arc<Self> {
        let own = PARKING.try_with(Arc::clone);
        // At the end of the thread its own may be gone; and it is taken where
        // a waker that runs while the thread waits asks for a permit.
        let own = own.ok().filter(|own| Arc::strong_count(own) <= 2);
        let parking = own.unwrap_or_else(|| Arc::new(Self::of_this_thread()));
        parking.granted.store(false, Ordering::Relaxed);
        parking.called.store(false, Ordering::Relaxed);
        parking
    }

    /// The calling thread, whose place this is, sleeps until woken, until
    /// `until`, or for no reason; not at all if it was unparked since it was
    /// last awake here.
    pub(crate) fn park(&self, clock: Clock, until: Option<Time>) {
        if !self.called.load(Ordering::Relaxed) {
            sleep(clock, until);
        }
        // Why it was unparked is seen under the lock, which is taken next.
        self.called.store(false, Ordering::Relaxed);
    }

    /// From now on the thread runs wakers of others. Under the lock of who would unpark it.
    pub(crate) fn go_away(&self) {
        self.away.store(true, Ordering::Relaxed);
    }

    pub(crate) fn come_back(&self) {
        self.away.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed)
    }

    pub(crate) fn unpark(&self) {
        self.called.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }

    /// Says that the grant has come; the thread is to be woken after that.
    pub(crate) fn grant(&self) {
        self.granted.store(true, Ordering::Release);
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

/// For a thread that waits as tasks do.
impl Wake for Parking {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

/// The calling thread sleeps until `until`, until unparked, or for no reason.
fn sleep(clock: Clock, until: Option<Time>) {
    match until {
        // The time is taken here: wakers that ran since may have been slow.
        Some(until) => sync::park_timeout(Duration::from_nanos(until.nanos_since(clock.now()))),
        None => sync::park(),
    }
}
