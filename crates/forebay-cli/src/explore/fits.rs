//! The goals, and the regions fitted for them.

use forebay::properties::REGIONS_MAX;
use forebay_explore::{Error, Fit, Goal, fit};
use forebay_sim::surface::Grid;

use crate::console::note;
use crate::failure::Failure;

/// What is fitted unless goals are given: those of them that the disk meets.
const GOALS: [&str; 3] = ["p95=500us", "p95=1ms", "p95=2ms"];

/// The goals `given`, or the usual ones.
pub(super) fn goals(given: &[Goal]) -> Result<Vec<Goal>, Failure> {
    if given.is_empty() {
        return Ok(GOALS.into_iter().filter_map(|goal| goal.parse().ok()).collect());
    }
    if given.len() > REGIONS_MAX {
        return Err(Failure::Input(format!("more than {REGIONS_MAX} goals; leave some out")));
    }
    let twice = |&(index, goal): &(usize, &Goal)| given[..index].contains(goal);
    if let Some((_, goal)) = given.iter().enumerate().find(twice) {
        return Err(Failure::Input(format!("--goal {goal} is given twice; leave one out")));
    }
    Ok(given.to_vec())
}

/// The regions for `goals` of the surface called `name`; those that it does not meet are left out
/// where `some` are enough.
pub(super) fn of(
    name: &str,
    surface: &Grid,
    goals: &[Goal],
    some: bool,
) -> Result<Vec<Fit>, Failure> {
    let wrong = |error: Error| Failure::Input(format!("{name}: {error}"));
    let mut fits = Vec::new();
    let mut unmet = None;
    for &goal in goals {
        match fit(surface, goal) {
            Ok(fit) => fits.push(fit),
            Err(error @ (Error::BelowBase { .. } | Error::NothingMeets { .. })) if some => {
                unmet = Some(error);
            }
            Err(error) => return Err(wrong(error)),
        }
    }
    match unmet {
        Some(error) if fits.is_empty() => Err(wrong(error)),
        Some(error) => {
            note(format_args!("left out: {error}"));
            Ok(fits)
        }
        None => Ok(fits),
    }
}
