//! Which of a thread's futures can go on, and waking the thread for them.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use forebay::engine::EngineWaker;

/// The keys of futures that were woken since the thread last looked.
#[derive(Debug)]
pub(super) struct ReadyList {
    keys: Mutex<Vec<usize>>,
    sleeper: Waker,
}

impl ReadyList {
    /// For the thread that `sleeper` wakes.
    pub(super) fn new(sleeper: Waker) -> Arc<Self> {
        Arc::new(Self { keys: Mutex::default(), sleeper })
    }

    /// Moves the keys into `keys`, which is empty.
    pub(super) fn take(&self, keys: &mut Vec<usize>) {
        mem::swap(&mut *self.lock(), keys);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waker for each key, made once.
#[derive(Debug)]
pub(super) struct KeyWakers {
    ready: Arc<ReadyList>,
    wakers: Vec<Waker>,
}

impl KeyWakers {
    pub(super) fn new(ready: &Arc<ReadyList>) -> Self {
        Self { ready: Arc::clone(ready), wakers: Vec::new() }
    }

    /// Makes the future with this key ready.
    pub(super) fn of(&mut self, key: usize) -> &Waker {
        for key in self.wakers.len()..=key {
            self.wakers
                .push(Waker::from(Arc::new(KeyWaker { key, ready: Arc::clone(&self.ready) })));
        }
        &self.wakers[key]
    }
}

struct KeyWaker {
    key: usize,
    ready: Arc<ReadyList>,
}

impl Wake for KeyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut keys = self.ready.lock();
        keys.push(self.key);
        // The first of several has woken the thread.
        let is_first = keys.len() == 1;
        drop(keys);
        if is_first {
            self.ready.sleeper.wake_by_ref();
        }
    }
}

/// Ends a sleep of an engine.
pub(super) fn of_engine(engine: EngineWaker) -> Waker {
    struct Sleep(EngineWaker);

    impl Wake for Sleep {
        fn wake(self: Arc<Self>) {
            self.0.wake();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.wake();
        }
    }

    Waker::from(Arc::new(Sleep(engine)))
}

/// Ends the calling thread's parking.
pub(super) fn of_this_thread() -> Waker {
    struct Parked(Thread);

    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(Arc::new(Parked(thread::current())))
}
