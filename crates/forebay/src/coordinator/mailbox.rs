//! How orders reach an I/O thread.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slot::{Promise, Slot};
use crate::engine::EngineWaker;

/// Most requests that one I/O thread has, waiting and in the disk.
pub const REQUESTS_MAX: usize = 1 << 16;

/// What an I/O thread is told.
#[derive(Debug)]
pub(super) enum Letter {
    /// A new order.
    Order(Promise),
    /// Nobody wants this one any more.
    Cancel(Arc<Slot>),
}

/// The way to one I/O thread.
#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Wakes the thread.
    waker: EngineWaker,
    letters: Vec<Letter>,
    /// Orders that are not answered.
    unanswered: usize,
    closed: bool,
}

/// The mailbox takes no more orders.
#[derive(Debug, thiserror::Error)]
#[error("{REQUESTS_MAX} requests wait for the disk or are in it: wait for some of them")]
pub(crate) struct MailboxFull;

impl Mailbox {
    pub(super) fn new(waker: EngineWaker) -> Self {
        let state = State { waker, letters: Vec::new(), unanswered: 0, closed: false };
        Self { state: Mutex::new(state) }
    }

    /// Sends an order; the thread is woken if it sleeps.
    pub(crate) fn order(&self, slot: &Arc<Slot>) -> Result<(), MailboxFull> {
        let mut state = self.lock();
        if state.unanswered >= REQUESTS_MAX {
            return Err(MailboxFull);
        }
        state.unanswered += 1;
        self.post(state, Letter::Order(Promise::new(Arc::clone(slot))));
        Ok(())
    }

    /// Asks that an order end early.
    pub(crate) fn cancel(&self, slot: &Arc<Slot>) {
        self.post(self.lock(), Letter::Cancel(Arc::clone(slot)));
    }

    /// Tells the thread to end.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waker = state.waker.clone();
        drop(state);
        waker.wake();
    }

    /// Moves what has come into `letters`, which is empty; `answered` orders
    /// are done. False when the thread is to end.
    pub(super) fn take(&self, letters: &mut Vec<Letter>, answered: usize) -> bool {
        let mut state = self.lock();
        state.unanswered -= answered;
        mem::swap(&mut state.letters, letters);
        !state.closed
    }

    /// The thread has broken down, which has ended all orders that it had. It
    /// begins anew, and is woken by `waker`. False when it is to end.
    pub(super) fn begin_anew(&self, waker: EngineWaker) -> bool {
        let mut state = self.lock();
        state.waker = waker;
        let orders = state.letters.iter().filter(|letter| matches!(letter, Letter::Order(_)));
        state.unanswered = orders.count();
        !state.closed
    }

    /// Ends all orders that have come to a thread that has broken down. False
    /// when the thread is to end.
    pub(super) fn return_all(&self) -> bool {
        let mut state = self.lock();
        state.unanswered = 0;
        let letters = mem::take(&mut state.letters);
        let closed = state.closed;
        drop(state);
        drop(letters);
        !closed
    }

    fn post(&self, mut state: MutexGuard<'_, State>, letter: Letter) {
        // The first of several letters has woken the thread.
        let waker = state.letters.is_empty().then(|| state.waker.clone());
        state.letters.push(letter);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    use forebay_core::{DiskModel, GroupConfig, Policy, Time};
    use forebay_driver::QueueClass;

    use super::*;
    use crate::coordinator::{Answer, IoThreads, IoThreadsConfig, Message};
    use crate::disk::DiskGroup;
    use crate::engine::Operation;
    use crate::streams::Streams;
    use crate::{AlignedBuf, DirectFile};

    fn answer(slot: &Slot) -> Answer {
        let begin = Instant::now();
        loop {
            if let Poll::Ready(answer) = slot.poll(&Context::from_waker(Waker::noop())) {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no answer");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_io_thread_that_panics_ends_what_it_has_with_errors_and_begins_anew() {
        let config = GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited);
        let group = Arc::new(DiskGroup::new("disk", config, 0, crate::events::Hook::default()));
        let id = group.io.add_class(None, 100).unwrap();
        let class = QueueClass { queue: 0, id, holder: false };
        let threads = IoThreads::new(&IoThreadsConfig::default());
        let mailbox = threads.mailbox(&Streams::new(group, None), "disk", 0).unwrap();
        let slot =
            |operation| Slot::new(Message { class, since: Time::ZERO, submitter: 0, operation });
        for _ in 0..3 {
            let (reader, _writer) = std::io::pipe().unwrap();
            let pipe = DirectFile::from_fd(OwnedFd::from(reader)).unwrap();
            let buffer = AlignedBuf::new(4096, 4096).unwrap();
            let hangs = slot(Operation::read(pipe, 0, buffer));
            mailbox.order(&hangs).unwrap();
            // More are answered than were counted: the thread panics at that.
            for _ in 0..2 {
                let uncounted = slot(Operation::unlink("/nothing/there", 0).unwrap());
                mailbox.post(mailbox.lock(), Letter::Order(Promise::new(uncounted)));
            }
            let error = answer(&hangs).result.unwrap_err();
            assert!(error.to_string().contains("broke down"), "{error}");
            let next = slot(Operation::unlink("/nothing/there", 0).unwrap());
            mailbox.order(&next).unwrap();
            let error = answer(&next).result.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        }
    }
}
