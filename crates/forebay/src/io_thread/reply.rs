//! Where a request and its answer change hands.

use std::any::Any;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_core::Time;
use forebay_driver::QueueClass;

use super::inbox::{Inbox, InboxFull};
use crate::engine::Operation;
use crate::messages;
use crate::sys::lock::Lock;
use crate::sys::panics::contain;
use crate::sys::waker::KeptWaker;

/// A thread keeps this many replies for its next requests.
const SPARE_MAX: usize = 256;

thread_local! {
    static SPARE: RefCell<Vec<Arc<Reply>>> = const { RefCell::new(Vec::new()) };
}

/// Shared by the caller of an operation and the thread that executes it.
#[derive(Debug)]
pub(crate) struct Reply {
    state: Lock<State>,
}

/// What is sent to an I/O thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new request.
    Request(Promise),
    /// Nobody wants this one any more.
    Cancel(Arc<Reply>),
}

/// What an I/O thread is asked to do.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) class: QueueClass,
    /// When it was made.
    pub(crate) since: Time,
    /// The number of the thread that asks.
    pub(crate) submitter: u64,
    pub(crate) operation: Operation,
}

/// The result of an operation.
#[derive(Debug)]
pub struct Completion {
    pub(crate) result: io::Result<usize>,
    pub(crate) operation: Operation,
    pub(crate) timing: Timing,
}

/// The times of a request in the queue and in the disk. Both are 0 for a refused request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// From the call that made it to the dispatch of its last part, in
    /// nanoseconds.
    pub queue_nanos: u64,
    /// From that dispatch to its end in the disk, in nanoseconds. The time until the caller gets
    /// the result is not included.
    pub disk_nanos: u64,
}

impl Completion {
    /// Of an operation that did not reach the disk.
    pub(crate) fn refusal(error: io::Error, operation: Operation) -> Self {
        Self { result: Err(error), operation, timing: Timing::default() }
    }

    /// For a caller that asks again after the answer. There is nothing left to hand over.
    pub(crate) fn none() -> Self {
        let error = io::Error::other("the answer was taken already");
        Self::refusal(error, Operation::nothing())
    }
}

/// The I/O thread panicked before it had answered.
#[derive(thiserror::Error)]
#[error(
    "the disk's I/O thread panicked and was restarted; the outcome of this request is unknown; \
     try again"
)]
struct WorkerPanicked;

forebay_core::debug_as_display!(WorkerPanicked);

/// A reply whose I/O thread owes an answer. Dropped without one, as when the thread panics, it
/// answers with an error.
#[derive(Debug)]
pub(crate) struct Promise {
    /// Taken when it is fulfilled.
    reply: Option<Arc<Reply>>,
}

#[derive(Debug, Default)]
struct State {
    /// Until the I/O thread takes it.
    request: Option<Submission>,
    answer: Option<Completion>,
    waker: Option<KeptWaker>,
    /// The I/O thread's name for it, while it has it.
    key: Option<usize>,
    /// Nobody waits for the answer, or wants the request.
    abandoned: bool,
    /// Nobody waits for the answer, but the request is to be done. This keeps
    /// the I/O threads of its disk.
    detached: Option<Arc<dyn Any + Send + Sync>>,
}

impl Reply {
    /// A reply with a request: a recycled one of this thread, if there is any.
    pub(crate) fn new(request: Submission) -> Arc<Self> {
        let state = State { request: Some(request), ..State::default() };
        let spare = SPARE.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
        if let Some(mut reply) = spare
            && let Some(unused) = Arc::get_mut(&mut reply)
        {
            // A child has those of its parent, whose locks are not its own.
            unused.state = Lock::new(state);
            return reply;
        }
        Arc::new(Self { state: Lock::new(state) })
    }

    /// Makes a reply that is done with available to the next request of this thread.
    pub(crate) fn recycle(mut reply: Arc<Self>) {
        if Arc::get_mut(&mut reply).is_some() {
            let _ = SPARE.try_with(|spares| {
                let mut spares = spares.borrow_mut();
                if spares.len() < SPARE_MAX {
                    spares.push(reply);
                }
            });
        }
    }

    /// Sends the request to an I/O thread.
    pub(crate) fn send(self: &Arc<Self>, inbox: &Inbox<Message>) -> Result<(), InboxFull> {
        inbox.send_request(|| Message::Request(Promise::new(Arc::clone(self))))
    }

    /// Asks the I/O thread that has the request to end it early.
    pub(crate) fn cancel(self: &Arc<Self>, inbox: &Inbox<Message>) {
        inbox.send(Message::Cancel(Arc::clone(self)));
    }

    /// The answer; if there is none yet, the task will be woken.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Completion> {
        // Wakers are cloned and dropped without the lock: that is others' code,
        // which may come back here, and the last waker of a task can end it.
        let mut waker = None;
        loop {
            let mut state = self.state.lock();
            if let Some(answer) = state.answer.take() {
                return Poll::Ready(answer);
            }
            if state.waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                return Poll::Pending;
            }
            if let Some(waker) = waker.take() {
                let before = state.waker.replace(waker);
                drop(state);
                drop(before);
                return Poll::Pending;
            }
            drop(state);
            waker = Some(KeptWaker::of(context.waker()));
        }
    }

    /// Answers an request that was not sent.
    pub(crate) fn refuse(&self, error: io::Error) {
        let mut state = self.state.lock();
        let Some(Submission { operation, .. }) = state.request.take() else {
            return messages::report_invariant("a reply that was not sent has no request");
        };
        state.answer = Some(Completion::refusal(error, operation));
    }

    /// Nobody waits any more. Returns whether an I/O thread may still have it.
    pub(crate) fn abandon(&self) -> bool {
        let mut state = self.state.lock();
        state.abandoned = true;
        let (request, waker) = (state.request.take(), state.waker.take());
        let is_done = state.answer.take().is_some();
        // Buffers are freed, and wakers dropped, without the lock.
        drop(state);
        drop((request, waker));
        !is_done
    }

    /// Nobody waits any more, and the request goes on to its end. Until then it keeps `disk`, and
    /// with it the I/O threads. Returns the answer if it is there already.
    pub(crate) fn detach(&self, disk: Arc<dyn Any + Send + Sync>) -> Option<Completion> {
        let mut state = self.state.lock();
        let answer = state.answer.take();
        let waker = state.waker.take();
        let unused = match &answer {
            Some(_) => Some(disk),
            None => state.detached.replace(disk),
        };
        drop(state);
        drop((waker, unused));
        answer
    }

    /// Takes back what no I/O thread has yet: nobody waits for it any more.
    pub(crate) fn take_back(&self) -> Option<Operation> {
        let mut state = self.state.lock();
        let request = state.request.take()?;
        state.abandoned = true;
        Some(request.operation)
    }

    fn take_request(&self, key: usize) -> Option<Submission> {
        let mut state = self.state.lock();
        let request = state.request.take()?;
        state.key = Some(key);
        Some(request)
    }

    /// What the I/O thread calls it, while it has it.
    pub(super) fn key(&self) -> Option<usize> {
        self.state.lock().key
    }

    /// Hands the answer over. Returns whom to wake.
    fn answer(&self, answer: Completion) -> Option<KeptWaker> {
        let mut state = self.state.lock();
        state.key = None;
        let detached = state.detached.take();
        if state.abandoned || detached.is_some() {
            drop(state);
            // A buffer of the program's own may panic then.
            contain(|| drop(answer));
            drop(detached);
            return None;
        }
        state.answer = Some(answer);
        state.waker.take()
    }
}

impl Promise {
    pub(super) const fn new(reply: Arc<Reply>) -> Self {
        Self { reply: Some(reply) }
    }

    /// The request, for the I/O thread that calls it `key` from now on. `None`
    /// if it was abandoned.
    pub(super) fn take_request(&self, key: usize) -> Option<Submission> {
        self.reply.as_ref()?.take_request(key)
    }

    /// Hands the answer over. Returns the waker to wake.
    pub(super) fn fulfil(mut self, answer: Completion) -> Option<KeptWaker> {
        self.reply.take()?.answer(answer)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            let request = reply.state.lock().request.take();
            let operation = request.map_or_else(Operation::nothing, |request| request.operation);
            let error = io::Error::other(WorkerPanicked);
            if let Some(waker) = reply.answer(Completion::refusal(error, operation)) {
                waker.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{RawWaker, RawWakerVTable, Wake, Waker};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The last waker of a task: what the task owns ends with it.
    struct Task(Arc<Reply>);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Task {
        fn drop(&mut self) {
            self.0.abandon();
        }
    }

    #[test]
    fn a_waker_is_dropped_without_the_lock() {
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let reply = Arc::new(Reply { state: Lock::default() });
            let waker = Waker::from(Arc::new(Task(Arc::clone(&reply))));
            assert!(reply.poll(&Context::from_waker(&waker)).is_pending());
            drop(waker);
            assert!(reply.poll(&Context::from_waker(Waker::noop())).is_pending());
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn sent_requests_cannot_be_refused() {
        let reply = Reply { state: Lock::default() };
        assert!(messages::meets_a_bug(|| reply.refuse(io::Error::other("full"))));
        assert!(reply.poll(&Context::from_waker(Waker::noop())).is_pending());
    }

    /// Looks at the reply whenever it is cloned.
    const CURIOUS: RawWakerVTable = RawWakerVTable::new(
        |reply| {
            // SAFETY: the test's reply outlives its wakers.
            unsafe { &*reply.cast::<Reply>() }.key();
            RawWaker::new(reply, &CURIOUS)
        },
        |_| {},
        |_| {},
        |_| {},
    );

    #[test]
    fn a_waker_is_cloned_without_the_lock() {
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let reply = Reply { state: Lock::default() };
            // SAFETY: the table does nothing but look at the reply.
            let waker = unsafe { Waker::new((&raw const reply).cast(), &CURIOUS) };
            assert!(reply.poll(&Context::from_waker(&waker)).is_pending());
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
