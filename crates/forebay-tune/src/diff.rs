//! Two runs compared: has the disk aged, did the new file system help?

use serde::Serialize;

use crate::fit::{CostPoint, Figure, Fit};
use crate::samples::Rate;
use crate::steady::Steadiness;

/// A change below this is of no interest, however sure.
const CHANGE_MIN: f64 = 0.02;
/// Of some fifty sizes two or three differ by so much by chance; by twice as much, none.
const MANY: f64 = 2.0;
/// From so many rounds on their range says how a figure changes within a run.
const ROUNDS_MIN: usize = 5;

/// One figure of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Which figure.
    pub name: String,
    /// Its value in the older run.
    pub old: f64,
    /// Its value in the newer run.
    pub new: f64,
    /// By which part of the old value it rose.
    pub change: f64,
    /// How far the change may be wrong, with 95 % confidence.
    pub margin: f64,
    /// Whether it is more than chance.
    pub significant: bool,
}

type FigureOf = fn(&Fit) -> (Figure, &Steadiness);
type LadderOf = fn(&Fit) -> &[CostPoint];

/// What changed from `old` to `new`.
pub fn diff(old: &Fit, new: &Fit) -> Vec<Change> {
    let figures: [(&str, FigureOf); 4] = [
        ("read iops", |fit| (fit.read_iops, &fit.read_steadiness)),
        ("write iops", |fit| (fit.write_iops, &fit.write_steadiness)),
        ("read bandwidth", |fit| (fit.read_bandwidth, &fit.read_steadiness)),
        ("write bandwidth", |fit| (fit.write_bandwidth, &fit.write_steadiness)),
    ];
    let ladders: [(&str, LadderOf); 4] = [
        ("random reads", |fit| &fit.read.random),
        ("random writes", |fit| &fit.write.random),
        ("read stream", |fit| &fit.read.stream),
        ("write stream", |fit| &fit.write.stream),
    ];
    let of_run = |of: FigureOf, fit: &Fit| {
        let (figure, steadiness) = of(fit);
        drift(figure, steadiness)
    };
    let drifts = figures.map(|(_, of)| of_run(of, old).hypot(of_run(of, new)));
    let of_figures = figures.iter().zip(drifts).map(|((name, of), drift)| {
        let (old, new) = (of(old).0, of(new).0);
        change(
            (*name).to_owned(),
            estimate(old.value, old.margin),
            estimate(new.value, new.margin),
            drift,
            1.0,
        )
    });
    let of_ladders = ladders.iter().zip(drifts).flat_map(|((name, of), drift)| {
        let pairs = of(old).iter().filter_map(|old| {
            let new = of(new).iter().find(|new| new.bytes == old.bytes)?;
            let name = format!("{name} of {} bytes", old.bytes);
            Some(change(
                name,
                estimate(old.rate, old.margin),
                estimate(new.rate, new.margin),
                drift,
                MANY,
            ))
        });
        pairs.collect::<Vec<_>>()
    });
    of_figures.chain(of_ladders).collect()
}

fn estimate(mean: f64, margin: f64) -> Rate {
    Rate { mean, margin }
}

/// By which part a figure changed within its own run: what it does there, it does between runs
/// too. A burst on credits is none, nor is what came before the last rounds.
fn drift(figure: Figure, steadiness: &Steadiness) -> f64 {
    if steadiness.trace.len() >= ROUNDS_MIN {
        return steadiness.range / 2.0;
    }
    if steadiness.burst.is_some() || figure.first <= 0.0 {
        return 0.0;
    }
    (figure.value - figure.first).abs() / figure.value.max(f64::MIN_POSITIVE)
}

/// The change between two figures with their margins, where the runs drifted by such a part
/// themselves, and that counts only beyond so many times what may be wrong.
fn change(name: String, old: Rate, new: Rate, drift: f64, times: f64) -> Change {
    let base = old.mean.max(f64::MIN_POSITIVE);
    let change = (new.mean - old.mean) / base;
    let margin = (old.margin.hypot(new.margin) / base).hypot(drift);
    let significant = change.abs() > (margin * times).max(CHANGE_MIN);
    Change { name, old: old.mean, new: new.mean, change, margin, significant }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_significant_beyond_noise() {
        let of = |old: (f64, f64), new: (f64, f64)| {
            change(String::new(), estimate(old.0, old.1), estimate(new.0, new.1), 0.0, 1.0)
        };
        assert!(of((100.0, 3.0), (90.0, 3.0)).significant);
        assert!(!of((100.0, 8.0), (90.0, 8.0)).significant);
        assert!(!of((100.0, 0.1), (101.0, 0.1)).significant);
        assert!((of((100.0, 3.0), (90.0, 4.0)).margin - 0.05).abs() < 1e-9);
    }

    #[test]
    fn what_a_run_drifts_by_itself_is_no_change_between_runs() {
        let of = |drift, times| {
            change(String::new(), estimate(100.0, 3.0), estimate(90.0, 3.0), drift, times)
                .significant
        };
        assert!(of(0.05, 1.0) && !of(0.12, 1.0));
        assert!(!of(0.05, MANY));
        let figure = Figure { value: 100.0, margin: 1.0, first: 60.0, request_bytes: 4096 };
        let run = crate::run::Run::new(&crate::Budget::QUICK, crate::TargetInfo::default());
        let mut steadiness = crate::steadiness(&run, crate::Work::Read);
        assert!((drift(figure, &steadiness) - 0.4).abs() < 1e-9);
        assert!(drift(Figure { first: 0.0, ..figure }, &steadiness) < 1e-9);
        steadiness.burst = Some(crate::Burst { high: 60.0, low: 100.0, seconds: 1.0 });
        assert!(drift(figure, &steadiness) < 1e-9);
    }
}
