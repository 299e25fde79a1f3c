//! The goals, and the regions fitted for them.

use forebay::properties::REGIONS_MAX;
use forebay_explore::{Error, Fit, Goal, fit};
use forebay_sim::surface::Grid;

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

/// The regions that were found, and why there are no others.
pub(super) struct Found {
    pub(super) fits: Vec<Fit>,
    /// What is in the way of each goal that has no region.
    pub(super) unmet: Vec<Error>,
    /// Whether nothing asked for is met, and the region is for the least goal that is.
    pub(super) is_offer: bool,
}

/// The regions of `surface` for `goals`, or where none is met, for one that is.
pub(super) fn of(surface: &Grid, goals: &[Goal]) -> Found {
    let (mut fits, mut unmet) = (Vec::new(), Vec::new());
    for &goal in goals {
        match fit(surface, goal) {
            Ok(fit) => fits.push(fit),
            Err(error) => unmet.push(error),
        }
    }
    let is_offer = fits.is_empty();
    if is_offer {
        fits.extend(unmet.iter().find_map(|error| fit(surface, error.goal_possible()?).ok()));
    }
    Found { fits, unmet, is_offer }
}

impl Found {
    /// What is to be said of the goals without a region.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.unmet.iter().map(|error| format!("{error}.")).collect();
        remarks.dedup();
        if let (true, [offer]) = (self.is_offer, &self.fits[..]) {
            remarks.push(format!(
                "The region above is for {}, which the disk meets; it is not written to a \
                 forebay.yaml unless that goal is given.",
                offer.goal
            ));
        }
        remarks
    }

    /// Whether what was asked for was found: `some` of the goals are enough, or it takes all.
    pub(super) fn check(&self, name: &str, some: bool, is_file: bool) -> Result<(), Failure> {
        let Some(error) = self.unmet.last().filter(|_| self.is_offer || !some) else {
            return Ok(());
        };
        let said = format!("{name}: {error}");
        let needs_more_loads = matches!(error, Error::TooFewCells { .. });
        let is_input = is_file || needs_more_loads;
        Err(if is_input { Failure::Input(said) } else { Failure::NoRegion(said) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_for_all_goals_is_printed_once() {
        let text = "w_bw_Bps,r_iops,p50_ms,p95_ms\n0,1000,0.1,0.2\n100000000,1000,0.1,0.2\n";
        let surface = Grid::parse_csv("s.csv", text).unwrap();
        let remarks = of(&surface, &goals(&[]).unwrap()).remarks();
        assert!(remarks.len() == 1 && remarks[0].contains("usable cells"), "{remarks:?}");
    }
}
