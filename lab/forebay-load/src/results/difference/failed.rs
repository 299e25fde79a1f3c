//! Requests that failed: no figure shows them, for latencies and bytes are of those that were done.

use serde::Serialize;

use crate::results::model::{ClassResult, RunResult};

/// This many standard errors more than before is not chance.
const ERRORS_APART: f64 = 3.0;

/// A job of which requests failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The name of the job.
    pub job: String,
    /// Requests that failed in the older run, and all that ended in it.
    pub old: [u64; 2],
    /// The same of the newer run.
    pub new: [u64; 2],
    /// Whether none failed before, or a smaller part by more than chance.
    pub is_more: bool,
}

/// The jobs of which requests failed in either run.
pub(super) fn failed(old: &RunResult, new: &RunResult) -> Vec<Failed> {
    let counts = |class: &ClassResult| [class.errors, class.errors + class.requests];
    let pairs = old.classes.iter().zip(&new.classes);
    let of = pairs.map(|(before, after)| {
        let (old, new) = (counts(before), counts(after));
        Failed { job: after.name.clone(), old, new, is_more: is_more(old, new) }
    });
    of.filter(|failed| failed.old[0] + failed.new[0] > 0).collect()
}

/// Two parts compared, with the standard error of both joined.
fn is_more(old: [u64; 2], new: [u64; 2]) -> bool {
    let part = |[errors, all]: [u64; 2]| errors as f64 / all.max(1) as f64;
    if old[0] == 0 || new[0] == 0 {
        return new[0] > 0;
    }
    let joined = part([old[0] + new[0], old[1] + new[1]]);
    let each = (old[1] as f64).recip() + (new[1] as f64).recip();
    part(new) - part(old) > ERRORS_APART * (joined * (1.0 - joined) * each).sqrt()
}

impl Failed {
    /// In a few words.
    pub(super) fn in_words(&self) -> String {
        let of = |[errors, all]: [u64; 2]| match errors {
            0 => String::from("none"),
            _ if errors == all => format!("all {errors}"),
            _ => format!("{errors} of {all}"),
        };
        let [old, new] = [self.old, self.new].map(of);
        format!("{}: of the requests {new} failed, {old} before", self.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_more_where_there_were_none_or_fewer_than_chance_makes() {
        for (old, new, more) in [
            ([0, 1000], [1, 1000], true),
            ([0, 0], [7, 7], true),
            ([10, 1000], [0, 1000], false),
            ([10, 1000], [15, 1000], false),
            ([10, 1000], [100, 1000], true),
            ([1000, 1000], [1000, 1000], false),
        ] {
            assert_eq!(is_more(old, new), more, "{old:?} {new:?}");
        }
    }
}
