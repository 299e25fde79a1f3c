//! What a comparison comes to, in words.

use std::fmt;

use forebay_report::paragraph_within;

use super::figures::{change, duration, megabytes};
use super::model::{ClassResult, Comparison, LatencyResult};
use super::table::total_bandwidth;

/// A change of a percentile that is worth a word; smaller ones are often chance.
const LATENCY_CHANGE_MIN: f64 = 0.20;
/// A change of bandwidth that is worth a word.
const BANDWIDTH_CHANGE_MIN: f64 = 0.05;
/// A percentile that fell to less than this part is hardly chance, even in one run.
const CLEAR_GAIN: f64 = 0.5;
/// A change of bandwidth by fewer requests than this can be where the run ended.
const REQUESTS_MOVED_MIN: f64 = 10.0;

/// A job asked for more than it got if more requests than this part of those done were due and not
/// done at the end.
const OVERDUE_PART_MIN: f64 = 0.1;

/// Where a larger part of the requests of a job failed, the rest is not its load.
const FAILED_PART_MAX: f64 = 0.05;

/// What a comparison comes to. Displays as a few lines of plain words, none of them longer than 80
/// characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What it comes to.
    pub kind: VerdictKind,
    /// Its sentences, without line breaks.
    pub sentences: Vec<String>,
}

/// What a comparison comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// Scheduling lowered the percentile of this job most, by more than 20 %.
    Gain(String),
    /// No percentile changed by more than 20 % and no bandwidth by more than 5 %, of any job.
    NoContention,
    /// The same, but a job asked for more than it got in both runs.
    Overload,
    /// No percentile fell by more than 20 %, but bandwidth moved between jobs.
    Redistribution,
    /// No percentile fell by more than 20 % and no bandwidth rose, and some was lost, or a
    /// percentile rose.
    Loss,
    /// More than 5 % of the requests of a job failed: figures are of the others only.
    Failures,
    /// Too few requests of a job to say anything, where nothing is to be said of the others.
    TooShort,
}

/// Says what scheduling did to a load: who gained most, and at what price. Each job is judged by
/// the highest percentile that rests on five requests in both runs; jobs without one are named.
pub fn verdict(comparison: &Comparison) -> Verdict {
    let [before, after] = &comparison.runs;
    let pairs: Vec<ClassPair<'_>> =
        before.classes.iter().zip(&after.classes).map(ClassPair).collect();
    let total = [total_bandwidth(before), total_bandwidth(after)].map(|total| total as f64);
    let kind = kind_of(&pairs, ratio(total));
    let mut sentences = vec![first_sentence(&kind, &pairs)];
    let says_more =
        matches!(kind, VerdictKind::Gain(_) | VerdictKind::Redistribution | VerdictKind::Loss);
    if says_more {
        sentences.push(format!("Total bandwidth: {}.", from_to(total, megabytes, " MB/s")));
        let judged = judged(&pairs).filter(|(_, latency)| latency.loses());
        let worst = judged.max_by(|(_, a), (_, b)| a.ratio().total_cmp(&b.ratio()));
        sentences.extend(worst.map(|(name, latency)| format!("{name} lost most: {latency}.")));
        sentences.extend(pairs.iter().filter(|pair| pair.bandwidth_moved()).map(|pair| {
            format!("{}: {}.", pair.name(), from_to(pair.bandwidth(), megabytes, " MB/s"))
        }));
    }
    sentences.extend(pairs.iter().filter(|pair| pair.is_overloaded()).map(ClassPair::overload));
    sentences.extend(not_judged(&pairs));
    Verdict { kind, sentences }
}

fn kind_of(pairs: &[ClassPair<'_>], total_ratio: f64) -> VerdictKind {
    if pairs.iter().any(ClassPair::failed) {
        return VerdictKind::Failures;
    }
    if let Some((name, _)) = best(pairs).filter(|(_, latency)| latency.gains()) {
        return VerdictKind::Gain(name);
    }
    let moved: Vec<&ClassPair<'_>> = pairs.iter().filter(|pair| pair.bandwidth_moved()).collect();
    if moved.iter().any(|pair| ratio(pair.bandwidth()) > 1.0) {
        return VerdictKind::Redistribution;
    }
    let is_less = total_ratio < 1.0 - BANDWIDTH_CHANGE_MIN && !moved.is_empty();
    if is_less || judged(pairs).any(|(_, latency)| latency.loses()) {
        return VerdictKind::Loss;
    }
    if !moved.is_empty() {
        return VerdictKind::Redistribution;
    }
    if judged(pairs).next().is_none() || pairs.iter().any(ClassPair::lacks_requests) {
        return VerdictKind::TooShort;
    }
    match pairs.iter().any(ClassPair::is_overloaded) {
        true => VerdictKind::Overload,
        false => VerdictKind::NoContention,
    }
}

/// The first sentence.
fn first_sentence(kind: &VerdictKind, pairs: &[ClassPair<'_>]) -> String {
    let percentiles = judged_by(pairs);
    match kind {
        VerdictKind::Gain(name) => {
            let Some((_, latency)) = best(pairs) else { return String::new() };
            let doubt = if latency.ratio() > CLEAR_GAIN {
                " So small a gain can be chance: repeat the run."
            } else {
                ""
            };
            format!("{name} gained most: {latency}.{doubt}")
        }
        VerdictKind::NoContention => format!(
            "This load causes no contention worth scheduling: no {percentiles} changed by more \
             than 20 %, no bandwidth by more than 5 %."
        ),
        VerdictKind::Overload => format!(
            "Scheduling changed nothing: no {percentiles} changed by more than 20 %, no bandwidth by \
             more than 5 %."
        ),
        VerdictKind::Redistribution => format!(
            "Scheduling moved bandwidth between jobs; no {percentiles} fell by more than 20 %."
        ),
        VerdictKind::Loss => format!(
            "Scheduling did not pay under this load: no {percentiles} fell by more than 20 %."
        ),
        VerdictKind::Failures => {
            let failed = pairs.iter().filter(|pair| pair.failed()).map(ClassPair::failures);
            format!(
                "No verdict: requests failed, and figures are of the others only: {}.",
                failed.collect::<Vec<_>>().join("; ")
            )
        }
        VerdictKind::TooShort if judged(pairs).next().is_some() => format!(
            "No verdict: no {percentiles} changed by more than 20 %, no bandwidth by more than \
             5 %, but not all jobs could be judged."
        ),
        VerdictKind::TooShort => {
            format!("No verdict: no job has {MEDIAN_REQUESTS} requests in both runs.")
        }
    }
}

/// By which percentiles jobs were judged: the 99th, and of those with few requests a lower one.
fn judged_by(pairs: &[ClassPair<'_>]) -> String {
    let lower = judged(pairs).filter(|(_, latency)| latency.percentile != "p99");
    let lower: Vec<String> =
        lower.map(|(name, latency)| format!("{} of {name}", latency.percentile)).collect();
    if lower.is_empty() {
        String::from("p99")
    } else {
        format!("p99 ({}, of few requests)", lower.join(", "))
    }
}

/// Which jobs were not judged and why, if any were not.
fn not_judged(pairs: &[ClassPair<'_>]) -> Option<String> {
    let lacking = pairs.iter().filter(|pair| pair.lacks_requests());
    let named: Vec<String> = lacking.map(ClassPair::requests_in_words).collect();
    (!named.is_empty())
        .then(|| format!("Not judged, for too few requests: {}; run for longer.", named.join(", ")))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| f.write_str(&fold(sentence)))
    }
}

/// Longest line of text, in characters, unless a word of it is longer.
const LINE_WIDTH_MAX: usize = 80;

/// Breaks a sentence into lines, each with its end.
pub(super) fn fold(sentence: &str) -> String {
    let mut lines = String::new();
    paragraph_within(&mut lines, "", sentence, LINE_WIDTH_MAX);
    lines
}

/// With fewer requests than this not even the median rests on five of them.
const MEDIAN_REQUESTS: u64 = 10;

/// A percentile of a job's latencies without and with the scheduler.
struct Latency {
    percentile: &'static str,
    us: [f64; 2],
}

impl Latency {
    /// The highest percentile that five requests were above in both runs, if one was.
    fn of([without, with]: [u64; 2], latencies: [&LatencyResult; 2]) -> Option<Self> {
        let (percentile, of): (_, fn(&LatencyResult) -> f64) = match without.min(with) {
            500.. => ("p99", |latency| latency.p99),
            100.. => ("p95", |latency| latency.p95),
            MEDIAN_REQUESTS.. => ("p50", |latency| latency.p50),
            _ => return None,
        };
        Some(Self { percentile, us: latencies.map(of) })
    }

    fn ratio(&self) -> f64 {
        ratio(self.us)
    }

    fn gains(&self) -> bool {
        self.ratio() < 1.0 - LATENCY_CHANGE_MIN
    }

    fn loses(&self) -> bool {
        self.ratio() > 1.0 + LATENCY_CHANGE_MIN
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.percentile, from_to(self.us, duration, ""))
    }
}

/// The jobs with requests enough to judge a percentile, and that percentile; so the flushes of jobs.
fn judged(pairs: &[ClassPair<'_>]) -> impl Iterator<Item = (String, Latency)> {
    let named = |pair: &ClassPair<'_>| {
        let flushes = pair.0.0.flushes_name();
        [(pair.name().to_owned(), pair.latency()), (flushes, pair.flush_latency())]
    };
    pairs.iter().flat_map(named).filter_map(|(name, latency)| Some((name, latency?)))
}

/// The one whose percentile fell most.
fn best(pairs: &[ClassPair<'_>]) -> Option<(String, Latency)> {
    judged(pairs).min_by(|(_, a), (_, b)| a.ratio().total_cmp(&b.ratio()))
}

/// A job without and with the scheduler.
struct ClassPair<'a>((&'a ClassResult, &'a ClassResult));

impl ClassPair<'_> {
    fn name(&self) -> &str {
        &self.0.1.name
    }

    /// Without flushes that follow others.
    fn requests(&self) -> [u64; 2] {
        let flushes = |class: &ClassResult| class.flushes.map_or(0, |flushes| flushes.requests);
        [self.0.0, self.0.1].map(|class| class.requests.saturating_sub(flushes(class)))
    }

    fn latency(&self) -> Option<Latency> {
        Latency::of(self.requests(), [&self.0.0.latency_us, &self.0.1.latency_us])
    }

    fn flush_latency(&self) -> Option<Latency> {
        let (without, with) = (self.0.0.flushes.as_ref()?, self.0.1.flushes.as_ref()?);
        Latency::of([without.requests, with.requests], [&without.latency_us, &with.latency_us])
    }

    /// Whether it did something, and too little to be judged.
    fn lacks_requests(&self) -> bool {
        let wanted = [self.0.0, self.0.1].map(|class| class.requests + class.unfinished);
        self.latency().is_none() && wanted != [0, 0]
    }

    /// Whether it asked for more than it got in both runs: many requests were due and not done, and
    /// the slowest waited mostly until they were sent.
    fn is_overloaded(&self) -> bool {
        [self.0.0, self.0.1].into_iter().all(|class| {
            let waited_to_be_sent = class.p99_parts_us.as_ref().map_or(0.0, |parts| parts.backlog);
            class.unfinished as f64 > class.requests as f64 * OVERDUE_PART_MIN
                && waited_to_be_sent > class.latency_us.p99 / 2.0
        })
    }

    /// Whether more requests of a run failed than a comparison of the runs allows.
    fn failed(&self) -> bool {
        [self.0.0, self.0.1].into_iter().any(|class| {
            let ended = class.errors.saturating_add(class.requests);
            class.errors as f64 > ended as f64 * FAILED_PART_MAX
        })
    }

    fn failures(&self) -> String {
        let [without, with] = [self.0.0, self.0.1]
            .map(|of| format!("{} of {}", of.errors, of.errors.saturating_add(of.requests)));
        format!("{} ({without} without the scheduler, {with} with it)", self.name())
    }

    fn overload(&self) -> String {
        let [without, with] = [self.0.0, self.0.1].map(|class| class.unfinished);
        format!(
            "{} requested more than it got: {without} requests without the scheduler and {with} \
             with it were due and unfinished at the end, so its latencies grow with the length of \
             the run.",
            self.name()
        )
    }

    fn requests_in_words(&self) -> String {
        let [without, with] = self.requests();
        format!("{} ({without} without the scheduler, {with} with it)", self.name())
    }

    fn bandwidth(&self) -> [f64; 2] {
        [self.0.0, self.0.1].map(|class| class.bandwidth_bytes_per_second as f64)
    }

    fn bandwidth_moved(&self) -> bool {
        let [without, with] = self.requests();
        let part = (ratio(self.bandwidth()) - 1.0).abs();
        let requests = without.max(with) as f64 * part.min(1.0);
        part > BANDWIDTH_CHANGE_MIN && requests >= REQUESTS_MOVED_MIN
    }
}

/// What the second is of the first; 1 if both are nothing.
fn ratio([before, after]: [f64; 2]) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// `5.20ms -> 410us (-92%)`.
fn from_to([before, after]: [f64; 2], figure: fn(f64) -> String, unit: &str) -> String {
    format!("{} -> {}{unit} ({})", figure(before), figure(after), change(before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{FlushResult, RunResult};

    #[test]
    fn flushes_are_judged_by_percentiles_of_their_own() {
        let run = |p99| -> RunResult {
            let golden = include_str!("../../tests/golden/run.json");
            let mut run: RunResult = serde_json::from_str(golden).unwrap();
            let latency_us = LatencyResult { p99, ..LatencyResult::default() };
            run.classes[0].flushes = Some(FlushResult { requests: 1000, iops: 100.0, latency_us });
            run
        };
        let of = |p99: [f64; 2]| verdict(&Comparison { version: 1, runs: p99.map(run) });
        assert_eq!(of([9e3, 9e3]).kind, VerdictKind::NoContention);
        assert_eq!(of([90e3, 9e3]).kind, VerdictKind::Gain("reads flushes".into()));
        assert_eq!(of([9e3, 90e3]).kind, VerdictKind::Loss);
    }
}
