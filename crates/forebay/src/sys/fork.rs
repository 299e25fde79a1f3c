//! Forked children, which own nothing of the scheduler.
//!
//! A child has a copy of its parent's memory, with every lock in the state of the fork, and none of
//! its threads. It shares the parent's eventfds and sockets. So values that were made before the
//! fork refuse to work in the child, and are forgotten there instead of dropped. The child can make
//! new ones.
//!
//! Decision: `docs/decisions/0036-forked-children.md`.

use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The error of a child that uses a value which its parent made before the fork.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("made before the fork, by the parent process: make a scheduler in the child for its own")]
pub struct Forked;

forebay_core::debug_as_display!(Forked);

impl From<Forked> for io::Error {
    fn from(forked: Forked) -> Self {
        Self::other(forked)
    }
}

/// The number of forks that led to this process, since the first [`Process::current`].
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process in which a value was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handler exists for ever, and does only what is allowed in a child of a
            // program with threads: it adds to a number, and closes descriptors that nothing in the
            // child uses. The only error is a lack of memory. Forks go unnoticed then.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(begin_child)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether the calling process is this one, and not a child of it.
    pub(crate) fn is_here(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    pub(crate) fn check(self) -> Result<(), Forked> {
        if self.is_here() { Ok(()) } else { Err(Forked) }
    }
}

extern "C" fn begin_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    for place in &OF_PARENT {
        let fd = place.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            // SAFETY: a `ParentFd` owns it, and does not close it in a child.
            unsafe { libc::close(fd) };
        }
    }
}

/// The most [`ParentFd`]s that children close. Further ones stay open in children.
const OF_PARENT_MAX: usize = 1024;
/// The number of no descriptor.
const NONE: RawFd = -1;

/// The descriptors that children close.
static OF_PARENT: [AtomicI32; OF_PARENT_MAX] = [const { AtomicI32::new(NONE) }; OF_PARENT_MAX];

/// A descriptor that a forked child closes at once, so that its locks end with the process that
/// opened it.
#[derive(Debug)]
pub(crate) struct ParentFd {
    place: Option<&'static AtomicI32>,
    fd: OfProcess<OwnedFd>,
}

impl ParentFd {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        // `OfProcess::new` installs the handler of forks.
        let fd = OfProcess::new(fd);
        let take = |place: &&AtomicI32| {
            let number = fd.as_raw_fd();
            place.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        Self { place: OF_PARENT.iter().find(take), fd }
    }
}

impl AsFd for ParentFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for ParentFd {
    fn drop(&mut self) {
        // The entry is cleared before the number can belong to another file. A child has cleared
        // all entries.
        if self.fd.process().is_here()
            && let Some(place) = self.place
        {
            place.store(NONE, Ordering::Relaxed);
        }
    }
}

/// A value that is dropped only in the process that made it. Children of the process forget it.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    process: Process,
    value: ManuallyDrop<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: Process::current(), value: ManuallyDrop::new(value) }
    }

    pub(crate) fn process(&self) -> Process {
        self.process
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process.is_here() {
            // SAFETY: only this code drops the value, and it runs once.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}
