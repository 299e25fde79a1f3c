//! How much disk time may wait in the disk.

use core::time::Duration;

use super::Policy;
use super::base_latency::BaseLatency;
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskModel, DiskTime, saturating_nanos};

/// A request of this size, in bytes, always fits into one goal.
const GOAL_REQUEST_LEN: u64 = 128 * 1024;
/// A longer goal or base latency counts as this, so that windows stay far from
/// the end of the number range.
const GOAL_NANOS_MAX: u64 = 100_000_000_000;

/// The effective goal: the latency goal, or more where the disk itself needs
/// more, because it takes longer for 128 KiB or answers later when idle.
#[derive(Debug)]
pub(super) struct Goal {
    units: AtomicU64,
    /// What the latency goal and the model ask for.
    units_min: AtomicU64,
    /// The base latency in use, known or learnt.
    base_units: AtomicU64,
    latency_goal: Option<Duration>,
    learnt: Option<BaseLatency>,
}

impl Goal {
    pub(super) fn new(policy: &Policy, model: &DiskModel) -> Self {
        let (known, learnt) = match policy {
            Policy::PaceWindow { base_latency: Some(base), .. } => (disk_time(*base), None),
            Policy::PaceWindow { base_latency: None, .. } => {
                (DiskTime::ZERO, Some(BaseLatency::new()))
            }
            _ => (DiskTime::ZERO, None),
        };
        let goal = Self {
            units: AtomicU64::new(u64::MAX),
            units_min: AtomicU64::new(u64::MAX),
            base_units: AtomicU64::new(known.units()),
            latency_goal: policy.latency_goal(),
            learnt,
        };
        goal.set_model(model);
        goal
    }

    /// Follows the model; a policy without a goal has none whatever the model.
    pub(super) fn set_model(&self, model: &DiskModel) {
        let Some(latency_goal) = self.latency_goal else { return };
        let least = disk_time(latency_goal)
            .max(model.dearer_cost(GOAL_REQUEST_LEN))
            .max(DiskTime::from_units(1));
        self.units_min.store(least.units(), Ordering::Relaxed);
        self.update();
    }

    pub(super) fn get(&self) -> DiskTime {
        DiskTime::from_units(self.units.load(Ordering::Relaxed))
    }

    pub(super) fn observe_idle_service(&self, service_nanos: u64) {
        let median = self.learnt.as_ref().and_then(|base| base.observe(service_nanos));
        if let Some(median) = median {
            self.base_units.store(DiskTime::from_nanos(median).units(), Ordering::Relaxed);
            self.update();
        }
    }

    fn update(&self) {
        let least = self.units_min.load(Ordering::Relaxed);
        let base = self.base_units.load(Ordering::Relaxed);
        self.units.store(least.max(base), Ordering::Relaxed);
    }
}

fn disk_time(duration: Duration) -> DiskTime {
    DiskTime::from_nanos(saturating_nanos(duration).min(GOAL_NANOS_MAX))
}
