//! What a run is to do.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use forebay::engine::BackendChoice;
use forebay_core::{
    Control, DiskModel, LatencyTarget, Policy, ServiceOrder, Time, saturating_nanos,
};
use forebay_load::job_file::{Job, JobFile};
use forebay_load::recorder::MeasuredInterval;

use super::metrics::Metrics;
use super::storage::{JobData, Storage};
use crate::disk::Disk;
use crate::interrupt::Interrupt;

/// What is run, and how.
pub(super) struct Plan<'a> {
    /// What the run is called while it goes on.
    pub(super) title: &'a str,
    pub(super) jobs: &'a JobFile,
    pub(super) storage: &'a Storage,
    /// Where the disk is.
    pub(super) target: &'a Path,
    pub(super) disk: &'a Disk,
    /// The scheduler's policy.
    pub(super) policy: Policy,
    /// What requests may take in the disk.
    pub(super) latency_target: Option<LatencyTarget>,
    pub(super) control: Control,
    /// In which order it serves classes.
    pub(super) order: ServiceOrder,
    pub(super) topology: Topology,
    /// I/O threads to have, where there are any.
    pub(super) io_queues: usize,
    /// Who shows others what the scheduler counts, if anybody does.
    pub(super) metrics: Option<&'a Metrics>,
    /// Whether the result shows the run over time.
    pub(super) has_series: bool,
    /// Whether there is a scheduler in this run.
    pub(super) is_scheduled: bool,
    pub(super) warmup: Duration,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    pub(super) backend: BackendChoice,
    pub(super) interrupt: &'a Interrupt,
}

impl Plan<'_> {
    /// The policy in force: without a scheduler everything goes at once.
    pub(super) fn policy_in_force(&self) -> Policy {
        if self.is_scheduled { self.policy } else { Policy::Unlimited }
    }

    /// What each job works on, on each shard that runs it.
    pub(super) fn data(&self) -> impl Iterator<Item = (&Job, &JobData)> {
        self.storage.data.iter().filter_map(|data| {
            let job = self.jobs.jobs.get(data.job)?;
            job.shards.contains(&data.shard).then_some((job, data))
        })
    }

    /// The job as this disk gets it.
    pub(super) fn in_steps(&self, job: &Job) -> Job {
        let properties = self.disk.properties.as_ref();
        let model = properties.and_then(|disk| disk.model().ok());
        job.in_steps(&model.unwrap_or_else(DiskModel::unmeasured), self.policy)
    }

    /// The part of the run that is measured.
    pub(super) fn measured(&self) -> MeasuredInterval {
        let from = Time::from_nanos(saturating_nanos(self.warmup));
        MeasuredInterval { from, to: from.plus_nanos(saturating_nanos(self.duration)) }
    }
}

/// How the threads of a run share the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Topology {
    /// Each thread has an I/O queue and does its own I/O
    PerThread,
    /// One I/O queue for all threads, which ask it for permits and do their own I/O
    Shared,
    /// --io-queues threads with an I/O queue each do the I/O that all others send them
    Coordinators,
}

impl Topology {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::Shared => "shared",
            Self::Coordinators => "coordinators",
        }
    }
}
