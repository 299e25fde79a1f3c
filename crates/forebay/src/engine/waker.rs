//! How another thread ends the sleep of an engine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;
/// The caller's event loop sleeps on the descriptor.
const WATCHED: u8 = 3;

/// Wakes the engine that made it. It can be cloned and used from any thread.
#[derive(Clone, Debug)]
pub struct EngineWaker {
    descriptor: Arc<WakeDescriptor>,
}

impl EngineWaker {
    pub(super) const fn new(descriptor: Arc<WakeDescriptor>) -> Self {
        Self { descriptor }
    }

    /// Ends a running [`Engine::submit_and_wait`], or the next one. What this thread did before is
    /// visible to the engine's thread afterwards.
    ///
    /// It costs one atomic operation while the engine is awake. Only the first call during a sleep
    /// makes a system call. It has no effect once the engine is dropped.
    ///
    /// [`Engine::submit_and_wait`]: super::Engine::submit_and_wait
    pub fn wake(&self) {
        self.descriptor.notify();
    }
}

/// The state of a sleeper, and the eventfds that it polls.
///
/// All read-modify-write operations on one atomic variable have one total order. So a notification
/// comes before the sleep, which then does not begin, or it finds the sleeper and ends the sleep.
/// No notification is lost.
#[derive(Debug)]
pub(super) struct WakeDescriptor {
    state: AtomicU8,
    /// Ends a sleep in the engine.
    eventfd: OwnedFd,
    /// Ends a sleep in the caller's event loop.
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
        // The swap is needed even if a notification is pending. Only a write by this thread makes
        // its earlier writes visible to the engine.
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            ASLEEP => signal(&self.eventfd),
            WATCHED => signal(&self.watched),
            _ => {}
        }
    }

    /// Announces a sleep. Returns false if a notification is pending, and the caller must not sleep
    /// then.
    pub(super) fn begin_sleep(&self) -> bool {
        self.change_from_awake(ASLEEP)
    }

    fn change_from_awake(&self, to: u8) -> bool {
        self.state.compare_exchange(AWAKE, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The descriptor for the caller's event loop.
    pub(super) fn watched(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    /// Announces a sleep in the caller's event loop. The sleep ends at once if there is something
    /// to do: `busy`, or a notification.
    pub(super) fn watch(&self, busy: bool) {
        if !self.change_from_awake(WATCHED) || busy {
            signal(&self.watched);
        }
    }

    /// Makes the descriptor of the event loop unreadable. Returns whether it was readable.
    pub(super) fn stop_watch(&self) -> bool {
        clear(&self.watched)
    }

    /// Ends the sleep and takes a pending notification.
    pub(super) fn end_sleep(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeps until a notification, for at most `timeout`, or without a limit for `None`. A signal
    /// ends the sleep early.
    pub(super) fn park(&self, timeout: Option<Duration>) {
        if self.begin_sleep() {
            poll(&self.eventfd, timeout);
            clear(&self.eventfd);
        }
        self.end_sleep();
    }

    /// Sleeps until the descriptor of the event loop is readable. The kernel may make it readable
    /// too, not only wakers.
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

/// Makes an eventfd unreadable. Returns whether it was readable.
fn clear(eventfd: &OwnedFd) -> bool {
    rustix::io::read(eventfd, &mut [0; 8]).is_ok()
}

/// Waits until an eventfd is readable, for at most `timeout`. A signal ends the wait early.
fn poll(eventfd: &OwnedFd, timeout: Option<Duration>) {
    // A timeout that is too long to represent is no limit.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds = [PollFd::new(eventfd, PollFlags::IN)];
    // The caller looks for work, whatever ended the sleep.
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
