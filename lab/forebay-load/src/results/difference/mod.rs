//! Two runs of one load compared: what was lost, beyond what chance moves.

mod comparable;
mod disk;
mod even;
mod failed;
mod outcome;
mod stalled;
mod text;
mod uneven;

use serde::Serialize;

use super::model::{ClassResult, Report, RunResult};
use crate::significance::{chance, quantile, significant};
use comparable::{busy, check, notes, other_loads};
use even::{Known, Parts};

pub use disk::DiskLoss;
pub use failed::Failed;
pub use outcome::Outcome;
pub use stalled::StalledJob;
pub use text::text;

/// The chance that anything of a load that has not changed is called changed.
const LEVEL: f64 = 0.05;
/// A change of throughput below this is of no interest, however sure,
const RATE_MIN: f64 = 0.02;
/// and one of a latency below this.
const LATENCY_MIN: f64 = 0.05;
/// This many requests must have taken longer than a percentile for it to be judged.
const BEYOND_MIN: f64 = 10.0;

/// What is compared of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Bytes per second.
    Throughput,
    /// The median latency, in microseconds from the intended start.
    P50,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
}

/// What became of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The name of the job.
    pub job: String,
    /// What is compared.
    pub figure: Figure,
    /// Its value in the older run.
    pub old: f64,
    /// Its value in the newer run.
    pub new: f64,
    /// How sure the change is; none where there were too few requests.
    pub judged: Option<Judged>,
    /// Requests of the run that has fewer, and how many it takes.
    pub requests: [u64; 2],
}

/// How sure a change is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// By which part of the old value it rose.
    pub change: f64,
    /// How far that may be wrong, with 95 % confidence in all figures together; none where it may
    /// be anything.
    pub margin: Option<f64>,
    /// Whether it is more than chance.
    pub significant: bool,
}

impl Change {
    /// By which part the figure became worse, where that is more than chance.
    pub fn loss(&self) -> Option<f64> {
        let judged = self.judged.filter(|judged| judged.significant)?;
        let worse = match self.figure {
            Figure::Throughput => -judged.change,
            Figure::P50 | Figure::P99 | Figure::P999 => judged.change,
        };
        (worse > 0.0).then_some(worse)
    }
}

/// What changed from one run of a load to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Jobs of which requests failed in either run.
    pub failed: Vec<Failed>,
    /// Jobs that stalled in the newer run alone.
    #[serde(rename = "stood_still")]
    pub stalled: Vec<StalledJob>,
    /// Each figure of each job.
    pub changes: Vec<Change>,
    /// The same of the runs without the scheduler, where both files have these.
    pub control: Vec<Change>,
    /// What the disk itself lost: as much in these as in the others.
    pub disk: Vec<DiskLoss>,
    /// How the loads of jobs differ, which makes the runs incomparable.
    pub other_loads: Vec<String>,
    /// What else is not the same in the two runs.
    pub notes: Vec<String>,
    /// The part of the time for which threads waited for a processor, the larger of the runs in
    /// each file where it is known, if the machine was too busy in one for a change to be laid on
    /// anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<[Option<f64>; 2]>,
}

impl Figure {
    const ALL: [Self; 4] = [Self::Throughput, Self::P50, Self::P99, Self::P999];

    /// The part of requests that do not exceed it.
    fn part(self) -> Option<f64> {
        match self {
            Self::Throughput => None,
            Self::P50 => Some(0.5),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
        }
    }

    /// How many requests it takes to be judged.
    fn requests_min(self) -> u64 {
        self.part().map_or(1, |part| (BEYOND_MIN / (1.0 - part)).round() as u64)
    }

    fn value(self, class: &ClassResult) -> f64 {
        match self {
            Self::Throughput => class.bandwidth_bytes_per_second as f64,
            Self::P50 => class.latency_us.p50,
            Self::P99 => class.latency_us.p99,
            Self::P999 => class.latency_us.p999,
        }
    }

    fn known(self, parts: &Parts) -> Option<Known> {
        match self.part() {
            None => parts.throughput(),
            Some(part) => parts.percentile(part),
        }
    }
}

/// What changed from `old` to `new`: of comparisons, in the scheduled runs, where those without
/// the scheduler say how much the disk itself changed between them.
///
/// # Errors
/// They are not comparable; the text says why, and what to do.
pub fn difference(old: &Report, new: &Report) -> Result<Difference, String> {
    let [before, after] = [old, new].map(|report| judged_run(report).with_flushes_as_jobs());
    let (before, after) = (&before, &after);
    check(before, after)?;
    let controls = [old, new].map(|report| match report {
        Report::Comparison(comparison) => Some(comparison.runs[0].with_flushes_as_jobs()),
        Report::Run(_) => None,
    });
    let control = match &controls {
        [Some(before), Some(after)] if check(before, after).is_ok() => pairs(before, after)?,
        _ => Vec::new(),
    };
    let noise = |figure| between(&control, figure);
    let scheduled = pairs(before, after)?;
    let mut changes = changes(&scheduled, &noise);
    let by_themselves = |pairs: &[Pair<'_>]| self::changes(pairs, &|_| Noise::default());
    let control = by_themselves(&control);
    let disk = disk::disk_losses(&control, &by_themselves(&scheduled));
    if uneven::uneven(&control, 0.0).is_some() {
        // what latencies such a disk gives is chance of another kind than that within a run
        let latencies = changes.iter_mut().filter(|change| change.figure != Figure::Throughput);
        let judged = latencies.filter_map(|change| change.judged.as_mut());
        judged.for_each(|judged| judged.significant = false);
    }
    let (failed, stalled) = (failed::failed(before, after), stalled::stalled_jobs(before, after));
    if changes.iter().all(|change| change.judged.is_none()) {
        let is_told = failed.iter().any(|failed| failed.is_more) || !stalled.is_empty();
        match failed.first() {
            _ if is_told => {}
            Some(failed) => {
                let failed = failed.in_words();
                return Err(format!("not comparable: {failed}; nothing else could be judged"));
            }
            None => {
                return Err(String::from(
                    "not comparable: too few requests in every job; run for longer",
                ));
            }
        }
    }
    let (other_loads, notes) = (other_loads(before, after), notes(before, after));
    let busy = busy(old, new);
    Ok(Difference { failed, stalled, changes, control, disk, other_loads, notes, busy })
}

/// The run that is judged: the scheduled one.
fn judged_run(report: &Report) -> &RunResult {
    match report {
        Report::Run(run) => run,
        Report::Comparison(comparison) => &comparison.runs[1],
    }
}

/// A figure of a job in both runs.
struct Pair<'a> {
    figure: Figure,
    classes: [&'a ClassResult; 2],
    /// None where there are too few requests.
    known: Option<[Known; 2]>,
    requests: u64,
}

/// All figures of all jobs.
fn pairs<'a>(old: &'a RunResult, new: &'a RunResult) -> Result<Vec<Pair<'a>>, String> {
    let mut pairs = Vec::new();
    for classes in old.classes.iter().zip(&new.classes) {
        let classes = [classes.0, classes.1];
        let [Some(before), Some(after)] = classes.map(Parts::of) else {
            return Err(String::from(
                "not comparable: a file has no `intervals`, which distinguish chance from change; \
                 measure again",
            ));
        };
        let requests = before.latencies().min(after.latencies());
        let one = |figure: Figure| {
            let enough = requests >= figure.requests_min();
            let known = enough.then(|| Some([figure.known(&before)?, figure.known(&after)?]));
            Pair { figure, classes, known: known.flatten(), requests }
        };
        pairs.extend(Figure::ALL.map(one));
    }
    Ok(pairs)
}

/// What a figure changes by from run to run.
#[derive(Clone, Copy, Debug, Default)]
struct Noise {
    variance: f64,
    degrees: f64,
}

/// What `figure` changed by where nothing was scheduled, beyond what is seen within those runs: so
/// much the disk changed by itself.
fn between(control: &[Pair<'_>], figure: Figure) -> Noise {
    let known = control.iter().filter(|pair| pair.figure == figure);
    let excess = known.filter_map(|pair| {
        let [old, new] = pair.known?;
        Some(((new.log - old.log).powi(2) - old.variance - new.variance).max(0.0))
    });
    let excess: Vec<f64> = excess.collect();
    let degrees = excess.len() as f64;
    Noise { variance: excess.iter().sum::<f64>() / degrees.max(1.0), degrees }
}

/// The change of each pair, and whether it is more than chance.
fn changes(pairs: &[Pair<'_>], noise: &dyn Fn(Figure) -> Noise) -> Vec<Change> {
    let judged: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.known.is_some()).collect();
    let sure = |pair: &&Pair<'_>| {
        let (log, error, degrees) = pair.error(noise(pair.figure))?;
        Some(chance(log / error, degrees))
    };
    let chances: Vec<f64> = judged.iter().map(|pair| sure(pair).unwrap_or(1.0)).collect();
    let mut found = significant(&chances, LEVEL).into_iter();
    let each = LEVEL / judged.len().max(1) as f64;
    let change = |pair: &Pair<'_>| {
        let [old, new] = pair.classes.map(|class| pair.figure.value(class));
        let judged = pair.error(noise(pair.figure)).map(|(log, error, degrees)| {
            let change = if old > 0.0 { new / old - 1.0 } else { log.exp_m1() };
            let least = if pair.figure == Figure::Throughput { RATE_MIN } else { LATENCY_MIN };
            let is_found = found.next().unwrap_or_default();
            Judged {
                change,
                margin: margin(quantile(each, degrees) * error, log),
                significant: is_found && change.abs() >= least,
            }
        });
        let requests = [pair.requests, pair.figure.requests_min()];
        Change {
            job: pair.classes[1].name.clone(),
            figure: pair.figure,
            old,
            new,
            judged,
            requests,
        }
    };
    pairs.iter().map(change).collect()
}

/// A change that may be wrong by ten times, and by more than itself, is not known at all.
const MARGIN_MAX: f64 = 10.0;

/// How far a ratio of the logarithm `log` may be wrong that may be wrong by so much.
fn margin(apart: f64, log: f64) -> Option<f64> {
    let ratio = log.exp();
    Some(apart.exp_m1() * ratio).filter(|&margin| margin <= MARGIN_MAX.max(ratio))
}

impl Pair<'_> {
    /// The logarithm of the ratio, its standard error, and the degrees of freedom of that
    /// (Welch 1947).
    fn error(&self, noise: Noise) -> Option<(f64, f64, u32)> {
        let [old, new] = self.known?;
        let parts = [
            (old.variance, old.degrees),
            (new.variance, new.degrees),
            (noise.variance, noise.degrees),
        ];
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        let squares: f64 =
            parts.iter().map(|(variance, degrees)| variance.powi(2) / degrees.max(1.0)).sum();
        let degrees = if squares > 0.0 { variance.powi(2) / squares } else { old.degrees };
        let error = variance.sqrt().max(f64::EPSILON);
        Some((new.log - old.log, error, degrees.max(1.0) as u32))
    }
}
