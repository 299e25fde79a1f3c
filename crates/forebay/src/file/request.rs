//! The answer to a request, before it is there.

use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use forebay_core::Op;
use forebay_driver::{Command, QueueClass};
use rustix::io::Errno;

use super::File;
use super::check::{RequestError, check_operation};
use super::growth::Growth;
use crate::admission::holds;
use crate::coordinator::{Answer, Kept, Mailbox, Message, Slot, Timing, is_io_thread, submitter};
use crate::disk::DiskRecord;
use crate::engine::Operation;
use crate::intent::{Intent, Member, Membership};
use crate::sys::clock::Clock;
use crate::sys::fork::Forked;
use crate::{AlignedBuf, Class, Disk, IoBuf};

/// The result of a transfer, and the buffer, or the buffers, that it used.
#[derive(Debug)]
#[must_use = "it may be an error"]
pub struct BufResult<B>(
    /// Bytes transferred.
    pub io::Result<usize>,
    /// What was handed over with the request.
    pub B,
);

impl<B> BufResult<B> {
    /// Both if the transfer succeeded.
    ///
    /// # Errors
    /// The error of the transfer; the buffer is dropped.
    pub fn into_result(self) -> io::Result<(usize, B)> {
        let Self(result, buffer) = self;
        result.map(|bytes| (bytes, buffer))
    }
}

/// The answer to a request that is on its way: a future, and something to
/// [`wait`](Self::wait) for.
///
/// The request does not depend on being polled. Dropping this cancels it: what
/// waits leaves the queue in constant time; what the disk has is cancelled if
/// that is possible. Of a large write, which goes in parts, a part can then be
/// on the disk: [`detach`](Self::detach) it where nobody waits for it. Buffer
/// and descriptor live until the kernel is done with them either way.
#[must_use = "dropping it cancels the request: `wait`, `.await` or `detach` it"]
pub struct Request<T> {
    state: State,
    finish: fn(Answer) -> T,
}

enum State {
    /// It was refused.
    Refused(Answer),
    Sent(Sent),
    /// The answer was taken.
    Over,
}

struct Sent {
    slot: Arc<Slot>,
    mailbox: Arc<Mailbox>,
    membership: Option<Membership>,
    /// Keeps its I/O threads.
    disk: Arc<DiskRecord>,
}

/// What a caller gets to see of an answer.
pub trait Outcome {
    /// The part of `answer` that it sees.
    fn of(answer: Answer) -> Self;
}

impl Outcome for (io::Result<usize>, Operation) {
    fn of(Answer { result, operation, .. }: Answer) -> Self {
        (result, operation)
    }
}

impl<T: Outcome> Outcome for (T, Timing) {
    fn of(answer: Answer) -> Self {
        let timing = answer.timing;
        (T::of(answer), timing)
    }
}

impl<B: IoBuf> Outcome for BufResult<B> {
    fn of(Answer { result, operation, .. }: Answer) -> Self {
        Self(result, operation.into_buffer().unwrap_or_default())
    }
}

impl Outcome for BufResult<Vec<AlignedBuf>> {
    fn of(Answer { result, operation, .. }: Answer) -> Self {
        let buffers = match operation {
            Operation::ReadVectored { buffers, .. } | Operation::WriteVectored { buffers, .. } => {
                buffers
            }
            _ => Vec::new(),
        };
        Self(result, buffers)
    }
}

impl Outcome for io::Result<()> {
    fn of(answer: Answer) -> Self {
        answer.result.map(drop)
    }
}

/// Sends an operation, unless no disk could execute it.
pub(super) fn start<T: Outcome>(file: &File, class: &Class, operation: Operation) -> Request<T> {
    send((file.disk(), file.intent.as_ref(), file.shared.growth.as_ref()), class, operation)
}

/// The answer to an operation that is not sent.
pub(super) fn refused<T: Outcome>(error: io::Error, operation: Operation) -> Request<T> {
    Request { state: State::Refused(Answer::refusal(error, operation)), finish: T::of }
}

fn send<T: Outcome>(
    (disk, intent, growth): (&Disk, Option<&Intent>, Option<&Growth>),
    class: &Class,
    operation: Operation,
) -> Request<T> {
    let op = operation.op();
    if let Err(forked) = disk.record.process.check() {
        return refused(forked.into(), operation);
    }
    if intent.is_some_and(Intent::is_cancelled) {
        return refused(Errno::CANCELED.into(), operation);
    }
    let checked = check_operation(&operation).map_err(io::Error::from);
    let ready = checked.and_then(|()| {
        let address = address(disk, class, op)?;
        growth.map_or(Ok(()), |growth| growth.make_room_for(&operation))?;
        Ok(address)
    });
    let state = match ready {
        Ok((class, mailbox)) => {
            let since = Clock::of_process().now();
            let class = QueueClass { holder: class.holder || holds(since), ..class };
            let order = Message { class, since, submitter: submitter(), operation };
            State::Sent(Sent::new((disk, intent), order, mailbox))
        }
        Err(error) => State::Refused(Answer::refusal(error, operation)),
    };
    Request { state, finish: T::of }
}

impl Disk {
    /// Sends an operation to an I/O thread of this disk, as [files](File) do:
    /// any [`Operation`] whose descriptor is on this disk. One that no disk
    /// could execute is refused with a [`RequestError`].
    ///
    /// Answers with what [`Completion`](crate::shard::Completion) says of it, and
    /// with the operation, to be used again.
    ///
    /// This is how a file is deleted in the background:
    ///
    /// ```
    /// use forebay::Scheduler;
    /// use forebay::engine::Operation;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("obsolete");
    /// # std::fs::write(&path, [7; 8192])?;
    /// let scheduler = Scheduler::builder().build()?;
    /// let cleaning = scheduler.add_class("cleaning", 20)?;
    /// let len = std::fs::metadata(&path)?.len();
    /// let unlink = Operation::unlink(&path, len)?;
    /// let (deleted, _) = scheduler.disk_of(&path)?.submit(&cleaning, unlink).wait();
    /// deleted?;
    /// assert!(!path.exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel safety: dropping the answer cancels the operation as far as it
    /// has not happened; it is lost with its buffers.
    pub fn submit(
        &self,
        class: &Class,
        operation: Operation,
    ) -> Request<(io::Result<usize>, Operation)> {
        send((self, None, None), class, operation)
    }
}

/// What the class is called on the file's disk, and where its requests go.
fn address(disk: &Disk, class: &Class, op: Op) -> io::Result<(QueueClass, Arc<Mailbox>)> {
    let name = || class.name().to_owned();
    if !Arc::ptr_eq(&class.scheduler, &disk.scheduler) {
        return Err(RequestError::OtherScheduler { class: name() }.into());
    }
    let (mailbox, streams) = disk.mailbox(submitter())?;
    let id = streams.class(class, op);
    let id = id.ok_or_else(|| RequestError::ClassRemoved { class: name() })?;
    Ok((id, Arc::clone(mailbox)))
}

impl Sent {
    fn new(
        (disk, intent): (&Disk, Option<&Intent>),
        order: Message,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let slot = Slot::new(order);
        let mut membership = None;
        match mailbox.order(&slot) {
            Err(full) => slot.refuse(io::Error::new(io::ErrorKind::QuotaExceeded, full)),
            Ok(()) => {
                membership = intent.and_then(|intent| {
                    intent.join(Member::Sent(Arc::clone(&slot), Arc::clone(&mailbox)))
                });
            }
        }
        Self { slot, mailbox, membership, disk: Arc::clone(&disk.record) }
    }
}

impl<T: Outcome> Request<T> {
    /// The same, with where its time went.
    pub fn timed(mut self) -> Request<(T, Timing)> {
        let state = mem::replace(&mut self.state, State::Over);
        Request { state, finish: <(T, Timing)>::of }
    }
}

impl<T> Request<T> {
    /// In a forked child it is over: its parent has it, and goes on with it.
    fn forget_in_child(&mut self) -> Option<Forked> {
        let State::Sent(sent) = &self.state else { return None };
        let forked = sent.disk.process.check().err()?;
        mem::forget(mem::replace(&mut self.state, State::Over));
        Some(forked)
    }

    /// Lets the request go on to its end without this handle, even if the
    /// scheduler and the file are dropped; only an [`Intent`] cancels it from
    /// now on. Its buffers are freed at its end. What becomes of it is only
    /// counted: a flush that follows a detached write does not wait for it.
    ///
    /// # Errors
    /// Why the request was refused, or has failed already.
    pub fn detach(mut self) -> io::Result<()> {
        self.forget_in_child().map_or(Ok(()), Err)?;
        let answer = match mem::replace(&mut self.state, State::Over) {
            State::Refused(answer) => Some(answer),
            State::Sent(Sent { slot, disk, membership, .. }) => {
                slot.detach(Kept { _disk: disk, _membership: membership })
            }
            State::Over => None,
        };
        answer.map_or(Ok(()), |answer| answer.result.map(drop))
    }

    /// Blocks the calling thread until the answer is there. Not for tasks,
    /// whose executor it would stop. Where the answer was taken already, by
    /// [`Request::wait_timeout`] or a poll, this is an error, without a buffer.
    ///
    /// On an I/O thread, in a waker that it runs, this would wait for itself:
    /// there the request is cancelled, and its answer is `EDEADLK`.
    pub fn wait(mut self) -> T {
        if matches!(self.state, State::Over) {
            return (self.finish)(Answer::none());
        }
        loop {
            if let Poll::Ready(answer) = self.poll_here() {
                return answer;
            }
            if is_io_thread() {
                return self.refuse_to_wait();
            }
            thread::park();
        }
    }

    /// [`Request::wait`], but for `timeout` at most; `None` if it has passed.
    /// The request is still on its way then: wait again, or drop it to cancel
    /// it. `None`, too, once the answer was taken. On an I/O thread, it waits as
    /// little as [`Request::wait`] does.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<T> {
        let begin = Instant::now();
        loop {
            if let Poll::Ready(answer) = self.poll_here() {
                return Some(answer);
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() || matches!(self.state, State::Over) {
                return None;
            }
            if is_io_thread() {
                return Some(self.refuse_to_wait());
            }
            thread::park_timeout(left);
        }
    }

    /// Cancels the request, for a thread that must not wait for it. Its buffer
    /// is there unless another I/O thread has begun with it.
    fn refuse_to_wait(&mut self) -> T {
        let operation = match &self.state {
            State::Sent(sent) => sent.slot.take_back(),
            State::Refused(_) | State::Over => None,
        };
        // Dropped, it is cancelled.
        drop(mem::replace(self, Self { state: State::Over, finish: self.finish }));
        let operation = operation.unwrap_or_else(Operation::nothing);
        (self.finish)(Answer::refusal(Errno::DEADLK.into(), operation))
    }

    /// Takes the answer, or has this thread woken when it comes.
    fn poll_here(&mut self) -> Poll<T> {
        let this = Pin::new(self);
        // At the end of the thread its own may be gone.
        let waker = WAKER.try_with(Waker::clone).unwrap_or_else(|_| Unpark::this_thread());
        this.poll(&mut Context::from_waker(&waker))
    }
}

impl<T> Future for Request<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(forked) = self.forget_in_child() {
            let answer = Answer::refusal(forked.into(), Operation::nothing());
            return Poll::Ready((self.finish)(answer));
        }
        match mem::replace(&mut self.state, State::Over) {
            State::Refused(answer) => Poll::Ready((self.finish)(answer)),
            State::Sent(sent) => match sent.slot.poll(context) {
                Poll::Ready(answer) => {
                    // The intent refers to the slot.
                    drop(sent.membership);
                    Slot::keep(sent.slot);
                    Poll::Ready((self.finish)(answer))
                }
                Poll::Pending => {
                    self.state = State::Sent(sent);
                    Poll::Pending
                }
            },
            // As other futures: nothing comes after the answer.
            State::Over => Poll::Pending,
        }
    }
}

impl<T> Drop for Request<T> {
    fn drop(&mut self) {
        if self.forget_in_child().is_none()
            && let State::Sent(sent) = &self.state
            && sent.slot.abandon()
        {
            sent.mailbox.cancel(&sent.slot);
        }
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Refused(_) => "refused",
            State::Sent(_) => "sent",
            State::Over => "over",
        };
        f.debug_struct("Request").field("state", &state).finish_non_exhaustive()
    }
}

thread_local! {
    static WAKER: Waker = Unpark::this_thread();
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Unpark {
    fn this_thread() -> Waker {
        Waker::from(Arc::new(Self(thread::current())))
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
