//! Two runs of one load compared: what was lost, beyond what chance moves.

mod even;
mod text;

use serde::Serialize;

use super::advice::PROCESSOR_WAIT_MAX;
use super::model::{ClassResult, Report, RunResult};
use crate::significance::{chance, quantile, significant};
use even::{Known, Parts};

pub use text::{name, text};

/// The chance that anything of a load that has not changed is called changed.
const LEVEL: f64 = 0.05;
/// A change of throughput below this is of no interest, however sure,
const RATE_MIN: f64 = 0.02;
/// and one of a latency below this.
const LATENCY_MIN: f64 = 0.05;
/// So many requests must have taken longer than a percentile for it to be judged.
const BEYOND_MIN: f64 = 10.0;
/// A run that is shorter than another by this part is another load.
const LENGTH: f64 = 0.1;
/// The simulator, which nothing else is comparable with.
const SIMULATED: &str = "simulated";

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
    /// How far that may be wrong, with 95 % confidence in all figures together.
    pub margin: f64,
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
    /// Each figure of each job.
    pub changes: Vec<Change>,
    /// The same of the runs without the scheduler, where both files have these.
    pub control: Vec<Change>,
    /// What else is not the same in the two runs.
    pub notes: Vec<String>,
    /// The part of the time for which threads waited for a processor in each run, where the machine
    /// was too busy in one for a loss to be laid on anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<[f64; 2]>,
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
    let (before, after) = (judged_run(old), judged_run(new));
    check(before, after)?;
    let controls = [old, new].map(|report| match report {
        Report::Comparison(comparison) => Some(&comparison.runs[0]),
        Report::Run(_) => None,
    });
    let control = match controls {
        [Some(before), Some(after)] if check(before, after).is_ok() => pairs(before, after)?,
        _ => Vec::new(),
    };
    let noise = |figure| between(&control, figure);
    let changes = changes(&pairs(before, after)?, &noise);
    if changes.iter().all(|change| change.judged.is_none()) {
        return Err(String::from("not comparable: too few requests in every job; run for longer"));
    }
    let control = self::changes(&control, &|_| Noise::default());
    let (notes, busy) = (notes(before, after), busy(before, after));
    Ok(Difference { changes, control, notes, busy })
}

/// How busy the machine was, where that is too much.
fn busy(old: &RunResult, new: &RunResult) -> Option<[f64; 2]> {
    let waits = [old.processor_wait?, new.processor_wait?];
    waits.iter().any(|&part| part >= PROCESSOR_WAIT_MAX).then_some(waits)
}

/// The run that is judged: the scheduled one.
fn judged_run(report: &Report) -> &RunResult {
    match report {
        Report::Run(run) => run,
        Report::Comparison(comparison) => &comparison.runs[1],
    }
}

/// Whether it is the same load.
fn check(old: &RunResult, new: &RunResult) -> Result<(), String> {
    let names = |run: &RunResult| {
        run.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let differs = |what: &str, old: &str, new: &str| {
        Err(format!("not comparable: {what} {old} before, {new} now; run the same load again"))
    };
    if names(old) != names(new) {
        return differs("the jobs were", &names(old), &names(new));
    }
    if (old.backend == SIMULATED) != (new.backend == SIMULATED) {
        return differs("I/O was", &old.backend, &new.backend);
    }
    let [shorter, longer] = [
        old.duration_seconds.min(new.duration_seconds),
        old.duration_seconds.max(new.duration_seconds),
    ];
    if shorter < longer * (1.0 - LENGTH) {
        let seconds = |run: &RunResult| format!("{} s", run.duration_seconds);
        return differs("the run took", &seconds(old), &seconds(new));
    }
    Ok(())
}

/// What else is not the same, which may be what was changed.
fn notes(old: &RunResult, new: &RunResult) -> Vec<String> {
    let shares = |run: &RunResult| {
        let shares = run.classes.iter().map(|class| format!("{} {}", class.name, class.shares));
        shares.collect::<Vec<_>>().join(", ")
    };
    let properties = |run: &RunResult| {
        let of = &run.properties;
        let figures = [of.read_iops, of.write_iops, of.read_bandwidth, of.write_bandwidth];
        figures
            .map(|figure| figure.map_or_else(|| String::from("-"), |it| it.to_string()))
            .join(" ")
    };
    let told: [(&str, String, String); 7] = [
        ("scheduler", old.scheduler.clone(), new.scheduler.clone()),
        ("order", old.order.clone(), new.order.clone()),
        ("topology", old.topology.clone(), new.topology.clone()),
        ("I/O queues", old.io_queues.to_string(), new.io_queues.to_string()),
        ("backend", old.backend.clone(), new.backend.clone()),
        ("shares", shares(old), shares(new)),
        ("figures of the disk", properties(old), properties(new)),
    ];
    let differ = told.into_iter().filter(|(_, old, new)| old != new);
    differ.map(|(what, old, new)| format!("{what}: {old} before, {new} now")).collect()
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
                "not comparable: there is no `intervals` in a file, by which chance is told from \
                 change; measure again",
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
                margin: ((quantile(each, degrees) * error).exp_m1() * log.exp()).min(MARGIN_MAX),
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

/// A change that may be wrong by ten times is not known at all.
const MARGIN_MAX: f64 = 10.0;

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
