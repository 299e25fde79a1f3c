//! A scenario as one file, which says all that it takes to run it again.

use std::time::Duration;

use forebay_config::{ConfigError, Source};
use forebay_core::{DiskModel, DiskRates, Policy, Time};
use forebay_load::job_file::JobFile;
use serde::{Deserialize, Serialize};

use crate::simulation::{
    Cancels, Change, LongTurns, Outcome, Polling, SchedulerConfig, Simulation, SimulationConfig,
    SimulationError, Stalls, TransferFaults, What,
};
use crate::spec::DiskSpec;

/// A scenario, as it is written down and read again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// From which all that is random about the run follows.
    pub seed: u64,
    /// How many shards there are, for jobs on `all` of them.
    pub shards: u32,
    /// What no other file says.
    pub settings: Settings,
    /// The text of the disk file.
    pub disk: String,
    /// The text of the job file.
    pub jobs: String,
    /// The text of the sched-groups file, if there are groups of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sched_groups: Option<String>,
}

/// How the load of a [`Case`] is scheduled, and what disturbs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long the run is, in virtual milliseconds.
    pub millis: u64,
    /// What the disk does in percent of what the scheduler believes, at least 1.
    pub model_percent: u64,
    /// When requests may go to the disk.
    pub policy: PolicySpec,
    /// Whether reads and all else have a budget each.
    pub duplex: bool,
    /// How often shards look for work; on every event if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_micros: Option<u64>,
    /// How long a shard takes to notice an event.
    pub wake_up_micros: u64,
    /// Whether turns begin by sending requests to the disk.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub takes_last: bool,
    /// Shards that stand still now and then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalling>,
    /// Shards that are busy with something else after their turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_turns: Option<Turning>,
    /// Requests that are cancelled some time after they were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels: Option<Cancelling>,
    /// What goes wrong with transfers that the disk has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<Transferring>,
    /// Names of jobs that hold what their requests were granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
    /// What changes on the way.
    pub changes: Vec<Event>,
}

/// A [`Policy`] in words and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are those of the policies and of their parameters")]
pub enum PolicySpec {
    None,
    Concurrency {
        requests: u32,
    },
    LittlesLaw {
        latency_goal_micros: u64,
    },
    TokenBucket {
        latency_goal_micros: u64,
    },
    TwoLevelBucket {
        latency_goal_micros: u64,
    },
    FlowRatio {
        latency_goal_micros: u64,
    },
    PaceWindow {
        latency_goal_micros: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        base_latency_micros: Option<u64>,
    },
}

/// Shards that stand still now and then: [`Stalls`] in words and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `Stalls`")]
pub struct Stalling {
    pub one_in: u64,
    pub micros: u64,
    pub shards: Vec<u32>,
}

/// Shards that are busy with something else after their turns: [`LongTurns`] in words and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `LongTurns`")]
pub struct Turning {
    pub one_in: u64,
    pub from_micros: u64,
    pub to_micros: u64,
    pub shards: Vec<u32>,
}

/// Requests that are cancelled: [`Cancels`] in words and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `Cancels`")]
pub struct Cancelling {
    pub one_in: u64,
    pub within_micros: u64,
}

/// What goes wrong with transfers: [`TransferFaults`] in words and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in `TransferFaults`")]
pub struct Transferring {
    pub short_one_in: u64,
    pub again_one_in: u64,
    pub cancelled_one_in: u64,
}

/// A [`Change`] in words and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// When, from the start of the run.
    pub at_millis: u64,
    /// What changes.
    pub what: Kind,
}

/// What changes: [`What`] in words and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in `What`")]
pub enum Kind {
    Shares {
        class: String,
        shares: u32,
    },
    Limit {
        class: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_per_second: Option<u64>,
    },
    Move {
        class: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    Pause {
        millis: u64,
    },
}

impl Case {
    /// Reads a case that [`Case::to_yaml`] has written.
    ///
    /// # Errors
    /// The text is no case.
    pub fn parse(source: &Source<'_>) -> Result<Self, ConfigError> {
        source.parse()
    }

    /// The case as a file, or why it cannot be written down.
    ///
    /// # Errors
    /// There is no way to write it as YAML.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        serde_saphyr::to_string(self)
    }

    /// Runs it, and checks the invariants at every step.
    ///
    /// # Errors
    /// The files it holds are none, its settings are contradictory, or an invariant does not hold.
    pub fn run(&self) -> Result<Outcome, SimulationError> {
        Simulation::new(self.config()?)?.run()
    }

    /// What to simulate.
    pub(super) fn config(&self) -> Result<SimulationConfig, SimulationError> {
        let invalid = |error: ConfigError| SimulationError::Scenario(error.to_string());
        let groups = self.sched_groups.as_deref().map(|text| Source::new("sched_groups", text));
        let jobs = JobFile::parse(&Source::new("jobs", &self.jobs), groups.as_ref(), self.shards)
            .map_err(invalid)?;
        let disk = DiskSpec::parse(&Source::new("disk", &self.disk)).map_err(invalid)?;
        let disk = disk.build(self.seed);
        let settings = &self.settings;
        Ok(SimulationConfig {
            scheduler: SchedulerConfig {
                model: Some(settings.model(&disk.rates())?),
                policy: Some(settings.policy.policy()),
                duplex: settings.duplex,
                ..SchedulerConfig::default()
            },
            warmup: Duration::ZERO,
            duration: Duration::from_millis(settings.millis),
            seed: self.seed,
            polling: settings.polling(),
            takes_last: settings.takes_last,
            wake_up_latency: Duration::from_micros(settings.wake_up_micros),
            stalls: settings.stalls.as_ref().map(Stalling::stalls),
            long_turns: settings.long_turns.as_ref().map(Turning::long_turns),
            cancels: settings.cancels.map(Cancelling::cancels),
            transfer_faults: settings.transfers.map(Transferring::faults).unwrap_or_default(),
            holders: settings.holders.clone(),
            changes: settings.changes.iter().map(Event::change).collect(),
            check_invariants: true,
            ..SimulationConfig::new(jobs, disk)
        })
    }
}

impl Settings {
    /// What the scheduler believes of a disk of these rates.
    fn model(&self, rates: &DiskRates) -> Result<DiskModel, SimulationError> {
        if self.model_percent == 0 {
            return Err(SimulationError::Zero("model_percent"));
        }
        let told = |rate: u64| (rate.saturating_mul(100) / self.model_percent).max(1);
        DiskModel::from_rates(&DiskRates {
            read_iops: told(rates.read_iops),
            write_iops: told(rates.write_iops),
            read_bandwidth: told(rates.read_bandwidth),
            write_bandwidth: told(rates.write_bandwidth),
        })
        .map_err(SimulationError::Model)
    }

    fn polling(&self) -> Polling {
        self.tick_micros
            .map_or(Polling::Events, |micros| Polling::Tick(micros.saturating_mul(1000)))
    }
}

impl PolicySpec {
    fn policy(self) -> Policy {
        let goal = Duration::from_micros;
        match self {
            Self::None => Policy::Unlimited,
            Self::Concurrency { requests } => Policy::Concurrency { requests },
            Self::LittlesLaw { latency_goal_micros } => {
                Policy::LittlesLaw { latency_goal: goal(latency_goal_micros) }
            }
            Self::TokenBucket { latency_goal_micros } => {
                Policy::TokenBucket { latency_goal: goal(latency_goal_micros) }
            }
            Self::TwoLevelBucket { latency_goal_micros } => {
                Policy::TwoLevelBucket { latency_goal: goal(latency_goal_micros) }
            }
            Self::FlowRatio { latency_goal_micros } => {
                Policy::FlowRatio { latency_goal: goal(latency_goal_micros) }
            }
            Self::PaceWindow { latency_goal_micros, base_latency_micros } => Policy::PaceWindow {
                latency_goal: goal(latency_goal_micros),
                base_latency: base_latency_micros.map(goal),
            },
        }
    }
}

impl Stalling {
    fn stalls(&self) -> Stalls {
        let Self { one_in, micros, ref shards } = *self;
        Stalls { one_in, length: Duration::from_micros(micros), shards: shards.clone() }
    }
}

impl Turning {
    fn long_turns(&self) -> LongTurns {
        let Self { one_in, from_micros, to_micros, ref shards } = *self;
        LongTurns {
            one_in,
            shortest: Duration::from_micros(from_micros),
            longest: Duration::from_micros(to_micros),
            shards: shards.clone(),
        }
    }
}

impl Cancelling {
    const fn cancels(self) -> Cancels {
        let Self { one_in, within_micros } = self;
        Cancels { one_in, within: Duration::from_micros(within_micros) }
    }
}

impl Transferring {
    const fn faults(self) -> TransferFaults {
        let Self { short_one_in, again_one_in, cancelled_one_in } = self;
        TransferFaults { short_one_in, again_one_in, cancelled_one_in }
    }
}

impl Event {
    fn change(&self) -> Change {
        let at = Time::from_nanos(self.at_millis.saturating_mul(1_000_000));
        Change { at, what: self.what.clone().what() }
    }
}

impl Kind {
    fn what(self) -> What {
        match self {
            Self::Shares { class, shares } => What::Shares { class, shares },
            Self::Limit { class, bytes_per_second } => What::Limit { class, bytes_per_second },
            Self::Move { class, parent } => What::Move { class, parent },
            Self::Pause { millis } => What::Pause(Duration::from_millis(millis)),
        }
    }

    /// The name of the class that it is about, if it is about one.
    pub(super) fn class(&self) -> Option<&str> {
        match self {
            Self::Shares { class, .. } | Self::Limit { class, .. } | Self::Move { class, .. } => {
                Some(class)
            }
            Self::Pause { .. } => None,
        }
    }
}
