//! A random scenario, and the files that it comes to.

use core::time::Duration;

use forebay_core::{LatencyTarget, Op, Time};
use forebay_load::Rng;

use super::case::{Case, PolicySpec, Settings};
use crate::simulation::{Cancels, Change, LongTurns, Stalls, TransferFaults, What};

/// Sets the random numbers of scenarios apart from those of their loads.
const SCENARIO_PATH: u64 = 0x5ca1e;
/// Sets apart those of what came later: a seed is otherwise what it was.
const ENGINE_PATH: u64 = 1;
const REGION_PATH: u64 = 2;
const TARGET_PATH: u64 = 3;
const WINDOW_PATH: u64 = 4;
const SIZES: [&str; 6] = ["512", "4kB", "16kB", "64kB", "128kB", "1MB"];
const KINDS: [&str; 5] = ["randread", "randwrite", "seqread", "seqwrite", "append"];

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) shards: u32,
    pub(super) jobs: Vec<SwarmJob>,
    /// The shares of the groups of classes.
    pub(super) groups: Vec<u32>,
    disk: String,
    /// What goes wrong with the disk, as in a disk file.
    pub(super) faults: Vec<String>,
    pub(super) settings: Settings,
}

/// A job with a class of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SwarmJob {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) shards: Vec<u32>,
    pub(super) parallelism: u64,
    shares: u64,
    /// The number of a group.
    pub(super) group: Option<usize>,
    size: &'static str,
    /// Ticks per second of each fiber; a closed loop without.
    rps: Option<u64>,
    is_capped: bool,
}

impl Scenario {
    pub(super) fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed, &[SCENARIO_PATH]);
        let rng = &mut rng;
        let shards = pick(rng, &[1, 1, 2, 3, 4, 8]);
        let groups: Vec<u32> = match rng.below(3) {
            0 => (0..=rng.below(2)).map(|_| shares(rng) as u32).collect(),
            _ => Vec::new(),
        };
        let jobs: Vec<SwarmJob> =
            (0..=rng.below(5)).map(|index| SwarmJob::random(rng, index, shards, &groups)).collect();
        let used: Vec<usize> = jobs.iter().filter_map(|job| job.group).collect();
        let long_turns = (rng.below(4) == 0).then(|| long_turns(rng, shards));
        // Who turns rarely has few turns in a short time.
        let millis = (50 + rng.below(150)) * if long_turns.is_some() { 3 } else { 1 };
        let mut changes: Vec<Change> =
            (0..rng.below(4)).map(|_| change(rng, millis, &jobs, &used)).collect();
        let pause = (rng.below(6) == 0).then(|| pick(rng, &[1, 20, 200, 1000, 10_000]));
        changes.extend(pause.map(|length| Change {
            at: at_millis(rng.below(millis)),
            what: What::Pause { length: Duration::from_millis(length) },
        }));
        let holders = jobs.iter().filter(|_| rng.below(12) == 0).map(|job| job.name.clone());
        let holders: Vec<String> = holders.collect();
        let (cancels, transfers) = engine(seed);
        Self {
            seed,
            shards,
            groups,
            disk: disk(rng),
            faults: (0..rng.below(5).saturating_sub(2)).map(|_| fault(rng, millis)).collect(),
            settings: Settings {
                millis: millis + pause.unwrap_or(0),
                model_percent: pick(rng, &[10, 30, 50, 80, 95, 100, 100, 100, 120, 300, 1000]),
                policy: policy(rng),
                latency_target: target(seed),
                finds_window: finds_window(seed),
                duplex: rng.below(4) == 0,
                tick_micros: (rng.below(4) == 0).then_some(500),
                wake_up_micros: pick(rng, &[0, 0, 5, 50]),
                takes_last: rng.below(8) == 0,
                stalls: (rng.below(3) == 0).then(|| stalls(rng, shards)),
                long_turns,
                cancels,
                transfers,
                holders,
                mix_percent: mix_percent(seed),
                changes,
            },
            jobs,
        }
    }

    /// All that it takes to run it.
    pub(super) fn case(&self) -> Case {
        Case {
            seed: self.seed,
            shards: self.shards,
            settings: self.settings.clone(),
            disk: self.disk_file(),
            jobs: self.jobs.iter().map(SwarmJob::yaml).collect(),
            sched_groups: self.sched_groups_file(),
        }
    }

    fn disk_file(&self) -> String {
        let faults = self.faults.join(", ");
        format!("{}faults: [{faults}]\n", self.disk)
    }

    /// The sched-groups file, if there are groups.
    fn sched_groups_file(&self) -> Option<String> {
        let mut text = String::new();
        for (group, shares) in self.groups.iter().enumerate() {
            let jobs = self.jobs.iter().filter(|job| job.group == Some(group));
            let classes: String = jobs
                .map(|job| {
                    let (name, shares) = (job.class(), job.shares);
                    format!("- {{name: {name}, shares: {shares}, parent: group{group}}}\n")
                })
                .collect();
            if !classes.is_empty() {
                text += &format!("- {{name: group{group}, shares: {shares}}}\n{classes}");
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl SwarmJob {
    fn random(rng: &mut Rng, index: u64, shards: u32, groups: &[u32]) -> Self {
        let mut on: Vec<u32> = (0..shards).filter(|_| rng.below(3) > 0).collect();
        if on.is_empty() {
            on.push(rng.below(u64::from(shards)) as u32);
        }
        let group = rng.below(groups.len() as u64 + 1) as usize;
        Self {
            name: format!("job{index}"),
            kind: pick(rng, &KINDS),
            shards: on,
            parallelism: pick(rng, &[1, 1, 2, 8, 32, 64]),
            shares: shares(rng),
            group: group.checked_sub(1),
            size: pick(rng, &SIZES),
            rps: (rng.below(3) == 0).then(|| pick(rng, &[10, 100, 1000])),
            is_capped: rng.below(8) == 0,
        }
    }

    /// The name of its class.
    pub(super) fn class(&self) -> String {
        self.group.map_or_else(|| self.name.clone(), |_| format!("class-{}", self.name))
    }

    fn yaml(&self) -> String {
        let Self { name, kind, shards, parallelism, size, .. } = self;
        let mut info = format!("parallelism: {parallelism}, reqsize: {size}");
        match self.group {
            Some(_) => info += &format!(", class: {}", self.class()),
            None => info += &format!(", shares: {}", self.shares),
        }
        if let Some(rps) = self.rps {
            info += &format!(", rps: {rps}");
        }
        if self.is_capped {
            info += ", bandwidth: 10MB";
        }
        let flushes =
            matches!(self.kind, "randwrite" | "append") && self.parallelism.is_multiple_of(2);
        let options = if flushes { "\n  options: {fsync_every: 10}" } else { "" };
        format!(
            "- name: {name}\n  type: {kind}\n  shards: {shards:?}\n  shard_info: {{{info}}}{options}\n"
        )
    }
}

/// Of the groups, those in `used` have classes when the run begins.
fn change(rng: &mut Rng, millis: u64, jobs: &[SwarmJob], used: &[usize]) -> Change {
    let at = at_millis(rng.below(millis));
    let class = jobs[rng.below(jobs.len() as u64) as usize].class();
    let what = match rng.below(4) {
        0 | 1 => What::Shares { class, shares: shares(rng) as u32 },
        2 => {
            let limits = [None, None, Some(1), Some(1_000_000), Some(10_000_000), Some(1 << 30)];
            What::Limit { class, bytes_per_second: pick(rng, &limits) }
        }
        _ => {
            let group = rng.below(used.len() as u64 + 1) as usize;
            let parent = used.get(group).map(|group| format!("group{group}"));
            What::Move { class, parent }
        }
    };
    Change { at, what }
}

fn at_millis(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn disk(rng: &mut Rng) -> String {
    let channels = pick(rng, &[1, 4, 32]);
    let read = pick(rng, &[20, 80, 500, 5000]);
    let write = pick(rng, &[20, 80, 500, 5000]);
    let bandwidth = pick(rng, &[50, 500, 3000]);
    format!(
        "kind: ideal\nchannels: {channels}\nread_latency: {read}us\nwrite_latency: {write}us\n\
         bandwidth: {bandwidth}M\n"
    )
}

fn fault(rng: &mut Rng, millis: u64) -> String {
    let from = rng.below(millis);
    let to = from + 1 + rng.below(millis);
    match rng.below(5) {
        0 => {
            let percent = pick(rng, &[3, 10, 30, 80]);
            format!("{{kind: slow, from: {from}ms, to: {to}ms, percent: {percent}}}")
        }
        1 => format!("{{kind: hang, from: {from}ms, to: {to}ms}}"),
        2 => format!("{{kind: hang, from: {from}ms, offset: 0, length: 16MB}}"),
        3 => String::from("{kind: error, offset: 16MB, length: 128MB}"),
        _ => String::from("{kind: reorder, spread: 2ms}"),
    }
}

fn policy(rng: &mut Rng) -> PolicySpec {
    let latency_goal_micros = 750;
    match rng.below(12) {
        0 => PolicySpec::None,
        1 => PolicySpec::Concurrency { requests: pick(rng, &[1, 4, 32]) },
        2 => PolicySpec::LittlesLaw { latency_goal_micros },
        3 => PolicySpec::TokenBucket { latency_goal_micros },
        4 => PolicySpec::TwoLevelBucket { latency_goal_micros },
        5 => PolicySpec::FlowRatio { latency_goal_micros },
        _ => {
            let base_latency_micros = (rng.below(2) == 0).then_some(100);
            let latency_goal_micros = pick(rng, &[100, 750, 750, 5000]);
            PolicySpec::PaceWindow { latency_goal_micros, base_latency_micros }
        }
    }
}

fn stalls(rng: &mut Rng, shards: u32) -> Stalls {
    Stalls {
        one_in: pick(rng, &[10, 100, 1000]),
        length: Duration::from_micros(pick(rng, &[500, 3000, 10_000])),
        shards: (0..shards).filter(|_| rng.below(2) == 0).collect(),
    }
}

/// Shards whose turns are all slow and irregular, or who compute for a while now and then.
fn long_turns(rng: &mut Rng, shards: u32) -> LongTurns {
    let (one_in, shortest, longest) = match rng.below(4) {
        0 => (10, 5000, 50_000),
        1 => (1, 100, 1000),
        2 => (1, 100, 20_000),
        _ => {
            let every = pick(rng, &[500, 1500, 2400, 5000, 20_000]);
            (1, every, every)
        }
    };
    let shards = (0..shards).filter(|_| rng.below(2) == 0).collect();
    let [shortest, longest] = [shortest, longest].map(Duration::from_micros);
    LongTurns { one_in, shortest, longest, shards }
}

/// Requests that are cancelled, early and late, and what the engine does with transfers.
fn engine(seed: u64) -> (Option<Cancels>, Option<TransferFaults>) {
    let rng = &mut Rng::new(seed, &[SCENARIO_PATH, ENGINE_PATH]);
    let cancels = (rng.below(3) == 0).then(|| Cancels {
        one_in: pick(rng, &[3, 10, 100]),
        within: Duration::from_micros(pick(rng, &[50, 1000, 20_000, 200_000])),
    });
    let transfers = (rng.below(3) == 0).then(|| TransferFaults {
        short_one_in: pick(rng, &[0, 2, 10, 100]),
        again_one_in: pick(rng, &[0, 1, 2, 10, 100]),
        cancelled_one_in: pick(rng, &[0, 1, 2]),
    });
    (cancels, transfers)
}

/// Prices of mixes: of reads alone, of writes alone, and between.
fn mix_percent(seed: u64) -> Option<[u32; 5]> {
    let rng = &mut Rng::new(seed, &[SCENARIO_PATH, REGION_PATH]);
    (rng.below(2) == 0).then(|| {
        core::array::from_fn(|_| pick(rng, &[25, 50, 60, 80, 100, 120, 200, 300, 1000, 1600]))
    })
}

/// What is promised of the latency in the disk.
fn target(seed: u64) -> Option<LatencyTarget> {
    let rng = &mut Rng::new(seed, &[SCENARIO_PATH, TARGET_PATH]);
    let millis = [1, 1, 10].map(Duration::from_millis);
    match rng.below(4) {
        0..=2 => None,
        _ => {
            let (op, permille) = (pick(rng, &[Op::Read, Op::Write]), pick(rng, &[500, 950, 999]));
            LatencyTarget::new(op, permille, pick(rng, &millis)).ok()
        }
    }
}

/// Whether the window is found by trials, whatever is promised of latency.
fn finds_window(seed: u64) -> bool {
    Rng::new(seed, &[SCENARIO_PATH, WINDOW_PATH]).below(3) == 0
}

fn shares(rng: &mut Rng) -> u64 {
    pick(rng, &[1, 10, 50, 100, 100, 200, 1000, 10_000])
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}
