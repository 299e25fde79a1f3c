//! What the members of an array had in flight.

use forebay_block::uneven_members;
use serde::{Deserialize, Serialize};

/// The fullest member is reported if it has more than this multiple of an even part.
const UNEVEN: f64 = 1.5;

/// What the members of a simulated array had in flight in the measured part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembersResult {
    /// Commands in flight on all of them, in the mean.
    pub in_flight: f64,
    /// By member, its part of what was in flight.
    pub parts: Vec<f64>,
    /// The part of whichever had most at the time, in the mean.
    pub fullest: f64,
}

impl MembersResult {
    /// Which members have more than their part, and what to do; nothing where all is even.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = uneven_members(&self.parts);
        if lines.is_empty() && self.fullest > self.fullest_of_even() {
            lines.push(format!(
                "at each time one member of {} has {:.0} % of the requests in flight ({:.0} % \
                 would be even), but not always the same one: files grow from one to the next \
                 together; place them on other chunks",
                self.parts.len(),
                self.fullest * 100.0,
                100.0 / self.parts.len().max(1) as f64
            ));
        }
        lines
    }

    /// What the fullest has where commands go to any member by chance: few of them are never even.
    fn fullest_of_even(&self) -> f64 {
        let members = self.parts.len().max(2) as f64;
        UNEVEN / members + (2.0 * members.ln() / (members * self.in_flight.max(1.0))).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_have_most_in_turn_are_reported_and_chance_is_not() {
        for (in_flight, fullest, is_reported) in
            [(16.0, 0.98, true), (16.0, 0.45, false), (1.0, 1.0, false), (256.0, 0.5, true)]
        {
            let members = MembersResult { in_flight, parts: vec![0.25; 4], fullest };
            assert_eq!(members.lines().len(), usize::from(is_reported), "{members:?}");
        }
        let one = MembersResult { in_flight: 16.0, parts: vec![0.1, 0.7, 0.1, 0.1], fullest: 0.7 };
        assert!(one.lines()[0].starts_with("member 2 of 4 has 70 %"), "{:?}", one.lines());
    }
}
