//! The locks of the library's own state.
//!
//! This module enforces two rules for all of them:
//!
//! - Code of others never runs under a lock. It may call the library, or wait for a thread that
//!   does. In debug builds each thread counts the locks that it holds, and [`assert_none_held`]
//!   fails before such code runs.
//! - A forked child never waits for a lock, because the thread that held it may not exist there.
//!   State that was made before the fork is empty in a child.
//!
//! Decision: `docs/decisions/0029-foreign-code.md`.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use super::fork::Process;

/// State behind a lock, which belongs to the process that made it.
pub(crate) struct Lock<T> {
    process: Process,
    mutex: Mutex<T>,
}

/// The state, while it is locked.
pub(crate) struct LockGuard<'a, T> {
    state: Guarded<'a, T>,
    _held: Held,
}

/// The locked state of a lock that a child cannot reach.
pub(crate) struct HereGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

enum Guarded<'a, T> {
    Locked(MutexGuard<'a, T>),
    /// In a forked child: an empty state, which is dropped with the guard.
    Empty(Box<T>),
}

impl<T> Lock<T> {
    pub(crate) fn new(state: T) -> Self {
        Self { process: Process::current(), mutex: Mutex::new(state) }
    }

    /// Locks a state that a child cannot reach: its owner is an
    /// [`OfProcess`](super::fork::OfProcess), or has checked the process.
    pub(crate) fn lock_here(&self) -> HereGuard<'_, T> {
        debug_assert!(self.process.is_here(), "a child must not wait for its parent's lock");
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        HereGuard { guard, _held: Held::one() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Lock<T> {
    /// Locks the state. A forked child gets an empty state, whose changes are not kept.
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        if self.process.is_here() { self.lock_here().into() } else { LockGuard::empty() }
    }

    /// [`Self::lock`], or `None` if the lock is held.
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        if !self.process.is_here() {
            return Some(LockGuard::empty());
        }
        match self.mutex.try_lock() {
            Ok(guard) => Some(LockGuard::of(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(LockGuard::of(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: Default> Default for Lock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// State of the whole process, behind a lock. A forked child begins with an empty state of its own.
/// The parent's state is leaked in the child, because a thread that does not exist there may have
/// locked it.
pub(crate) struct PerProcess<T>(AtomicPtr<Lock<T>>);

impl<T: Default + Send> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(crate) fn lock(&'static self) -> LockGuard<'static, T> {
        let mut found = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: the pointer is null, or was leaked below and is never freed.
            if let Some(lock) = unsafe { found.as_ref() }
                && lock.process.is_here()
            {
                return lock.lock_here().into();
            }
            let own = Box::into_raw(Box::<Lock<T>>::default());
            match self.0.compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => found = own,
                Err(others) => {
                    // SAFETY: the pointer comes from a box, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(own) });
                    found = others;
                }
            }
        }
    }
}

impl<'a, T> LockGuard<'a, T> {
    const fn of_state(state: Guarded<'a, T>, held: Held) -> Self {
        Self { state, _held: held }
    }

    fn of(guard: MutexGuard<'a, T>) -> Self {
        Self::of_state(Guarded::Locked(guard), Held::one())
    }

    /// Sleeps, with the lock released, until `condition` is notified. It may also wake spuriously.
    pub(crate) fn wait(self, condition: &Condvar) -> Self {
        let Self { state, _held } = self;
        let state = match state {
            Guarded::Locked(guard) => {
                Guarded::Locked(condition.wait(guard).unwrap_or_else(PoisonError::into_inner))
            }
            // No thread notifies a child.
            empty @ Guarded::Empty(_) => empty,
        };
        Self::of_state(state, _held)
    }

    /// [`Self::wait`] for at most `timeout`. Returns whether the time has passed.
    pub(crate) fn wait_timeout(self, condition: &Condvar, timeout: Duration) -> (Self, bool) {
        let Self { state, _held } = self;
        let (state, is_over) = match state {
            Guarded::Locked(guard) => {
                let waited = condition.wait_timeout(guard, timeout);
                let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
                (Guarded::Locked(guard), result.timed_out())
            }
            empty @ Guarded::Empty(_) => (empty, true),
        };
        (Self::of_state(state, _held), is_over)
    }
}

impl<T: Default> LockGuard<'_, T> {
    #[cold]
    fn empty() -> Self {
        Self::of_state(Guarded::Empty(Box::default()), Held::one())
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.state {
            Guarded::Locked(guard) => guard,
            Guarded::Empty(state) => state,
        }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.state {
            Guarded::Locked(guard) => guard,
            Guarded::Empty(state) => state,
        }
    }
}

impl<'a, T> From<HereGuard<'a, T>> for LockGuard<'a, T> {
    fn from(here: HereGuard<'a, T>) -> Self {
        Self::of_state(Guarded::Locked(here.guard), here._held)
    }
}

impl<T> Deref for HereGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for HereGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

thread_local! {
    /// The number of the library's locks that the thread holds; counted in debug builds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// One lock that the thread holds.
struct Held;

impl Held {
    fn one() -> Self {
        count(|held| held + 1);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        count(|held| held.saturating_sub(1));
    }
}

fn count(change: impl FnOnce(usize) -> usize) {
    if cfg!(debug_assertions) {
        HELD.set(change(HELD.get()));
    }
}

/// Call it before code of others runs: a waker, a logger, or a drop of foreign values.
pub(crate) fn assert_none_held() {
    debug_assert!(
        HELD.get() == 0 || thread::panicking(),
        "code of others is about to run under {} locks of the library",
        HELD.get()
    );
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn code_of_others_under_a_lock_fails_an_assertion() {
        let lock = Lock::new(7);
        assert_none_held();
        let guard = lock.lock();
        let failed = std::panic::catch_unwind(assert_none_held).is_err();
        assert_eq!(failed, cfg!(debug_assertions));
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_none_held();
        assert_eq!(*lock.lock(), 7);
    }

    #[test]
    fn a_child_has_a_state_of_its_own_though_a_thread_of_its_parent_held_the_lock() {
        static STATE: PerProcess<u32> = PerProcess::new();
        *STATE.lock() = 7;
        let (locked, is_locked) = mpsc::channel();
        let (end, is_over) = mpsc::channel::<()>();
        let holder = thread::spawn(move || {
            let _guard = STATE.lock();
            locked.send(()).unwrap();
            let _ = is_over.recv();
        });
        is_locked.recv().unwrap();
        // SAFETY: the child only takes the lock, which is the subject of the test, and ends at
        // once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let found = *STATE.lock();
            *STATE.lock() = 1;
            // SAFETY: this ends the child without the exit handlers of its parent.
            unsafe { libc::_exit(i32::from(found != 0 || *STATE.lock() != 1)) }
        }
        let mut status = -1;
        // SAFETY: this waits for that child, and writes a number of this function.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        drop(end);
        holder.join().unwrap();
        assert_eq!((status, *STATE.lock()), (0, 7));
    }
}
