//! The state that a request and its answer share between two threads.

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

/// The most replies that a thread keeps for its next requests.
const SPARE_MAX: usize = 256;

thread_local! {
    static SPARE: RefCell<Vec<Arc<Reply>>> = const { RefCell::new(Vec::new()) };
}

/// The state that the caller of an operation shares with its I/O thread.
#[derive(Debug)]
pub(crate) struct Reply {
    state: Lock<State>,
}

/// A message to an I/O thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new request.
    Request(Promise),
    /// Cancels a request that nobody waits for.
    Cancel(Arc<Reply>),
}

/// A request to an I/O thread.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) class: QueueClass,
    /// The time at which it was made.
    pub(crate) since: Time,
    /// The number of the submitting thread.
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
    /// The time from the call to the dispatch of the last part, in nanoseconds.
    pub queue_nanos: u64,
    /// The time from that dispatch to the end in the disk, in nanoseconds. The time until the
    /// caller gets the result is not included.
    pub disk_nanos: u64,
}

impl Completion {
    /// The completion of an operation that did not reach the disk.
    pub(crate) fn refusal(error: io::Error, operation: Operation) -> Self {
        Self { result: Err(error), operation, timing: Timing::default() }
    }

    /// The completion for a caller that waits again after the answer. It holds no operation.
    pub(crate) fn none() -> Self {
        let error = io::Error::other("the answer was taken already");
        Self::refusal(error, Operation::nothing())
    }
}

/// The I/O thread panicked before it answered.
#[derive(thiserror::Error)]
#[error(
    "the disk's I/O thread panicked and was restarted; the outcome of this request is unknown; \
     try again"
)]
struct WorkerPanicked;

forebay_core::debug_as_display!(WorkerPanicked);

/// The I/O thread's handle of a reply that it has to answer. If it is dropped without an answer,
/// for example after a panic, the answer is an error.
#[derive(Debug)]
pub(crate) struct Promise {
    /// `None` once it is fulfilled.
    reply: Option<Arc<Reply>>,
}

#[derive(Debug, Default)]
struct State {
    /// The request, until the I/O thread takes it.
    request: Option<Submission>,
    answer: Option<Completion>,
    waker: Option<KeptWaker>,
    /// The key of the request in its I/O thread, while that has it.
    key: Option<usize>,
    /// Nobody waits for the answer, and the request is not needed any more.
    abandoned: bool,
    /// Nobody waits for the answer, but the request is still executed. This keeps the I/O threads
    /// of its disk until its end.
    detached: Option<Arc<dyn Any + Send + Sync>>,
}

impl Reply {
    /// A reply for a request: a recycled one of this thread if there is one.
    pub(crate) fn new(request: Submission) -> Arc<Self> {
        let state = State { request: Some(request), ..State::default() };
        let spare = SPARE.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
        if let Some(mut reply) = spare
            && let Some(unused) = Arc::get_mut(&mut reply)
        {
            // In a forked child, recycled replies are those of the parent. So the lock is replaced
            // too.
            unused.state = Lock::new(state);
            return reply;
        }
        Arc::new(Self { state: Lock::new(state) })
    }

    /// Makes an unused reply available to the next request of this thread.
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

    /// Asks the I/O thread to cancel the request.
    pub(crate) fn cancel(self: &Arc<Self>, inbox: &Inbox<Message>) {
        inbox.send(Message::Cancel(Arc::clone(self)));
    }

    /// The answer. If there is none yet, the waker of `context` is woken at the answer.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Completion> {
        // Wakers are cloned and dropped without the lock. They run code of others, which may use
        // this reply, and the drop of the last waker can end a task.
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

    /// Answers a request that was not sent.
    pub(crate) fn refuse(&self, error: io::Error) {
        let mut state = self.state.lock();
        let Some(Submission { operation, .. }) = state.request.take() else {
            return messages::report_invariant("a reply that was not sent has no request");
        };
        state.answer = Some(Completion::refusal(error, operation));
    }

    /// Abandons the request. Returns whether an I/O thread may still have it.
    pub(crate) fn abandon(&self) -> bool {
        let mut state = self.state.lock();
        state.abandoned = true;
        let (request, waker) = (state.request.take(), state.waker.take());
        let is_done = state.answer.take().is_some();
        // Buffers and wakers are dropped without the lock.
        drop(state);
        drop((request, waker));
        !is_done
    }

    /// Abandons the answer, but not the request. Until the request ends, it keeps `disk` and so the
    /// I/O threads. Returns the answer if there is one already.
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

    /// Takes back a request that no I/O thread has taken, and abandons it.
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

    /// The key of the request in its I/O thread, while that has it.
    pub(super) fn key(&self) -> Option<usize> {
        self.state.lock().key
    }

    /// Sets the answer. Returns the waker to wake.
    fn answer(&self, answer: Completion) -> Option<KeptWaker> {
        let mut state = self.state.lock();
        state.key = None;
        let detached = state.detached.take();
        if state.abandoned || detached.is_some() {
            drop(state);
            // The drop of the program's own buffer may panic.
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

    /// Takes the request for the I/O thread, which gives it this `key`. `None` if it was abandoned.
    pub(super) fn take_request(&self, key: usize) -> Option<Submission> {
        self.reply.as_ref()?.take_request(key)
    }

    /// Sets the answer. Returns the waker to wake.
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

    /// The last waker of a task. Its drop ends the task's values.
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

    /// The functions of a waker that accesses the reply whenever it is cloned.
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
            // SAFETY: the functions of the table only access the reply.
            let waker = unsafe { Waker::new((&raw const reply).cast(), &CURIOUS) };
            assert!(reply.poll(&Context::from_waker(&waker)).is_pending());
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
