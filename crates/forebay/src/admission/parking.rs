//! Where a blocked thread sleeps.

use std::sync::Arc;
use std::time::Duration;

use forebay_core::Time;

use crate::sync::{self, AtomicBool, Ordering, Thread, thread_local};

thread_local! {
    static PARKING: Arc<Parking> = Arc::new(Parking::of_this_thread());
}

/// A thread's parking place. It waits for one permit at a time, so it has one.
#[derive(Debug)]
pub(super) struct Parking {
    thread: Thread,
    granted: AtomicBool,
}

impl Parking {
    fn of_this_thread() -> Self {
        Self { thread: sync::current(), granted: AtomicBool::new(false) }
    }

    /// The calling thread's, to wait for a grant that has not come yet.
    pub(super) fn take_place() -> Arc<Self> {
        let own = PARKING.try_with(Arc::clone);
        // At the end of the thread its own may be gone.
        let parking = own.unwrap_or_else(|_| Arc::new(Self::of_this_thread()));
        parking.granted.store(false, Ordering::Relaxed);
        parking
    }

    /// The place of a thread that never waits for a grant.
    pub(super) fn of(thread: Thread) -> Self {
        Self { thread, granted: AtomicBool::new(false) }
    }

    /// Sleeps until woken, until `until`, or for no reason. `now` is when the
    /// caller last looked.
    pub(super) fn park(now: Time, until: Option<Time>) {
        match until {
            Some(until) => sync::park_timeout(Duration::from_nanos(until.nanos_since(now))),
            None => sync::park(),
        }
    }

    pub(super) fn unpark(&self) {
        self.thread.unpark();
    }

    /// Says that the grant has come; the thread is to be woken after that.
    pub(super) fn grant(&self) {
        self.granted.store(true, Ordering::Release);
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}
