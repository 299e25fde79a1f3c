//! What a comparison comes to, in words.

use std::fmt;

use super::figures::{change, duration, megabytes};
use super::model::{ClassResult, Comparison};
use super::table::total_bandwidth;

/// A change of a 99th percentile that is worth a word; smaller ones are often chance.
const P99_CHANGE_MIN: f64 = 0.20;
/// A change of bandwidth that is worth a word.
const BANDWIDTH_CHANGE_MIN: f64 = 0.05;
/// Below this many requests a 99th percentile rests on fewer than five of them.
const REQUESTS_MIN: u64 = 500;
/// A p99 that fell to less than this part is hardly chance, even in one run.
const CLEAR_GAIN: f64 = 0.5;

/// What a comparison comes to. Displays as a few lines of plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What it comes to.
    pub kind: VerdictKind,
    /// The sentences, one a line.
    pub sentences: Vec<String>,
}

/// What a comparison comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// Scheduling lowered the 99th percentile of this job most, by more than 20 %.
    Gain(String),
    /// No 99th percentile changed by more than 20 % and no bandwidth by more than 5 %.
    NoContention,
    /// No 99th percentile changed by more than 20 %, but bandwidth moved between jobs.
    Redistribution,
    /// No 99th percentile fell by more than 20 %, and one rose or bandwidth was lost.
    Loss,
    /// Too few requests to say anything.
    TooShort,
}

/// Says what scheduling did to a load: who gained most, and at what price.
pub fn verdict(comparison: &Comparison) -> Verdict {
    let [before, after] = &comparison.runs;
    let pairs: Vec<ClassPair<'_>> =
        before.classes.iter().zip(&after.classes).map(ClassPair).collect();
    let total = [total_bandwidth(before), total_bandwidth(after)].map(|total| total as f64);
    let kind = kind_of(&pairs, ratio(total));
    let mut sentences = vec![first_sentence(&kind, &pairs)];
    if !matches!(kind, VerdictKind::NoContention | VerdictKind::TooShort) {
        sentences.push(format!("Total bandwidth: {}.", from_to(total, megabytes, " MB/s")));
        let worst =
            ClassPair::judged(&pairs).max_by(|a, b| a.p99_ratio().total_cmp(&b.p99_ratio()));
        sentences.extend(worst.filter(|pair| pair.loses()).map(|pair| {
            format!("{} lost most: p99 {}.", pair.name(), from_to(pair.p99(), duration, ""))
        }));
        sentences.extend(pairs.iter().filter(|pair| pair.bandwidth_moved()).map(|pair| {
            format!("{}: {}.", pair.name(), from_to(pair.bandwidth(), megabytes, " MB/s"))
        }));
    }
    Verdict { kind, sentences }
}

fn kind_of(pairs: &[ClassPair<'_>], total_ratio: f64) -> VerdictKind {
    let best = ClassPair::judged(pairs).min_by(|a, b| a.p99_ratio().total_cmp(&b.p99_ratio()));
    let Some(best) = best else { return VerdictKind::TooShort };
    if best.gains() {
        return VerdictKind::Gain(best.name().to_owned());
    }
    if ClassPair::judged(pairs).any(ClassPair::loses) || total_ratio < 1.0 - BANDWIDTH_CHANGE_MIN {
        return VerdictKind::Loss;
    }
    if pairs.iter().any(ClassPair::bandwidth_moved) {
        return VerdictKind::Redistribution;
    }
    VerdictKind::NoContention
}

/// The first sentence.
fn first_sentence(kind: &VerdictKind, pairs: &[ClassPair<'_>]) -> String {
    match kind {
        VerdictKind::Gain(name) => {
            let best = pairs.iter().find(|pair| pair.name() == name);
            let p99 = best.map(ClassPair::p99).unwrap_or_default();
            let doubt = if ratio(p99) > CLEAR_GAIN {
                " So small a gain can be chance: repeat the run."
            } else {
                ""
            };
            format!("{name} gained most: p99 {}.{doubt}", from_to(p99, duration, ""))
        }
        VerdictKind::NoContention => String::from(
            "The disk shows no contention worth scheduling under this load: no p99 changed by \
             more than 20 %, no bandwidth by more than 5 %.",
        ),
        VerdictKind::Redistribution => String::from(
            "Scheduling moved bandwidth between jobs; no p99 changed by more than 20 %.",
        ),
        VerdictKind::Loss => {
            String::from("Scheduling did not pay under this load: no p99 fell by more than 20 %.")
        }
        VerdictKind::TooShort => format!(
            "No job has {REQUESTS_MIN} requests in both runs, too few for a verdict: run longer."
        ),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| writeln!(f, "{sentence}"))
    }
}

/// A job without and with the scheduler.
struct ClassPair<'a>((&'a ClassResult, &'a ClassResult));

impl<'a> ClassPair<'a> {
    /// The pairs with requests enough to judge their 99th percentile.
    fn judged<'p>(pairs: &'p [Self]) -> impl Iterator<Item = &'p Self> + use<'a, 'p> {
        pairs.iter().filter(|ClassPair((before, after))| {
            before.requests.min(after.requests) >= REQUESTS_MIN
        })
    }

    fn name(&self) -> &str {
        &self.0.1.name
    }

    fn p99(&self) -> [f64; 2] {
        [self.0.0.latency_us.p99, self.0.1.latency_us.p99]
    }

    fn p99_ratio(&self) -> f64 {
        ratio(self.p99())
    }

    fn bandwidth(&self) -> [f64; 2] {
        [self.0.0, self.0.1].map(|class| class.bandwidth_bytes_per_second as f64)
    }

    fn gains(&self) -> bool {
        self.p99_ratio() < 1.0 - P99_CHANGE_MIN
    }

    fn loses(&self) -> bool {
        self.p99_ratio() > 1.0 + P99_CHANGE_MIN
    }

    fn bandwidth_moved(&self) -> bool {
        (ratio(self.bandwidth()) - 1.0).abs() > BANDWIDTH_CHANGE_MIN
    }
}

/// What the second is of the first; 1 if there is no first.
fn ratio([before, after]: [f64; 2]) -> f64 {
    if before > 0.0 { after / before } else { 1.0 }
}

/// `5.20ms -> 410us (-92%)`.
fn from_to([before, after]: [f64; 2], figure: fn(f64) -> String, unit: &str) -> String {
    format!("{} -> {}{unit} ({})", figure(before), figure(after), change(before, after))
}
