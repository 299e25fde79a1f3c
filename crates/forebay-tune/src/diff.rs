//! Two runs compared: has the disk aged, did the new file system help?

use serde::Serialize;

use crate::fit::{CostPoint, Figure, Fit};

/// A change below this is of no interest, however sure.
const CHANGE_MIN: f64 = 0.02;

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

/// What changed from `old` to `new`.
pub fn diff(old: &Fit, new: &Fit) -> Vec<Change> {
    let figure = |name: &str, of: fn(&Fit) -> Figure| {
        let (old, new) = (of(old), of(new));
        change(name.to_owned(), (old.value, old.margin), (new.value, new.margin))
    };
    let mut all = vec![
        figure("read iops", |fit| fit.read_iops),
        figure("write iops", |fit| fit.write_iops),
        figure("read bandwidth", |fit| fit.read_bandwidth),
        figure("write bandwidth", |fit| fit.write_bandwidth),
    ];
    let ladders = [
        ("random reads", &old.read.random, &new.read.random),
        ("random writes", &old.write.random, &new.write.random),
        ("read stream", &old.read.stream, &new.read.stream),
        ("write stream", &old.write.stream, &new.write.stream),
    ];
    for (name, old, new) in ladders {
        all.extend(points(name, old, new));
    }
    all
}

fn points(name: &str, old: &[CostPoint], new: &[CostPoint]) -> Vec<Change> {
    let pairs = old.iter().filter_map(|old| {
        let new = new.iter().find(|new| new.bytes == old.bytes)?;
        let name = format!("{name} of {} bytes", old.bytes);
        Some(change(name, (old.rate, old.margin), (new.rate, new.margin)))
    });
    pairs.collect()
}

fn change(name: String, old: (f64, f64), new: (f64, f64)) -> Change {
    let base = old.0.max(f64::MIN_POSITIVE);
    let change = (new.0 - old.0) / base;
    let margin = old.1.hypot(new.1) / base;
    let significant = change.abs() > margin.max(CHANGE_MIN);
    Change { name, old: old.0, new: new.0, change, margin, significant }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_significant_beyond_noise() {
        let of = |old, new| change(String::new(), old, new);
        assert!(of((100.0, 3.0), (90.0, 3.0)).significant);
        assert!(!of((100.0, 8.0), (90.0, 8.0)).significant);
        assert!(!of((100.0, 0.1), (101.0, 0.1)).significant);
        assert!((of((100.0, 3.0), (90.0, 4.0)).margin - 0.05).abs() < 1e-9);
    }
}
