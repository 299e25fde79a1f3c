//! The backend for places where io_uring is forbidden and linux-aio is not:
//! direct reads and writes by the kernel, and all else by a pool of threads.
//!
//! Only direct requests are asynchronous in linux-aio, and those only where the
//! file system need not wait before the disk has them. So each is asked for
//! without blocking (`RWF_NOWAIT`), and what would block is done by a thread.

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

/// Queued requests that are submitted at once. As with io_uring, the disk begins
/// while the rest of a long round is pushed.
const SUBMIT_BATCH: usize = 4;

/// Most requests, and most completions, of one system call.
const CALL_MAX: usize = 64;

/// The time after which requests are submitted again that the kernel had no room for.
const OFFER_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A context and the requests that the kernel has.
#[derive(Debug)]
pub(super) struct Aio {
    context: Context,
    /// What the kernel has, and what is queued for it, by the `data` of its
    /// control block.
    requests: Slab<Request>,
    /// Not taken by the kernel yet.
    queued: VecDeque<ControlBlock>,
    /// Whether the kernel had no room for the first of these.
    is_full: bool,
    /// Completed and not yet popped.
    done: VecDeque<Completion>,
    /// Does what the kernel does not, or not without blocking.
    pool: Threads,
    /// How often the pool got what the kernel could not do without blocking.
    retries: Retries,
    /// The kernel tells of ends there, whether the engine sleeps or its caller.
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

    /// Queues an operation. Refusals of a batch are left to the next
    /// submission, which tries it again.
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
        // First the notification, and then what it was of.
        self.descriptor.end_sleep();
        let collected = self.collect();
        submitted.and(collected)
    }

    /// Hands what was pushed to the kernel and to the pool.
    fn submit(&mut self) -> io::Result<()> {
        let submitted = self.submit_requests();
        self.pool.submit()?;
        Ok(submitted?)
    }

    /// Hands what is queued to the kernel, as far as that has room.
    fn submit_requests(&mut self) -> Result<(), Errno> {
        self.is_full = false;
        while !self.queued.is_empty() {
            let mut blocks: ArrayVec<*mut ControlBlock, CALL_MAX> =
                self.queued.iter_mut().take(CALL_MAX).map(ptr::from_mut).collect();
            // SAFETY: the blocks are borrowed until after the call. The buffers that they name
            // live on the heap, do not move with their request, and nobody else has them; the
            // request, which keeps its descriptor open too, stays until its end or is leaked.
            match unsafe { self.context.submit(&mut blocks) } {
                Ok(taken) if taken > 0 => drop(self.queued.drain(..taken)),
                Ok(_) | Err(Errno::AGAIN) => {
                    // Where nothing is to end, the kernel is short of memory.
                    self.is_full = self.in_kernel() > 0;
                    return if self.is_full { Ok(()) } else { Err(Errno::AGAIN) };
                }
                Err(error) => self.refused(error),
            }
        }
        Ok(())
    }

    /// The kernel did not take the first of what is queued: a thread meets the
    /// same error, or none where only the attempt without blocking was wrong.
    fn refused(&mut self, error: Errno) {
        let block = self.queued.pop_front();
        if let Some(request) = block.and_then(|block| self.take(block.data)) {
            self.leave_to_pool(request, error);
        }
    }

    /// Requests that the kernel has, or whose end is not collected.
    fn in_kernel(&self) -> usize {
        self.requests.len() - self.queued.len()
    }

    /// Sleeps until something has ended, a wake-up, or for `timeout`. Not for
    /// long where requests wait for room: what the kernel has may hang.
    fn sleep(&self, timeout: Option<Duration>) {
        let timeout = if self.is_full {
            Some(timeout.map_or(OFFER_AGAIN_AFTER, |timeout| timeout.min(OFFER_AGAIN_AFTER)))
        } else {
            timeout
        };
        self.descriptor.park_watched(timeout);
    }

    /// Finds what has completed, and gives the pool what it is to do.
    pub(super) fn collect(&mut self) -> io::Result<()> {
        // The kernel tells of an end once it can be collected.
        if self.descriptor.stop_watch() {
            self.collect_events().inspect_err(|_| self.descriptor.watch(true))?;
        }
        // What is refused here is refused at the next submission, too.
        let _ = self.pool.submit();
        self.pool.collect();
        Ok(())
    }

    fn collect_events(&mut self) -> Result<(), Errno> {
        let mut events = [Event::default(); CALL_MAX];
        let mut count = events.len();
        while count == events.len() {
            count = retry_on_intr(|| self.context.completed(&mut events))?;
            // What has ended makes room.
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

    /// The end of a request, or of the attempt to do it without blocking.
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

    /// Makes the descriptor readable when there is something to do. Where
    /// requests wait for room that is when another one has ended.
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

    /// Takes an operation back that neither the kernel nor a thread has: what a
    /// disk has, linux-aio does not end early.
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
    /// Waits for what the kernel has. What does not end in time is leaked, since
    /// the kernel may still write to it, and so is the context: the kernel
    /// destroys none that has requests without waiting for them.
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
