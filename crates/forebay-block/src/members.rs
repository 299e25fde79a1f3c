//! The members of an array that holds chunks on each of them in turn.

use std::ops::Range;

/// A member is reported if it has more than this multiple of its part of the requests in flight.
const UNEVEN: f64 = 1.5;

/// How data lies on the members of an array: chunk by chunk, on each in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// Bytes of a chunk, more than zero.
    pub chunk: u64,
    /// How many members there are, at least one.
    pub members: u32,
}

impl Striping {
    /// The places of the members that a range of bytes lies on, each once.
    pub fn members_of(&self, range: &Range<u64>) -> impl Iterator<Item = usize> + use<> {
        let (chunk, members) = (self.chunk.max(1), u64::from(self.members.max(1)));
        let first = range.start / chunk;
        let last = range.end.saturating_sub(1).max(range.start) / chunk;
        let chunks = (last - first + 1).min(members);
        (0..chunks).map(move |next| ((first + next) % members) as usize)
    }
}

/// By member, its part of what was in flight, from any measure of that; nothing where there was none.
pub fn parts_in_flight(in_flight: &[u64]) -> Vec<f64> {
    let all: f64 = in_flight.iter().map(|&of_member| of_member as f64).sum();
    let parts = in_flight.iter().map(|&of_member| of_member as f64 / all);
    if all > 0.0 { parts.collect() } else { Vec::new() }
}

/// For each member with more than 1.5 times its part of the requests in flight, what it has and
/// what to do.
pub fn uneven_members(parts: &[f64]) -> Vec<String> {
    let members = parts.len();
    let even = 1.0 / members.max(1) as f64;
    let uneven = parts.iter().enumerate().filter(|(_, part)| **part > even * UNEVEN);
    let text = |(place, part): (usize, &f64)| {
        format!(
            "member {} of {members} has {:.0} % of the requests in flight ({:.0} % would be \
             even): place files on other chunks",
            place + 1,
            part * 100.0,
            even * 100.0
        )
    };
    uneven.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_lies_on_each_member_once_that_has_a_chunk_of_it() {
        let striping = Striping { chunk: 100, members: 4 };
        let members = |range| striping.members_of(&range).collect::<Vec<_>>();
        assert_eq!(members(0..100), [0]);
        assert_eq!(members(350..400), [3]);
        assert_eq!(members(350..401), [3, 0]);
        assert_eq!(members(150..1_000), [1, 2, 3, 0]);
        assert_eq!(members(250..250), [2]);
    }

    #[test]
    fn members_with_more_than_one_and_a_half_times_their_part_are_named() {
        assert_eq!(uneven_members(&parts_in_flight(&[37, 21, 21, 21])), [""; 0]);
        let named = uneven_members(&parts_in_flight(&[10, 71, 10, 9]));
        let expected = "member 2 of 4 has 71 % of the requests in flight (25 % would be even): \
                        place files on other chunks";
        assert_eq!(named, [expected]);
        assert!(uneven_members(&parts_in_flight(&[0, 0])).is_empty());
    }
}
