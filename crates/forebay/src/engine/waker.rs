//! Ending the sleep of an engine from another thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::EventfdFlags;

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;

/// Wakes the engine it came from; can be cloned and used from any thread.
#[derive(Clone, Debug)]
pub struct EngineWaker {
    bell: Arc<Bell>,
}

impl EngineWaker {
    pub(super) const fn new(bell: Arc<Bell>) -> Self {
        Self { bell }
    }

    /// Ends a running or the next [`Engine::submit_and_wait`]. What this
    /// thread did before is visible to the engine's thread afterwards.
    ///
    /// Costs one atomic operation while the engine is awake; only the first
    /// call during a sleep makes a system call. Does nothing once the engine
    /// is dropped.
    ///
    /// [`Engine::submit_and_wait`]: super::Engine::submit_and_wait
    pub fn wake(&self) {
        self.bell.ring();
    }
}

/// A sleeper's state, and the means to end the sleep.
///
/// The read-modify-writes of one variable have one order, so a notification
/// either comes before the sleep, which then does not begin, or finds the
/// sleeper and ends it: none is lost.
#[derive(Debug)]
pub(super) struct Bell {
    state: AtomicU8,
    clapper: Clapper,
}

#[derive(Debug)]
enum Clapper {
    /// The sleeper waits in the kernel for this eventfd.
    Eventfd(OwnedFd),
    /// The sleeper is parked.
    Unpark(Thread),
}

impl Bell {
    /// A bell for a sleeper that polls [`Bell::eventfd`].
    pub(super) fn with_eventfd() -> io::Result<Arc<Self>> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self::new(Clapper::Eventfd(fd)))
    }

    /// A bell for the calling thread, which sleeps in [`Bell::park`].
    pub(super) fn for_this_thread() -> Arc<Self> {
        Self::new(Clapper::Unpark(thread::current()))
    }

    fn new(clapper: Clapper) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(AWAKE), clapper })
    }

    pub(super) fn eventfd(&self) -> Option<BorrowedFd<'_>> {
        match &self.clapper {
            Clapper::Eventfd(fd) => Some(fd.as_fd()),
            Clapper::Unpark(_) => None,
        }
    }

    pub(super) fn ring(&self) {
        // Even when a notification is pending: the engine must see what this
        // thread did before, and only a write of ours gives it that.
        if self.state.swap(NOTIFIED, Ordering::AcqRel) != ASLEEP {
            return;
        }
        match &self.clapper {
            Clapper::Eventfd(fd) => {
                // It fails only when its 64-bit count is full, and is then
                // readable anyway.
                let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
            }
            Clapper::Unpark(sleeper) => sleeper.unpark(),
        }
    }

    /// Announces the sleep. False when a notification is pending: then there
    /// must be none.
    pub(super) fn fall_asleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends the sleep and takes a pending notification.
    pub(super) fn awaken(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeps until rung or for `timeout`; `None` is without limit.
    pub(super) fn park(&self, timeout: Option<Duration>) {
        // A moment too far away to represent is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        if self.fall_asleep() {
            while self.state.load(Ordering::Acquire) == ASLEEP {
                let Some(deadline) = deadline else {
                    thread::park();
                    continue;
                };
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
        }
        self.awaken();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_prevents_the_next_sleep_only() {
        let bell = Bell::for_this_thread();
        bell.ring();
        bell.ring();
        assert!(!bell.fall_asleep());
        bell.awaken();
        assert!(bell.fall_asleep());
    }

    #[test]
    fn an_eventfd_is_written_once_per_sleep() {
        let bell = Bell::with_eventfd().unwrap();
        let count = || {
            let mut bytes = [0; 8];
            rustix::io::read(bell.eventfd().unwrap(), &mut bytes)
                .map_or(0, |_| u64::from_ne_bytes(bytes))
        };
        bell.ring();
        assert_eq!(count(), 0, "awake: no system call");
        bell.awaken();
        assert!(bell.fall_asleep());
        bell.ring();
        bell.ring();
        assert_eq!(count(), 1);
    }

    #[test]
    fn no_notification_is_lost() {
        let bell = Bell::for_this_thread();
        let (to_ringer, ringer) = std::sync::mpsc::channel();
        let waker = EngineWaker::new(Arc::clone(&bell));
        let thread = thread::spawn(move || ringer.iter().for_each(|()| waker.wake()));
        for _ in 0..10_000 {
            to_ringer.send(()).unwrap();
            bell.park(None);
        }
        drop(to_ringer);
        thread.join().unwrap();
    }
}
