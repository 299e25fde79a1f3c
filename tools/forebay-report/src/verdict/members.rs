//! What is to be said of the members of a striped array.

use super::{DiskFigures, Finding, FindingKind, MemberFigures};

/// A member is named that has more than this multiple of an even part of what is in flight.
const UNEVEN: f64 = 1.5;
/// Below this many requests in flight for each member, in the mean, no member holds up the others.
const IN_FLIGHT_MIN: f64 = 1.0;

/// Members that have much more in flight than the others.
pub(super) fn uneven(figures: &DiskFigures) -> Option<Finding> {
    let members = figures.members.len();
    let all: f64 = figures.members.iter().map(|member| member.in_flight_seconds).sum();
    if all < figures.seconds * members as f64 * IN_FLIGHT_MIN {
        return None;
    }
    let even = all / members.max(1) as f64;
    let is_uneven = |member: &&MemberFigures| member.in_flight_seconds > even * UNEVEN;
    let percent = |seconds: f64| format!("{:.0} %", seconds / all * 100.0);
    let text = |member: &MemberFigures| {
        format!("{} has {}", member.name, percent(member.in_flight_seconds))
    };
    let named: Vec<String> = figures.members.iter().filter(is_uneven).map(text).collect();
    (!named.is_empty()).then(|| {
        let what = format!(
            "Of {members} members of the array, {} of what is in flight ({} would be even)",
            named.join(" and "),
            percent(even)
        );
        let remedy = "Place files on other chunks: `forebay trace requests` shows where requests go. \
                      If they are even there, this member is slower than the others";
        Finding::new(FindingKind::UnevenMembers, what, remedy)
    })
}
