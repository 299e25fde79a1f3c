//! A scenario as one file, which says all that it takes to run it again.

use std::time::Duration;

use forebay_config::{ConfigError, Source};
use forebay_core::{
    Control, DiskModel, DiskRates, LatencyTarget, MIX_PRICES, MixPrices, PRICE_ONE, Policy,
};
use forebay_load::job_file::JobFile;
use serde::{Deserialize, Serialize};

use crate::config::units;
use crate::simulation::{
    Cancels, Change, LongTurns, Outcome, Polling, SchedulerConfig, Simulation, SimulationConfig,
    SimulationError, Stalls, TransferFaults,
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
    /// What requests may take in the disk; nothing is corrected if not given.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "units::latency_target")]
    pub latency_target: Option<LatencyTarget>,
    /// Whether the window is found by trials.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub finds_window: bool,
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
    pub stalls: Option<Stalls>,
    /// Shards that are busy with something else after their turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_turns: Option<LongTurns>,
    /// Requests that are cancelled some time after they were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels: Option<Cancels>,
    /// What goes wrong with transfers that the disk has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferFaults>,
    /// Names of jobs that hold what their requests were granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<String>,
    /// What mixes cost alongside their parts, in percent, at equal steps of the part of writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix_percent: Option<[u32; 5]>,
    /// What changes on the way.
    pub changes: Vec<Change>,
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
                latency_target: settings.latency_target,
                control: if settings.finds_window { Control::Adaptive } else { Control::Rates },
                ..SchedulerConfig::default()
            },
            warmup: Duration::ZERO,
            duration: Duration::from_millis(settings.millis),
            seed: self.seed,
            polling: settings.polling(),
            takes_last: settings.takes_last,
            wake_up_latency: Duration::from_micros(settings.wake_up_micros),
            stalls: settings.stalls.clone(),
            long_turns: settings.long_turns.clone(),
            cancels: settings.cancels,
            transfer_faults: settings.transfers.unwrap_or_default(),
            holders: settings.holders.clone(),
            changes: settings.changes.clone(),
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
        let stated = |rate: u64| (rate.saturating_mul(100) / self.model_percent).max(1);
        let model = DiskModel::from_rates(&DiskRates {
            read_iops: stated(rates.read_iops),
            write_iops: stated(rates.write_iops),
            read_bandwidth: stated(rates.read_bandwidth),
            write_bandwidth: stated(rates.write_bandwidth),
        })
        .map_err(SimulationError::Model)?;
        Ok(model.with_mix_prices(self.mix_percent.map(mix_prices)))
    }

    fn polling(&self) -> Polling {
        self.tick_micros
            .map_or(Polling::Events, |micros| Polling::Tick(micros.saturating_mul(1000)))
    }
}

/// The prices with straight edges between these, in percent.
fn mix_prices(percent: [u32; 5]) -> MixPrices {
    const STEPS: usize = (MIX_PRICES - 1) / 4;
    MixPrices::new(core::array::from_fn(|step| {
        let (from, beyond) = (step / STEPS, step % STEPS);
        let low = u64::from(percent[from]) * (STEPS - beyond) as u64;
        let high = percent.get(from + 1).map_or(0, |&high| u64::from(high) * beyond as u64);
        let price = (low + high) * u64::from(PRICE_ONE) / (100 * STEPS as u64);
        u32::try_from(price).unwrap_or(u32::MAX)
    }))
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
