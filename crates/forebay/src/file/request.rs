//! Handles of requests.
//!
//! Decision: `docs/decisions/0039-cancel-on-drop.md`.

use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use crate::Disk;
use crate::engine::Operation;
use crate::io_thread::{Completion, Inbox, Message, Reply, Submission, Timing};
use crate::registry::DiskRecord;
use crate::sys::fork::Forked;
use crate::sys::library_thread::{WaitsForItself, is_library_thread};
use crate::sys::waker::with_own;

/// The handle of a request: a future, on which threads can [`wait`](Self::wait) too.
///
/// The request proceeds without being polled. Dropping the handle cancels the request. If it waits,
/// it leaves the queue in constant time. If it is in the disk, it is cancelled if that is possible.
/// A large write is done in parts, some of which may then be on the disk. Use
/// [`detach`](Self::detach) to let it continue. In any case buffer and descriptor live until the
/// kernel is done with them.
#[must_use = "dropping it cancels the request: `wait`, `.await` or `detach` it"]
pub struct Request<T> {
    state: State,
    finish: fn(Completion) -> T,
}

pub(super) enum State {
    /// The request was refused.
    Refused(Completion),
    Sent(Sent),
    /// The answer was taken.
    Over,
}

pub(super) struct Sent {
    reply: Arc<Reply>,
    inbox: Arc<Inbox<Message>>,
    /// Keeps the I/O threads of the disk.
    disk: Arc<DiskRecord>,
}

impl Sent {
    pub(super) fn new(disk: &Disk, request: Submission, inbox: Arc<Inbox<Message>>) -> Self {
        let reply = Reply::new(request);
        if let Err(full) = reply.send(&inbox) {
            reply.refuse(io::Error::new(io::ErrorKind::QuotaExceeded, full));
        }
        Self { reply, inbox, disk: Arc::clone(&disk.record) }
    }
}

impl<T: Outcome> Request<T> {
    pub(super) fn new(state: State) -> Self {
        Self { state, finish: T::of }
    }

    /// The same request, whose result also has its times in the queue and in the disk.
    pub fn timed(mut self) -> Request<(T, Timing)> {
        let state = mem::replace(&mut self.state, State::Over);
        Request { state, finish: <(T, Timing)>::of }
    }
}

impl<T> Request<T> {
    /// Ends the handle in a forked child. The request belongs to the parent, where it continues.
    fn forget_in_child(&mut self) -> Option<Forked> {
        let State::Sent(sent) = &self.state else { return None };
        let forked = sent.disk.process.check().err()?;
        mem::forget(mem::replace(&mut self.state, State::Over));
        Some(forked)
    }

    /// Lets the request continue without this handle, even if the scheduler and the file are
    /// dropped. Its buffers are freed at its end. Its result is only counted. A flush that follows
    /// a detached write does not wait for it.
    ///
    /// # Errors
    /// Why the request was refused, or has failed already.
    pub fn detach(mut self) -> io::Result<()> {
        self.forget_in_child().map_or(Ok(()), Err)?;
        let answer = match mem::replace(&mut self.state, State::Over) {
            State::Refused(answer) => Some(answer),
            State::Sent(Sent { reply, disk, .. }) => reply.detach(disk),
            State::Over => None,
        };
        answer.map_or(Ok(()), |answer| answer.result.map(drop))
    }

    /// Blocks the calling thread until the request has ended. It is not for tasks, because it would
    /// block their executor. If [`Request::wait_timeout`] or a poll has taken the result already,
    /// this is an error, without a buffer.
    ///
    /// A waker may be run by a thread of the library, which would then wait for itself: there the
    /// request is cancelled, and its error is of the kind
    /// [`Deadlock`](io::ErrorKind::Deadlock) (`EDEADLK`).
    pub fn wait(mut self) -> T {
        if matches!(self.state, State::Over) {
            return (self.finish)(Completion::none());
        }
        loop {
            if let Poll::Ready(answer) = self.poll_here() {
                return answer;
            }
            if is_library_thread() {
                return self.refuse_to_wait();
            }
            thread::park();
        }
    }

    /// [`Request::wait`], but at most for `timeout`; `None` if it has passed. Then the request
    /// still continues: wait again, or drop the handle to cancel it. Also `None` after the result
    /// was taken. On a thread of the library it does not wait, like [`Request::wait`].
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
            if is_library_thread() {
                return Some(self.refuse_to_wait());
            }
            thread::park_timeout(left);
        }
    }

    /// Cancels the request, for a thread that must not wait for it. The buffer is returned, unless
    /// another I/O thread has begun the request.
    fn refuse_to_wait(&mut self) -> T {
        let operation = match &self.state {
            State::Sent(sent) => sent.reply.take_back(),
            State::Refused(_) | State::Over => None,
        };
        // The drop cancels the request.
        drop(mem::replace(self, Self { state: State::Over, finish: self.finish }));
        let operation = operation.unwrap_or_else(Operation::nothing);
        (self.finish)(Completion::refusal(WaitsForItself.into(), operation))
    }

    /// Takes the answer. If there is none yet, this thread is woken at the answer.
    fn poll_here(&mut self) -> Poll<T> {
        // The thread-local waker may be destroyed at the end of the thread.
        let waker = WAKER.try_with(Waker::clone).unwrap_or_else(|_| Unpark::this_thread());
        with_own(&waker, |context| Pin::new(self).poll(context))
    }
}

impl<T> Future for Request<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(forked) = self.forget_in_child() {
            let answer = Completion::refusal(forked.into(), Operation::nothing());
            return Poll::Ready((self.finish)(answer));
        }
        match mem::replace(&mut self.state, State::Over) {
            State::Refused(answer) => Poll::Ready((self.finish)(answer)),
            State::Sent(sent) => match sent.reply.poll(context) {
                Poll::Ready(answer) => {
                    Reply::recycle(sent.reply);
                    Poll::Ready((self.finish)(answer))
                }
                Poll::Pending => {
                    self.state = State::Sent(sent);
                    Poll::Pending
                }
            },
            // As with other futures, nothing follows the answer.
            State::Over => Poll::Pending,
        }
    }
}

impl<T> Drop for Request<T> {
    fn drop(&mut self) {
        if self.forget_in_child().is_none()
            && let State::Sent(sent) = &self.state
            && sent.reply.abandon()
        {
            sent.reply.cancel(&sent.inbox);
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

/// Wakes a waiting thread.
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
