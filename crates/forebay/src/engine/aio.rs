//! The backend for systems that forbid io_uring but not linux-aio. The kernel does direct reads and
//! writes, and a pool of threads does all other operations.
//!
//! linux-aio is asynchronous only for direct requests, and only if the file system need not wait
//! before it passes them to the disk. So each request is made without blocking (`RWF_NOWAIT`). A
//! request that would block is done by a thread.

mod context;
mod control_block;
mod setup;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use arrayvec::ArrayVec;
use rustix::io::{Errno, retry_on_intr};
use slab::Slab;

use self::context::{Context, Event};
use self::control_block::ControlBlock;
use super::blocking;
use super::operation::{Completion, Operation, Retries};
use super::segment::Segment;
use super::threads::Threads;
use super::unavailable::Unavailable;
use super::waker::WakeDescriptor;
use crate::messages;

/// The number of queued requests that are submitted at once. As with io_uring, the disk begins
/// while the rest of a long round is pushed.
const SUBMIT_BATCH: usize = 4;

/// The most requests, and the most completions, of one system call.
const CALL_MAX: usize = 64;

/// The time after which requests that found no room in the kernel are submitted again.
const OFFER_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A context, and the requests that are in the kernel.
#[derive(Debug)]
pub(super) struct Aio {
    context: Context,
    /// The requests that are in the kernel or queued for it, by the `data` of their control blocks.
    requests: Slab<Request>,
    /// The requests that the kernel has not accepted yet.
    queued: VecDeque<ControlBlock>,
    /// Whether the kernel had no room for the first of `queued`.
    is_full: bool,
    /// Completions that were not popped yet.
    done: VecDeque<Completion>,
    /// Does the operations that the kernel cannot do, or not without blocking.
    pool: Threads,
    /// The number of failed attempts without blocking, which the pool repeated.
    retries: Retries,
    /// The kernel signals completions to it. The engine or the caller's event loop sleeps on it.
    pub(super) descriptor: Arc<WakeDescriptor>,
    shutdown_timeout: Duration,
}

#[derive(Debug)]
struct Request {
    token: u64,
    operation: Operation,
    #[expect(dead_code, reason = "the kernel reads them when it takes the request")]
    segments: Vec<Segment>,
}

impl Aio {
    pub(super) fn new(
        depth_max: u32,
        threads_max: u32,
        shutdown_timeout: Duration,
    ) -> Result<Self, Unavailable> {
        Self::set_up(depth_max, threads_max, shutdown_timeout)
            .map_err(|error| setup::unavailable(&error))
    }

    fn set_up(depth_max: u32, threads_max: u32, shutdown_timeout: Duration) -> io::Result<Self> {
        let descriptor = WakeDescriptor::new()?;
        let pool = Threads::with_descriptor(
            Arc::clone(&descriptor),
            threads_max,
            shutdown_timeout,
            blocking::execute,
        );
        Ok(Self {
            context: Context::new(depth_max)?,
            requests: Slab::with_capacity(depth_max as usize),
            queued: VecDeque::new(),
            is_full: false,
            done: VecDeque::new(),
            pool,
            retries: Retries::default(),
            descriptor,
            shutdown_timeout,
        })
    }

    /// Queues an operation. If the kernel refuses a batch, the next submission tries it again.
    pub(super) fn push(&mut self, token: u64, mut operation: Operation) {
        let entry = self.requests.vacant_entry();
        let mut segments = Vec::new();
        let data = entry.key() as u64;
        let block = match operation.transfer() {
            Some((file, _)) if file.is_direct() && file.may_not_block() => {
                let notified = self.descriptor.watched();
                ControlBlock::new(&mut operation, &mut segments, data, notified)
            }
            _ => None,
        };
        let Some(block) = block else {
            return self.pool.push(token, operation);
        };
        entry.insert(Request { token, operation, segments });
        self.queued.push_back(block);
        if self.queued.len().is_multiple_of(SUBMIT_BATCH) {
            let _ = self.submit_requests();
        }
    }

    pub(super) fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let submitted = self.submit();
        let idle = self.done.is_empty() && self.pool.collect() == 0;
        if idle && submitted.is_ok() && timeout != Some(Duration::ZERO) {
            self.sleep(timeout);
        }
        // First the notification is taken, and then the completions that it announced.
        self.descriptor.end_sleep();
        let collected = self.collect();
        submitted.and(collected)
    }

    /// Passes the pushed operations to the kernel and to the pool.
    fn submit(&mut self) -> io::Result<()> {
        let submitted = self.submit_requests();
        self.pool.submit()?;
        Ok(submitted?)
    }

    /// Passes the queued requests to the kernel, as far as it has room.
    fn submit_requests(&mut self) -> Result<(), Errno> {
        self.is_full = false;
        while !self.queued.is_empty() {
            let mut blocks: ArrayVec<*mut ControlBlock, CALL_MAX> =
                self.queued.iter_mut().take(CALL_MAX).map(ptr::from_mut).collect();
            // SAFETY: the blocks are borrowed until after the call. The buffers and segments that
            // they point to live on the heap, do not move with their request, and nobody else has
            // them. The request, which also keeps its descriptor open, stays until its end or is
            // leaked.
            match unsafe { self.context.submit(&mut blocks) } {
                Ok(taken) if taken > 0 => drop(self.queued.drain(..taken)),
                Ok(_) | Err(Errno::AGAIN) => {
                    // With no request in the kernel, the cause is a lack of memory.
                    self.is_full = self.in_kernel() > 0;
                    return if self.is_full { Ok(()) } else { Err(Errno::AGAIN) };
                }
                Err(error) => self.refused(error),
            }
        }
        Ok(())
    }

    /// Passes the first queued request, which the kernel refused, to the pool. A thread meets the
    /// same error, or none if only the attempt without blocking was refused.
    fn refused(&mut self, error: Errno) {
        let block = self.queued.pop_front();
        if let Some(request) = block.and_then(|block| self.take(block.data)) {
            self.leave_to_pool(request, error);
        }
    }

    /// The number of requests in the kernel, including those whose end is not collected.
    fn in_kernel(&self) -> usize {
        self.requests.len() - self.queued.len()
    }

    /// Sleeps until a request ends, a wake-up comes, or `timeout` has passed. The sleep is short
    /// while requests wait for room, because requests in the kernel may hang.
    fn sleep(&self, timeout: Option<Duration>) {
        let timeout = if self.is_full {
            Some(timeout.map_or(OFFER_AGAIN_AFTER, |timeout| timeout.min(OFFER_AGAIN_AFTER)))
        } else {
            timeout
        };
        self.descriptor.park_watched(timeout);
    }

    /// Collects completions, and starts the pool's new operations.
    pub(super) fn collect(&mut self) -> io::Result<()> {
        // The kernel signals an end once it can be collected.
        if self.descriptor.stop_watch() {
            self.collect_events().inspect_err(|_| self.descriptor.watch(true))?;
        }
        // An error here recurs at the next submission, which returns it.
        let _ = self.pool.submit();
        self.pool.collect();
        Ok(())
    }

    fn collect_events(&mut self) -> Result<(), Errno> {
        let mut events = [Event::default(); CALL_MAX];
        let mut count = events.len();
        while count == events.len() {
            count = retry_on_intr(|| self.context.completed(&mut events))?;
            // Each end frees room.
            self.is_full &= count == 0;
            for event in &events[..count] {
                match self.take(event.data) {
                    Some(request) => self.ended(request, event.result),
                    None => messages::report_invariant("the kernel completed an unknown request"),
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, data: u64) -> Option<Request> {
        self.requests.try_remove(data as usize)
    }

    /// Handles the end of a request, or of its attempt without blocking.
    fn ended(&mut self, request: Request, result: i64) {
        let result = usize::try_from(result)
            .map_err(|_| Errno::from_raw_os_error(result.unsigned_abs() as i32));
        if let Err(error @ (Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL)) = result {
            return self.leave_to_pool(request, error);
        }
        let (Request { token, operation, .. }, result) = (request, result.map_err(Into::into));
        self.done.push_back(Completion { token, result, operation });
    }

    fn leave_to_pool(&mut self, request: Request, error: Errno) {
        let Request { token, operation, .. } = request;
        match (operation.transfer(), error) {
            (Some((_, op)), Errno::AGAIN) => self.retries.count(op),
            (Some((file, _)), Errno::OPNOTSUPP) => file.always_blocks(),
            _ => {}
        }
        self.pool.push(token, operation);
    }

    /// Makes the descriptor readable when there is something to do. While requests wait for room,
    /// that is when another request has ended.
    pub(super) fn watch(&mut self) {
        let is_pushed = !self.queued.is_empty() && !self.is_full;
        self.descriptor.watch(is_pushed || !self.done.is_empty() || self.pool.is_busy());
    }

    pub(super) fn pop(&mut self) -> Option<Completion> {
        self.done.pop_front().or_else(|| self.pool.pop())
    }

    pub(super) fn retries(&self) -> Retries {
        let mut retries = self.retries;
        retries += self.pool.retries;
        retries
    }

    /// Takes back an operation that neither the kernel nor a thread has begun. linux-aio cannot
    /// cancel requests in the disk.
    pub(super) fn cancel(&mut self, token: u64) -> bool {
        let is_it = |block: &ControlBlock| {
            self.requests.get(block.data as usize).is_some_and(|request| request.token == token)
        };
        let block = self.queued.iter().position(is_it).and_then(|place| self.queued.remove(place));
        let Some(Request { operation, .. }) = block.and_then(|block| self.take(block.data)) else {
            return self.pool.cancel(token);
        };
        self.done.push_back(Completion { token, result: Err(Errno::CANCELED.into()), operation });
        true
    }
}

impl Drop for Aio {
    /// Waits for the requests in the kernel. Those that do not end in time are leaked, because the
    /// kernel may still write to their buffers. The context is leaked too, because destroying it
    /// would wait for them.
    fn drop(&mut self) {
        for block in mem::take(&mut self.queued) {
            self.take(block.data);
        }
        self.descriptor.end_sleep();
        let begun = Instant::now();
        let mut left = self.shutdown_timeout;
        while !self.requests.is_empty() {
            self.descriptor.park_watched(Some(left));
            self.descriptor.end_sleep();
            let collected = self.collect();
            left = self.shutdown_timeout.saturating_sub(begun.elapsed());
            if collected.is_err() || left.is_zero() {
                break;
            }
        }
        if !self.requests.is_empty() {
            self.context.abandon();
            mem::forget(mem::take(&mut self.requests));
        }
        self.pool.shut_down_within(left);
    }
}

#[cfg(test)]
mod tests;
