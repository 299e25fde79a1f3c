//! Where a blocked thread sleeps.

use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use forebay_core::Time;

use crate::sys::sync::{self, AtomicBool, Clock, Ordering, Thread, thread_local};

thread_local! {
    static PARKING: Arc<Parking> = Arc::new(Parking::of_this_thread());
}

/// A thread's parking place. A thread waits for one permit at a time, so it needs one place.
///
/// The token of `unpark` is not reliable here: a waker that the thread runs before it sleeps may
/// park too, and take the token.
#[derive(Debug)]
pub(crate) struct Parking {
    thread: Thread,
    /// The thread was unparked, and has not woken here since then.
    called: AtomicBool,
    granted: AtomicBool,
    /// The thread runs wakers of others before it sleeps here, and may block in them.
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

    /// The place of the calling thread, without a grant.
    pub(crate) fn take_place() -> Arc<Self> {
        let own = PARKING.try_with(Arc::clone);
        // The thread-local place may be destroyed at the end of the thread. It is in use if a waker
        // that runs while the thread waits asks for a permit.
        let own = own.ok().filter(|own| Arc::strong_count(own) <= 2);
        let parking = own.unwrap_or_else(|| Arc::new(Self::of_this_thread()));
        parking.granted.store(false, Ordering::Relaxed);
        parking.called.store(false, Ordering::Relaxed);
        parking
    }

    /// Puts the calling thread, whose place this is, to sleep until it is woken or until `until`.
    /// It may also wake spuriously. It does not sleep if it was unparked since it last woke here.
    pub(crate) fn park(&self, clock: Clock, until: Option<Time>) {
        if !self.called.load(Ordering::Relaxed) {
            sleep(clock, until);
        }
        // The caller looks for the reason under the lock, or with the acquire load of
        // [`Self::is_granted`].
        self.called.store(false, Ordering::Relaxed);
    }

    /// The thread runs wakers of others from now on. The caller holds the lock under which the
    /// thread would be unparked.
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

    /// Notes the grant. The caller wakes the thread afterwards.
    pub(crate) fn grant(&self) {
        self.granted.store(true, Ordering::Release);
    }

    pub(crate) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }
}

/// For a thread that waits by polling, as a task does.
impl Wake for Parking {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}

/// Puts the calling thread to sleep until `until` or until it is unparked. It may also wake
/// spuriously.
fn sleep(clock: Clock, until: Option<Time>) {
    match until {
        // Read the clock here, because wakers that ran since `until` was computed may have been
        // slow.
        Some(until) => sync::park_timeout(Duration::from_nanos(until.nanos_since(clock.now()))),
        None => sync::park(),
    }
}
