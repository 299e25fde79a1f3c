//! Where a request and its answer change hands.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use forebay_core::Time;
use forebay_driver::QueueClass;

use crate::disk::DiskRecord;
use crate::engine::Operation;
use crate::intent::Membership;
use crate::sys::panics::contain;

/// A thread keeps so many slots for its next requests.
const KEPT_MAX: usize = 256;

thread_local! {
    static KEPT: RefCell<Vec<Arc<Slot>>> = const { RefCell::new(Vec::new()) };
}

/// Shared by whoever wants an operation done and the thread that does it.
#[derive(Debug)]
pub(crate) struct Slot {
    state: Mutex<State>,
}

/// What an I/O thread is asked to do.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) class: QueueClass,
    /// When it was made.
    pub(crate) since: Time,
    /// The number of the thread that asks.
    pub(crate) submitter: u64,
    pub(crate) operation: Operation,
}

/// What became of an operation.
#[derive(Debug)]
pub struct Answer {
    pub(crate) result: io::Result<usize>,
    pub(crate) operation: Operation,
    pub(crate) timing: Timing,
}

/// Where the time of a request went. Both are zero for one that was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// From the call that made it to the dispatch of its last part, in
    /// nanoseconds.
    pub queue_nanos: u64,
    /// From there to its end in the disk, in nanoseconds. What comes after is
    /// the way back to the caller.
    pub disk_nanos: u64,
}

impl Answer {
    /// Of an operation that did not reach the disk.
    pub(crate) fn refusal(error: io::Error, operation: Operation) -> Self {
        Self { result: Err(error), operation, timing: Timing::default() }
    }

    /// For whoever asks again after the answer; nothing is left to hand over.
    pub(crate) fn none() -> Self {
        let error = io::Error::other("the answer was taken already");
        Self::refusal(error, Operation::nothing())
    }
}

/// The I/O thread broke down before it had answered.
#[derive(Debug, thiserror::Error)]
#[error(
    "the disk's I/O thread broke down, and began anew: it is not known whether this was done; \
     try again"
)]
struct BrokenDown;

/// A slot whose I/O thread owes an answer. Dropped without one, as when the
/// thread breaks down, it answers with an error.
#[derive(Debug)]
pub(super) struct Promise {
    /// Taken when it is kept.
    slot: Option<Arc<Slot>>,
}

#[derive(Debug, Default)]
struct State {
    /// Until the I/O thread takes it.
    order: Option<Message>,
    answer: Option<Answer>,
    waker: Option<Waker>,
    /// The I/O thread's name for it, while it has it.
    key: Option<usize>,
    /// Nobody waits for the answer, or wants the request.
    abandoned: bool,
    /// Nobody waits for the answer, but the request is to be done.
    kept: Option<Kept>,
}

/// What a request needs to its end where nobody holds it.
pub(crate) struct Kept {
    /// Keeps its I/O threads.
    pub(crate) _disk: Arc<DiskRecord>,
    /// It can still be cancelled with its intent.
    pub(crate) _membership: Option<Membership>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

impl Slot {
    /// A slot with an order; one that this thread has kept, if there is any.
    pub(crate) fn new(order: Message) -> Arc<Self> {
        let state = State { order: Some(order), ..State::default() };
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        if let Some(mut slot) = kept
            && let Some(unused) = Arc::get_mut(&mut slot)
        {
            *unused.state.get_mut().unwrap_or_else(PoisonError::into_inner) = state;
            return slot;
        }
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Keeps a slot that is done with for the next order of this thread.
    pub(crate) fn keep(mut slot: Arc<Self>) {
        if Arc::get_mut(&mut slot).is_some() {
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < KEPT_MAX {
                    kept.push(slot);
                }
            });
        }
    }

    /// The answer; if there is none yet, the task will be woken.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Answer> {
        // Wakers are cloned and dropped without the lock: that is others' code,
        // which may come back here, and the last waker of a task can end it.
        let mut waker = None;
        loop {
            let mut state = self.lock();
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
            waker = Some(context.waker().clone());
        }
    }

    /// Answers an order that was not sent.
    pub(crate) fn refuse(&self, error: io::Error) {
        let mut state = self.lock();
        if let Some(Message { operation, .. }) = state.order.take() {
            state.answer = Some(Answer::refusal(error, operation));
        }
    }

    /// Nobody waits any more. Returns whether an I/O thread may still have it.
    pub(crate) fn abandon(&self) -> bool {
        let mut state = self.lock();
        state.abandoned = true;
        let (order, waker) = (state.order.take(), state.waker.take());
        let is_done = state.answer.take().is_some();
        // Buffers are freed, and wakers dropped, without the lock.
        drop(state);
        drop((order, waker));
        !is_done
    }

    /// Nobody waits any more, and the request goes on to its end, with what it
    /// keeps. The answer, if it is there already.
    pub(crate) fn detach(&self, kept: Kept) -> Option<Answer> {
        let mut state = self.lock();
        let answer = state.answer.take();
        let waker = state.waker.take();
        let kept = match &answer {
            Some(_) => Some(kept),
            None => state.kept.replace(kept),
        };
        drop(state);
        drop((waker, kept));
        answer
    }

    /// Takes back what no I/O thread has yet: nobody waits for it any more.
    pub(crate) fn take_back(&self) -> Option<Operation> {
        let mut state = self.lock();
        let order = state.order.take()?;
        state.abandoned = true;
        Some(order.operation)
    }

    fn take_order(&self, key: usize) -> Option<Message> {
        let mut state = self.lock();
        let order = state.order.take()?;
        state.key = Some(key);
        Some(order)
    }

    /// What the I/O thread calls it, while it has it.
    pub(super) fn key(&self) -> Option<usize> {
        self.lock().key
    }

    /// Hands the answer over. Returns whom to wake.
    fn answer(&self, answer: Answer) -> Option<Waker> {
        let mut state = self.lock();
        state.key = None;
        let kept = state.kept.take();
        if state.abandoned || kept.is_some() {
            drop(state);
            // A buffer of the program's own may panic then.
            contain(|| drop(answer));
            drop(kept);
            return None;
        }
        state.answer = Some(answer);
        state.waker.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Promise {
    pub(super) const fn new(slot: Arc<Slot>) -> Self {
        Self { slot: Some(slot) }
    }

    /// The order, for the I/O thread that calls it `key` from now on. `None`
    /// if it was abandoned.
    pub(super) fn take_order(&self, key: usize) -> Option<Message> {
        self.slot.as_ref()?.take_order(key)
    }

    /// Keeps the promise. Returns whom to wake.
    pub(super) fn keep(mut self, answer: Answer) -> Option<Waker> {
        self.slot.take()?.answer(answer)
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let order = slot.lock().order.take();
            let operation = order.map_or_else(Operation::nothing, |order| order.operation);
            let error = io::Error::other(BrokenDown);
            if let Some(waker) = slot.answer(Answer::refusal(error, operation)) {
                contain(|| waker.wake());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{RawWaker, RawWakerVTable, Wake};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The last waker of a task: what the task owns ends with it.
    struct Task(Arc<Slot>);

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
            let slot = Arc::new(Slot { state: Mutex::default() });
            let waker = Waker::from(Arc::new(Task(Arc::clone(&slot))));
            assert!(slot.poll(&Context::from_waker(&waker)).is_pending());
            drop(waker);
            assert!(slot.poll(&Context::from_waker(Waker::noop())).is_pending());
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    /// Looks at the slot whenever it is cloned.
    const CURIOUS: RawWakerVTable = RawWakerVTable::new(
        |slot| {
            // SAFETY: the test's slot outlives its wakers.
            unsafe { &*slot.cast::<Slot>() }.key();
            RawWaker::new(slot, &CURIOUS)
        },
        |_| {},
        |_| {},
        |_| {},
    );

    #[test]
    fn a_waker_is_cloned_without_the_lock() {
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let slot = Slot { state: Mutex::default() };
            // SAFETY: the table does nothing but look at the slot.
            let waker = unsafe { Waker::new((&raw const slot).cast(), &CURIOUS) };
            assert!(slot.poll(&Context::from_waker(&waker)).is_pending());
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
