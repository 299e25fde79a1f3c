//! What permits synchronize with: the real thing, or in this crate's unit
//! tests loom's, whose model checker runs every interleaving. Tests of
//! permits in real threads are in `tests/`.

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

    /// The lock of the library's state, whose holders the model counts.
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

    /// A thread as far as it can be parked. loom's own also wakes a thread
    /// that waits for a lock.
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

    /// The model begins now,
    const BEGIN: Time = Time::from_nanos(1_000_000_000);
    /// and is over before this time: nobody sleeps until then or later.
    const END: Time = BEGIN.plus_nanos(50_000_000);

    // loom runs all threads of a model in one
    std::thread_local! {
        static NOW: Cell<Time> = const { Cell::new(BEGIN) };
    }

    /// Time passes only when somebody sleeps until then.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Clock;

    impl Clock {
        pub(crate) const fn of_process() -> Self {
            Self
        }

        /// To be called first in a model.
        pub(crate) fn begin() {
            NOW.set(BEGIN);
        }

        pub(crate) fn now(&self) -> Time {
            NOW.get()
        }

        /// The calling thread works for so long.
        pub(crate) fn pass(nanos: u64) {
            NOW.set(NOW.get().plus_nanos(nanos));
        }
    }

    /// It may be that nobody else does anything meanwhile.
    pub(crate) fn park_timeout(timeout: Duration) {
        let until = NOW.get().plus_nanos(forebay_core::saturating_nanos(timeout));
        if until >= END { park() } else { NOW.set(until) }
    }
}
