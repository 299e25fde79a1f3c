//! The io_uring backend.

mod attempt;
mod entry;
mod setup;
mod slots;

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use self::attempt::Attempt;
use self::slots::{SlotId, Slots};
use super::blocking;
use super::operation::{Completion, Operation, Retries};
use super::threads::Threads;
use super::unavailable::{Unavailable, is_forbidden_or_unknown};
use super::waker::WakeDescriptor;
use crate::messages;

/// The `user_data` of completions of the poll for wake-ups. Neither it nor [`CANCEL`] is the id of
/// a slot, because no index is as large.
const WAKE: u64 = u64::MAX;
/// The `user_data` of completions of cancellations.
const CANCEL: u64 = u64::MAX - 1;

/// The longest wait, far below the overflow of the kernel's clock. Longer waits end early.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time after which entries that the kernel had no memory for are submitted again.
const OFFER_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// The number of queued entries that are submitted at once. Waiting for the whole of a long round
/// leaves the disk idle at its start (17 % fewer 4 KiB reads at depth 32). One system call for each
/// entry costs more CPU time.
const SUBMIT_BATCH: usize = 4;

/// The most threads for operations that the kernel cannot do through a ring.
const FALLBACK_THREADS_MAX: u32 = 4;

/// A ring, and the operations that are in the kernel.
pub(super) struct Uring {
    // Dropped first: the kernel must not use the slots after they are dropped.
    ring: IoUring,
    slots: Slots,
    pub(super) descriptor: Arc<WakeDescriptor>,
    /// Changes the length of files, if the kernel cannot do so through a ring.
    fallback_pool: Option<Threads>,
    /// Whether the kernel signals completions to the watched eventfd. Polling the ring itself does
    /// not report deferred completions.
    is_watched: bool,
    /// Whether the poll for wake-ups is in the ring.
    poll_armed: bool,
    /// The number of cancellations in flight. It is bounded, because the completion queue needs
    /// room for their completions.
    cancels_in_flight: usize,
    /// The number of completions that may still be popped in this round. Completions that a push
    /// brings in wait for the next round. Otherwise popping and pushing could go on for ever.
    ready: usize,
    pub(super) retries: Retries,
    shutdown_timeout: Duration,
    /// The number of system calls that entered the ring.
    #[cfg(test)]
    enters: std::cell::Cell<usize>,
}

impl Uring {
    pub(super) fn new(
        depth_max: u32,
        shutdown_timeout: Duration,
        sqpoll: Option<Duration>,
    ) -> Result<Self, Unavailable> {
        Self::set_up(depth_max, shutdown_timeout, sqpoll).map_err(|error| Unavailable {
            is_refusal: is_forbidden_or_unknown(&error) || setup::may_lock_too_little(&error),
            error: setup::explained(&error),
        })
    }

    fn set_up(
        depth_max: u32,
        shutdown_timeout: Duration,
        sqpoll: Option<Duration>,
    ) -> io::Result<Self> {
        // One more entry for the poll for wake-ups. The kernel rounds the number up to a power of
        // two, and makes the completion queue twice as long. So it has room for every operation,
        // for as many cancellations, and for that poll.
        let ring = setup::ring(depth_max + 1, sqpoll)?;
        let descriptor = WakeDescriptor::new()?;
        let fallback_pool = (!setup::truncates(&ring)?).then(|| {
            Threads::with_descriptor(
                Arc::clone(&descriptor),
                FALLBACK_THREADS_MAX,
                shutdown_timeout,
                blocking::execute,
            )
        });
        let mut uring = Self {
            slots: Slots::new(depth_max),
            descriptor,
            is_watched: false,
            fallback_pool,
            poll_armed: false,
            cancels_in_flight: 0,
            ready: 0,
            retries: Retries::default(),
            shutdown_timeout,
            #[cfg(test)]
            enters: std::cell::Cell::default(),
            ring,
        };
        // Shows at once whether the kernel allows to enter the ring.
        uring.arm_poll();
        uring.enter_once(1, 0, None)?;
        Ok(uring)
    }

    /// Queues an operation, or returns it if there is no room. If the kernel refuses a batch, the
    /// next submission tries it again.
    pub(super) fn push(&mut self, token: u64, operation: Operation) -> Result<(), Operation> {
        if let Some(pool) = &mut self.fallback_pool
            && matches!(operation, Operation::Truncate { .. })
        {
            pool.push(token, operation);
            return Ok(());
        }
        let id = self.slots.insert(token, operation)?;
        if self.push_slot(id) {
            if self.ring.submission().len() >= SUBMIT_BATCH {
                let _ = self.enter(0, None);
            }
            return Ok(());
        }
        self.slots.take(id).map_or(Ok(()), |(_, operation)| Err(operation))
    }

    pub(super) fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.poll_armed {
            self.arm_poll();
        }
        let submitted = self.fallback_pool.as_mut().map_or(Ok(()), Threads::submit);
        let idle = self.collect_fallback() == 0 && self.ring.completion().is_empty();
        let may_sleep =
            idle && submitted.is_ok() && self.poll_armed && timeout != Some(Duration::ZERO);
        let sleep = may_sleep && self.descriptor.begin_sleep();
        let result = self.enter(u32::from(sleep), timeout);
        self.descriptor.end_sleep();
        if self.is_watched {
            self.descriptor.stop_watch();
        }
        self.ready = self.collect_fallback() + self.ring.completion().len();
        submitted.and(result)
    }

    /// Collects completions. An error here recurs at the next submission, which returns it.
    pub(super) fn collect(&mut self) {
        let _ = self.enter(0, None);
        self.ready = self.collect_fallback() + self.ring.completion().len();
    }

    /// Collects the completions of the fallback pool. Returns the number to pop.
    fn collect_fallback(&mut self) -> usize {
        self.fallback_pool.as_mut().map_or(0, Threads::collect)
    }

    pub(super) fn watch(&mut self) {
        if !self.is_watched {
            let eventfd = self.descriptor.watched().as_raw_fd();
            self.is_watched = self.ring.submitter().register_eventfd(eventfd).is_ok();
        }
        let queue = self.ring.submission();
        let work_pending = queue.taskrun() || queue.cq_overflow() || !queue.is_empty();
        drop(queue);
        let is_pool_busy = self.fallback_pool.as_ref().is_some_and(Threads::is_busy);
        let busy = work_pending || is_pool_busy || !self.ring.completion().is_empty();
        self.descriptor.watch(busy || !self.is_watched);
    }

    pub(super) fn pop(&mut self) -> Option<Completion> {
        loop {
            self.ready = self.ready.checked_sub(1)?;
            if let Some(completed) = self.fallback_pool.as_mut().and_then(Threads::pop) {
                return Some(completed);
            }
            let completion = self.ring.completion().next()?;
            match completion.user_data() {
                WAKE => self.poll_armed = cqueue::more(completion.flags()),
                CANCEL => self.cancels_in_flight -= 1,
                bits => {
                    let ended = self.end(SlotId::from_bits(bits), completion.result());
                    if ended.is_some() {
                        return ended;
                    }
                }
            }
        }
    }

    /// The completion of an operation that the kernel has ended. `None` if another attempt follows.
    fn end(&mut self, id: SlotId, result: i32) -> Option<Completion> {
        let result = match usize::try_from(result) {
            Ok(len) => Ok(len),
            Err(_) => match self.attempt_again(id, Errno::from_raw_os_error(-result)) {
                Ok(()) => return None,
                Err(error) => Err(error.into()),
            },
        };
        let ended = self.slots.take(id);
        if ended.is_none() {
            messages::report_invariant("the kernel completed a request that is in no slot");
        }
        ended.map(|(token, operation)| Completion { token, result, operation })
    }

    /// Begins the next attempt after one that failed with `error`. If there is none, returns the
    /// error of the operation.
    fn attempt_again(&mut self, id: SlotId, error: Errno) -> Result<(), Errno> {
        let slot = self.slots.get_mut(id).ok_or(error)?;
        let next = slot.attempt.next(error).ok_or(error)?;
        if slot.is_cancelled {
            return Err(Errno::CANCELED);
        }
        slot.attempt = next;
        if let Some((file, op)) = slot.operation.as_ref().and_then(Operation::transfer) {
            match next {
                Attempt::InThread => self.retries.count(op),
                Attempt::Unrestricted | Attempt::NonBlocking => file.always_blocks(),
            }
        }
        if self.push_slot(id) { Ok(()) } else { Err(Errno::AGAIN) }
    }

    /// Asks the kernel to cancel the operation with `token`.
    pub(super) fn cancel(&mut self, token: u64) -> bool {
        let id = self.slots.find(Some(token)).next();
        match id {
            Some(id) => self.cancel_slot(id),
            None => self.fallback_pool.as_mut().is_some_and(|pool| pool.cancel(token)),
        }
    }

    fn cancel_slot(&mut self, id: SlotId) -> bool {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.is_cancelled = true;
        }
        let entry = opcode::AsyncCancel::new(id.to_bits()).build().user_data(CANCEL);
        let is_pushed = self.cancels_in_flight < self.slots.count() && self.push_entry(&entry);
        self.cancels_in_flight += usize::from(is_pushed);
        is_pushed
    }

    fn arm_poll(&mut self) {
        let entry = entry::poll(self.descriptor.eventfd()).user_data(WAKE);
        self.poll_armed = self.push_entry(&entry);
    }

    /// Puts the entry of a slot into the submission queue. Returns false if there is no room even
    /// after a submission.
    fn push_slot(&mut self, id: SlotId) -> bool {
        let Some(slot) = self.slots.get_mut(id) else { return false };
        let Some(operation) = &mut slot.operation else { return false };
        let entry = entry::entry(operation, &mut slot.segments, slot.attempt);
        self.push_entry(&entry.user_data(id.to_bits()))
    }

    /// Puts an entry into the submission queue. If the queue is full, it submits first. Returns
    /// false if there is no room even then.
    fn push_entry(&mut self, entry: &squeue::Entry) -> bool {
        if self.ring.submission().is_full() && self.enter(0, None).is_err() {
            return false;
        }
        // SAFETY: an entry points only into an operation and its segments. These stay in their slot
        // until the kernel reports the end, or are leaked. Buffers, paths and segments live on the
        // heap, do not move with the slot, and nobody else has them. The slot also keeps the
        // descriptor open. A cancellation points nowhere. The polled eventfd belongs to
        // `descriptor`, which outlives the ring.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Passes all queued entries to the kernel, and waits for `want` completions.
    fn enter(&mut self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            let is_polled = self.ring.params().is_setup_sqpoll();
            let (queued, work_pending) = {
                let queue = self.ring.submission();
                let is_taken = queue.is_empty() || is_polled && !must_enter(&queue);
                (queue.len(), !is_taken || queue.taskrun() || queue.cq_overflow())
            };
            if want == 0 && !work_pending {
                return Ok(());
            }
            match self.enter_once(queued, want, timeout) {
                // The kernel refused an entry and reports why in its completion. Submit the rest.
                Ok(submitted) if 0 < submitted && submitted < queued => {}
                Ok(_) => return Ok(()),
                Err(Errno::TIME | Errno::INTR) => return Ok(()),
                // The kernel lacks memory, or room for completions. Operations in the kernel must
                // complete first.
                Err(Errno::AGAIN | Errno::BUSY) if self.slots.occupied() > queued => {
                    return self.wait_only(want, timeout);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits without a submission. The wait is short, because the poll for wake-ups may be among
    /// the entries that were not taken.
    fn wait_only(&self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map_or(OFFER_AGAIN_AFTER, |timeout| timeout.min(OFFER_AGAIN_AFTER));
        match self.enter_once(0, want, Some(timeout)) {
            Ok(_) | Err(Errno::TIME | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes one system call. Returns the number of entries that the kernel took.
    fn enter_once(
        &self,
        queued: usize,
        want: u32,
        timeout: Option<Duration>,
    ) -> Result<usize, Errno> {
        #[cfg(test)]
        self.enters.set(self.enters.get() + 1);
        let mut flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        // An idle shard must not count as a CPU that waits for I/O.
        flags.set(EnterFlags::NO_IOWAIT, self.ring.params().is_feature_no_iowait());
        if self.ring.params().is_setup_sqpoll() {
            // SAFETY: nothing else accesses the queue at this time. Nobody else has this ring, and
            // this type keeps no borrowed queue of it.
            let queue = unsafe { self.ring.submission_shared() };
            flags.set(EnterFlags::SQ_WAKEUP, queue.need_wakeup());
            flags.set(EnterFlags::SQ_WAIT, queue.is_full());
        }
        let timespec = timeout.map(|timeout| Timespec::from(timeout.min(WAIT_MAX)));
        let args = SubmitArgs::new();
        let args = timespec.as_ref().map_or(args, |timespec| args.timespec(timespec));
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        // SAFETY: EXT_ARG announces the argument that is passed, and it lives until the call
        // returns. `slots` holds everything that the queued entries point to.
        unsafe { self.ring.submitter().enter(queued, want, flags.bits(), Some(&args)) }
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// Whether the kernel thread that takes entries has to be woken, or to be waited for.
fn must_enter(queue: &squeue::SubmissionQueue<'_>) -> bool {
    queue.need_wakeup() || queue.is_full()
}

impl Drop for Uring {
    /// Cancels the operations in flight and waits for their end. Those that do not end in time are
    /// leaked, because the kernel may still write to their buffers.
    fn drop(&mut self) {
        for id in self.slots.find(None).collect::<Vec<_>>() {
            self.cancel_slot(id);
        }
        let begun = Instant::now();
        while self.slots.occupied() > 0 {
            let left = self.shutdown_timeout.saturating_sub(begun.elapsed());
            let want = u32::from(self.ring.completion().is_empty());
            let entered = self.enter(want, Some(left));
            self.ready = self.ring.completion().len();
            while self.pop().is_some() {}
            if entered.is_err() || left.is_zero() {
                break;
            }
        }
        if self.slots.occupied() > 0 {
            mem::forget(mem::replace(&mut self.slots, Slots::new(0)));
        }
    }
}

#[cfg(test)]
mod tests;
