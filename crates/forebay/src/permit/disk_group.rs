//! An I/O group, and where its permits are asked for.

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

/// An I/O group of a disk.
#[derive(Debug)]
pub(crate) struct DiskGroup {
    state: GroupState,
    /// Joins the group when the first permit is asked for.
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

    /// Where permits are asked for.
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

    /// Where permits are asked for, if any ever were, in this process.
    pub(crate) fn permits_if_used(&self) -> Option<&PermitQueue> {
        self.permits.get().filter(|permits| permits.process().is_here()).map(|used| &**used)
    }

    /// Makes the queue of permits look for what may go, and give up what is
    /// overdue. For a caller that is stopped by the window for longer than
    /// a deadline: permits that were forgotten keep it closed, and if nobody
    /// waits for a permit, nobody else looks.
    pub(crate) fn poll_permits(&self) {
        if let Some(permits) = self.permits_if_used() {
            permits.poll(self);
        }
    }

    /// Every queue that there ever was, with present figures.
    pub(crate) fn all_metrics(&self) -> impl Iterator<Item = &QueueMetrics> {
        if let Some(permits) = self.permits_if_used() {
            permits.with_queue(|queue| {
                self.metrics(queue.shard()).publish_now(queue, Retries::default());
            });
        }
        self.published_metrics()
    }
}
