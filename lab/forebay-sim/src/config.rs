//! What is simulated.

pub(crate) mod units;

use core::time::Duration;

use forebay_core::{Ceiling, Control, DiskModel, LatencyTarget, Policy, ServiceOrder, Time};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::Properties;
use serde::{Deserialize, Serialize};

use crate::disk::SimDisk;
use crate::file_system::FileSystem;

/// A number of time slices that fills the width of a chart.
pub const TRACE_BUCKETS_DEFAULT: usize = 600;

/// A run to simulate: a load, a disk, a scheduler.
pub struct SimulationConfig {
    /// The load. Its jobs name the shards that there are.
    pub jobs: JobFile,
    /// The disk, at time zero.
    pub disk: Box<dyn SimDisk>,
    /// What is between deletes and the disk; if not given, each delete is one discard.
    pub file_system: Option<FileSystem>,
    /// How requests are scheduled.
    pub scheduler: SchedulerConfig,
    /// What the results say that the scheduler knew of the disk; the true rates of the disk if
    /// not given. Does not change the run.
    pub properties: Option<Properties>,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// How long to measure.
    pub duration: Duration,
    /// From which offsets, random gaps and stalls follow.
    pub seed: u64,
    /// When shards look whether requests may go.
    pub polling: Polling,
    /// Whether shards begin their turns by sending requests to the disk, before they take what it has
    /// finished.
    pub takes_last: bool,
    /// How long it takes from an event until the shard concerned takes notice.
    pub wake_up_latency: Duration,
    /// Threads that run the I/O queues of several shards; a queue per shard if not given.
    pub coordinators: Option<Coordinators>,
    /// Shards that stand still now and then; none if not given.
    pub stalls: Option<Stalls>,
    /// Shards that are busy with something else after their turns; none if not given.
    pub long_turns: Option<LongTurns>,
    /// Requests that are cancelled some time after they were made; none if not given.
    pub cancels: Option<Cancels>,
    /// What goes wrong with transfers that the disk has done.
    pub transfer_faults: TransferFaults,
    /// Names of jobs whose owners hold what each of their requests was granted until another like
    /// it is done.
    pub holders: Vec<String>,
    /// Bytes of the disk; as many as the files need if not given.
    pub capacity: Option<u64>,
    /// Jobs that run for a part of the time only, each at most once; the others run throughout.
    pub schedule: Vec<Period>,
    /// What changes while the load runs, in any order.
    pub changes: Vec<Change>,
    /// Whether the invariants are checked after every step. Costs most of the speed.
    pub check_invariants: bool,
    /// In how many time slices to trace the run, if at all.
    pub trace_buckets: Option<usize>,
    /// Whether the results show the run over time.
    pub series: bool,
}

impl SimulationConfig {
    /// One second of warm-up and ten of measuring under the usual scheduler, on perfect shards.
    pub fn new(jobs: JobFile, disk: Box<dyn SimDisk>) -> Self {
        Self {
            jobs,
            disk,
            file_system: None,
            scheduler: SchedulerConfig::default(),
            properties: None,
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(10),
            seed: 1,
            polling: Polling::Events,
            takes_last: false,
            wake_up_latency: Duration::ZERO,
            coordinators: None,
            stalls: None,
            long_turns: None,
            cancels: None,
            transfer_faults: TransferFaults::default(),
            holders: Vec::new(),
            capacity: None,
            schedule: Vec::new(),
            changes: Vec::new(),
            check_invariants: false,
            trace_buckets: None,
            series: false,
        }
    }

    /// When requests may go to the disk.
    pub(crate) fn policy(&self) -> Policy {
        self.scheduler.policy.unwrap_or_else(|| Policy::PaceWindow {
            latency_goal: Duration::ZERO,
            base_latency: Some(self.disk.base_latency()),
        })
    }
}

/// How requests are scheduled: what an [`IoGroup`](forebay_core::IoGroup) is made of.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// What requests are thought to cost; what the disk's true rates say if not given.
    pub model: Option<DiskModel>,
    /// When requests may go to the disk; as much as a disk of this base latency needs if not given.
    /// The open policy stands for no scheduler: then the caps of classes do not hold either.
    pub policy: Option<Policy>,
    /// In which order queues serve their classes.
    pub order: ServiceOrder,
    /// How often a busy shard is taken to poll at the least, in nanoseconds.
    pub tick_nanos: u64,
    /// Whether reads and all else have a budget each.
    pub duplex: bool,
    /// What requests may take in the disk; nothing is corrected if not given.
    pub latency_target: Option<LatencyTarget>,
    /// As in [`GroupConfig::control`](forebay_core::GroupConfig::control).
    pub control: Control,
    /// As in [`IoGroup::set_ceiling`](forebay_core::IoGroup::set_ceiling).
    pub ceiling: Ceiling,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            model: None,
            policy: None,
            order: ServiceOrder::StartTime,
            tick_nanos: 500_000,
            duplex: false,
            latency_target: None,
            control: Control::default(),
            ceiling: Ceiling::Never,
        }
    }
}

impl SchedulerConfig {
    /// Pace and window of the figures, which no trial changes.
    pub fn by_figures() -> Self {
        Self { control: Control::Rates, ..Self::default() }
    }
}

/// When shards look whether requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// After every event: a completion, a new request, a wake-up, a timeout.
    Events,
    /// Every this many nanoseconds (at least 1) and at no other time; shards take turns evenly.
    Tick(u64),
}

/// Threads that run an I/O queue each, for shards that send their requests to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinators {
    /// How many there are, at least 1; the shards are divided among them evenly, in the order of
    /// their numbers.
    pub queues: usize,
    /// For how long each request that goes to the disk keeps its coordinator busy.
    pub work: Duration,
}

/// Shards that stand still now and then, as if another program had their processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// One poll in this many stalls; at least 1.
    pub one_in: u64,
    /// For how long.
    #[serde(rename = "micros", with = "units::micros")]
    pub length: Duration,
    /// The numbers of the shards that stall.
    pub shards: Vec<u32>,
}

/// Shards that are busy with something else after their turns, whatever happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongTurns {
    /// After one turn in this many; at least 1.
    pub one_in: u64,
    /// For how long at least,
    #[serde(rename = "from_micros", with = "units::micros")]
    pub shortest: Duration,
    /// and at most; any length between them is as likely.
    #[serde(rename = "to_micros", with = "units::micros")]
    pub longest: Duration,
    /// The numbers of the shards.
    pub shards: Vec<u32>,
}

/// Requests that are cancelled, each on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancels {
    /// One request in this many is cancelled; at least 1.
    pub one_in: u64,
    /// At most so long after it was made: it may have ended by then.
    #[serde(rename = "within_micros", with = "units::micros")]
    pub within: Duration,
}

/// What an engine says of transfers that the disk has done: once in this many, never if that is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferFaults {
    /// Only a part was transferred, if anything.
    pub short_one_in: u64,
    /// Nothing was transferred, and it is to be tried again (`EAGAIN`).
    pub again_one_in: u64,
    /// Of the commands in the disk that are to be cancelled, those that are.
    pub cancelled_one_in: u64,
}

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The name of the job.
    pub job: String,
    /// When it begins, from the start of the run, warm-up included.
    pub from: Time,
    /// When it sends its last request; at the end of the run if not given. What it has sent by
    /// then is still completed.
    pub to: Option<Time>,
}

/// A change while the load runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the start of the run, warm-up included.
    #[serde(rename = "at_millis", with = "units::time_millis")]
    pub at: Time,
    /// What changes.
    pub what: What,
}

/// What changes while the load runs. Classes and groups of classes are given by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A class or a group of classes has other shares.
    Shares {
        /// The name.
        class: String,
        /// Its new shares.
        shares: u32,
    },
    /// A class has another upper limit.
    Limit {
        /// The name.
        class: String,
        /// What it may transfer over all shards together; as much as it can if not given.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_per_second: Option<u64>,
    },
    /// A class is removed, its waiting requests with it, and one of its name is added.
    Move {
        /// The name.
        class: String,
        /// The name of the group that the new class is in, if it is in one.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The scheduler has another latency target.
    Target {
        /// Which; none if not given.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "units::latency_target")]
        target: Option<LatencyTarget>,
    },
    /// No shard has a turn for so long; the disk goes on.
    Pause {
        /// How long.
        #[serde(rename = "millis", with = "units::millis")]
        length: Duration,
    },
}

impl What {
    /// The name of the class that it is about, if it is about one.
    pub(crate) fn class(&self) -> Option<&str> {
        match self {
            Self::Shares { class, .. } | Self::Limit { class, .. } | Self::Move { class, .. } => {
                Some(class)
            }
            Self::Target { .. } | Self::Pause { .. } => None,
        }
    }
}
