//! Ending the sleep of an engine from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;
/// Asleep in an event loop of the caller's.
const WATCHED: u8 = 3;

/// Wakes the engine it came from; can be cloned and used from any thread.
#[derive(Clone, Debug)]
pub struct EngineWaker {
    descriptor: Arc<WakeDescriptor>,
}

impl EngineWaker {
    pub(super) const fn new(descriptor: Arc<WakeDescriptor>) -> Self {
        Self { descriptor }
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
        self.descriptor.notify();
    }
}

/// A sleeper's state, and the means to end the sleep: an eventfd that the
/// sleeper polls.
///
/// The read-modify-writes of one variable have one order, so a notification
/// either comes before the sleep, which then does not begin, or finds the
/// sleeper and ends it: none is lost.
#[derive(Debug)]
pub(super) struct WakeDescriptor {
    state: AtomicU8,
    /// Ends a sleep of the engine.
    eventfd: OwnedFd,
    /// Ends a sleep elsewhere.
    watched: OwnedFd,
}

impl WakeDescriptor {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self { state: AtomicU8::new(AWAKE), eventfd: eventfd()?, watched: eventfd()? }))
    }

    pub(super) fn eventfd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    pub(super) fn notify(&self) {
        // Even when a notification is pending: the engine must see what this
        // thread did before, and only a write of ours gives it that.
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            ASLEEP => signal(&self.eventfd),
            WATCHED => signal(&self.watched),
            _ => {}
        }
    }

    /// Announces the sleep. False when a notification is pending: then there
    /// must be none.
    pub(super) fn begin_sleep(&self) -> bool {
        self.change_from_awake(ASLEEP)
    }

    fn change_from_awake(&self, to: u8) -> bool {
        self.state.compare_exchange(AWAKE, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The descriptor to poll in a sleep elsewhere.
    pub(super) fn watched(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    /// Announces a sleep elsewhere, which ends at once when there is something
    /// to do already: `busy`, or a notification.
    pub(super) fn watch(&self, busy: bool) {
        if !self.change_from_awake(WATCHED) || busy {
            signal(&self.watched);
        }
    }

    /// Makes the descriptor of a sleep elsewhere unreadable again. Whether it was
    /// readable.
    pub(super) fn stop_watch(&self) -> bool {
        clear(&self.watched)
    }

    /// Ends the sleep and takes a pending notification.
    pub(super) fn end_sleep(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeps until notified or for `timeout`, or ends early on a signal; `None`
    /// is without limit.
    pub(super) fn park(&self, timeout: Option<Duration>) {
        if self.begin_sleep() {
            poll(&self.eventfd, timeout);
            clear(&self.eventfd);
        }
        self.end_sleep();
    }

    /// Sleeps in the same way until the descriptor of a sleep elsewhere is
    /// readable, which others than wakers may make it too.
    pub(super) fn park_watched(&self, timeout: Option<Duration>) {
        if self.change_from_awake(WATCHED) {
            poll(&self.watched, timeout);
        }
    }
}

/// An eventfd that is not readable.
fn eventfd() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an eventfd readable.
fn signal(eventfd: &OwnedFd) {
    // It fails only when its 64-bit count is full, and is then readable anyway.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Makes an eventfd unreadable; it may be so already. Whether it was readable.
fn clear(eventfd: &OwnedFd) -> bool {
    rustix::io::read(eventfd, &mut [0; 8]).is_ok()
}

/// Waits until an eventfd is readable, or for `timeout`, or less on a signal.
fn poll(eventfd: &OwnedFd, timeout: Option<Duration>) {
    // A time too long to represent is no limit.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds = [PollFd::new(eventfd, PollFlags::IN)];
    // Whatever ends the sleep, the caller looks what there is to do.
    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_prevents_the_next_sleep_only() {
        let descriptor = WakeDescriptor::new().unwrap();
        descriptor.notify();
        descriptor.notify();
        assert!(!descriptor.begin_sleep());
        descriptor.end_sleep();
        assert!(descriptor.begin_sleep());
    }

    #[test]
    fn an_eventfd_is_written_once_per_sleep() {
        let descriptor = WakeDescriptor::new().unwrap();
        let count = || {
            let mut bytes = [0; 8];
            rustix::io::read(descriptor.eventfd(), &mut bytes)
                .map_or(0, |_| u64::from_ne_bytes(bytes))
        };
        descriptor.notify();
        assert_eq!(count(), 0, "awake: no system call");
        descriptor.end_sleep();
        assert!(descriptor.begin_sleep());
        descriptor.notify();
        descriptor.notify();
        assert_eq!(count(), 1);
    }

    #[test]
    fn no_notification_is_lost() {
        let descriptor = WakeDescriptor::new().unwrap();
        let (to_notifier, notifier) = std::sync::mpsc::channel();
        let waker = EngineWaker::new(Arc::clone(&descriptor));
        let thread = std::thread::spawn(move || notifier.iter().for_each(|()| waker.wake()));
        for _ in 0..10_000 {
            to_notifier.send(()).unwrap();
            descriptor.park(None);
        }
        drop(to_notifier);
        thread.join().unwrap();
    }
}
