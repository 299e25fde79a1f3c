//! The synchronization of permits: the real primitives, or in this crate's unit tests those of
//! loom, whose model checker runs every interleaving. Tests of permits with real threads are in
//! `tests/`.

#[cfg(not(test))]
pub(crate) use self::real::*;

#[cfg(test)]
pub(crate) use self::model::*;

#[cfg(not(test))]
mod real {
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use std::thread::{Builder, Thread, current, park, park_timeout};
    pub(crate) use std::thread_local;

    pub(crate) use crate::sys::clock::Clock;
    pub(crate) use crate::sys::lock::{HereGuard as LockGuard, Lock};
}

#[cfg(test)]
mod model {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_core::Time;
    use loom::sync::Condvar;
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::MutexGuard as LockGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use loom::thread::Builder;
    pub(crate) use loom::thread_local;

    /// A lock of the library's state. The model counts the locks that a thread holds.
    #[derive(Debug)]
    pub(crate) struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub(crate) fn new(state: T) -> Self {
            Self(Mutex::new(state))
        }

        pub(crate) fn lock_here(&self) -> LockGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    thread_local! {
        static CURRENT: Thread = Thread::default();
    }

    /// A thread that can be parked. loom's own `unpark` would also wake a thread that waits for a
    /// lock.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            let (token, given) = &*self.0;
            *token.lock().unwrap() = true;
            given.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Thread::clone)
    }

    pub(crate) fn park() {
        let thread = current();
        let (token, given) = &*thread.0;
        let mut token = token.lock().unwrap();
        while !*token {
            token = given.wait(token).unwrap();
        }
        *token = false;
    }

    /// The time at which a model begins.
    const BEGIN: Time = Time::from_nanos(1_000_000_000);
    /// The time at which a model has ended. No thread sleeps until then or later.
    const END: Time = BEGIN.plus_nanos(50_000_000);

    // loom runs all threads of a model in one thread.
    std::thread_local! {
        static NOW: Cell<Time> = const { Cell::new(BEGIN) };
    }

    /// A clock that advances only when a thread sleeps or works.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Clock;

    impl Clock {
        pub(crate) const fn of_process() -> Self {
            Self
        }

        /// Call it first in a model.
        pub(crate) fn begin() {
            NOW.set(BEGIN);
        }

        pub(crate) fn now(&self) -> Time {
            NOW.get()
        }

        /// The calling thread works for this many nanoseconds.
        pub(crate) fn pass(nanos: u64) {
            NOW.set(NOW.get().plus_nanos(nanos));
        }
    }

    /// The other threads may do nothing until the timeout.
    pub(crate) fn park_timeout(timeout: Duration) {
        let until = NOW.get().plus_nanos(forebay_core::saturating_nanos(timeout));
        if until >= END { park() } else { NOW.set(until) }
    }
}
