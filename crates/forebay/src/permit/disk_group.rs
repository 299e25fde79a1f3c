//! An I/O group with its queue of permits.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use forebay_core::{GroupConfig, GroupFull};

use super::queue::PermitQueue;
use crate::engine::Retries;
use crate::events::Hook;
use crate::group::GroupState;
use crate::metrics::QueueMetrics;
use crate::sys::fork::OfProcess;
use crate::sys::lock::Lock;

/// An I/O group of a disk, with its queue of permits.
#[derive(Debug)]
pub(crate) struct DiskGroup {
    state: GroupState,
    /// The queue of permits. It joins the group at the first request for a permit.
    permits: OnceLock<OfProcess<PermitQueue>>,
    joining: Lock<()>,
}

impl Deref for DiskGroup {
    type Target = GroupState;

    fn deref(&self) -> &GroupState {
        &self.state
    }
}

impl DiskGroup {
    pub(crate) fn new(name: &str, config: GroupConfig, slot: usize, hook: Hook) -> Self {
        let state = GroupState::new(name, config, slot, hook);
        Self { state, permits: OnceLock::new(), joining: Lock::default() }
    }

    /// The queue of permits, which joins the group if necessary.
    #[inline]
    pub(crate) fn permits(self: &Arc<Self>) -> Result<&PermitQueue, GroupFull> {
        match self.permits.get() {
            Some(permits) => Ok(permits),
            None => self.join_permits(),
        }
    }

    #[cold]
    fn join_permits(self: &Arc<Self>) -> Result<&PermitQueue, GroupFull> {
        let _joining = self.joining.lock();
        if let Some(permits) = self.permits.get() {
            return Ok(permits);
        }
        let mut model_version = 0;
        let mut queue = self.join(&mut model_version)?;
        queue.grant_permits();
        let group = Arc::downgrade(self);
        self.wakers.register(queue.shard(), move || {
            if let Some(group) = group.upgrade() {
                group.poll_permits();
            }
        });
        let permits = || OfProcess::new(PermitQueue::new(queue, model_version));
        Ok(self.permits.get_or_init(permits))
    }

    /// The queue of permits, if a permit was requested in this process.
    pub(crate) fn permits_if_used(&self) -> Option<&PermitQueue> {
        self.permits.get().filter(|permits| permits.process().is_here()).map(|used| &**used)
    }

    /// Polls the queue of permits, and gives up its overdue requests. It is for a caller that the
    /// window has stopped for longer than a deadline. Forgotten permits keep the window closed, and
    /// if nobody waits for a permit, nobody else polls that queue.
    pub(crate) fn poll_permits(&self) {
        if let Some(permits) = self.permits_if_used() {
            permits.poll(self);
        }
    }

    /// The metrics of all present and former queues. The figures of the queue of permits are
    /// updated first.
    pub(crate) fn all_metrics(&self) -> impl Iterator<Item = &QueueMetrics> {
        if let Some(permits) = self.permits_if_used() {
            permits.with_queue(|queue| {
                self.metrics(queue.shard()).publish_now(queue, Retries::default());
            });
        }
        self.published_metrics()
    }
}
