//! What part of a disk's time each class has by its shares.

use std::collections::BTreeMap;

/// Below this part of the disk's time in use nobody takes from anybody.
const BUSY: f64 = 0.5;

/// A group of classes: their shares count among themselves, and its own alongside those of other
/// groups and of classes outside of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its shares.
    pub shares: u32,
}

/// A class in a span of time, alongside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender<'a> {
    /// Its shares,
    pub shares: u32,
    /// among those of its group, if it is in one.
    pub group: Option<&'a Group>,
    /// Disk time dispatched per second.
    pub consumption: f64,
    /// Whether requests of it waited throughout the span, and no limit held them back.
    pub waited: bool,
}

/// What a class had of a disk, and what its shares are of what there was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskPart {
    /// For how long, in seconds.
    pub seconds: f64,
    /// Disk time per second that it had.
    pub had: f64,
    /// Disk time per second that it would have had by its shares.
    pub by_shares: f64,
}

/// Whether so much was done that classes took from each other.
pub fn is_busy(classes: &[Contender<'_>]) -> bool {
    classes.iter().map(|class| class.consumption).sum::<f64>() >= BUSY
}

/// The disk time per second that each class would have by its shares, in their order. Who did not
/// wait throughout wanted no more than it had, and leaves the rest to the others.
pub fn parts_by_shares(classes: &[Contender<'_>]) -> Vec<f64> {
    let mut units: BTreeMap<_, Unit> = BTreeMap::new();
    let key = |place: usize, class: &Contender<'_>| {
        class.group.map_or((None, place), |group| (Some(group.name.clone()), 0))
    };
    for (place, class) in classes.iter().enumerate() {
        let unit = units.entry(key(place, class)).or_default();
        unit.shares = f64::from(class.group.map_or(class.shares, |group| group.shares));
        match class.waited {
            true => unit.waiting_shares += f64::from(class.shares),
            false => unit.content += class.consumption,
        }
    }
    let total: f64 = classes.iter().map(|class| class.consumption).sum();
    let content = units.values().filter(|unit| !unit.waits()).map(|unit| unit.content);
    let rest = total - content.sum::<f64>();
    let shares: f64 = units.values().filter(|unit| unit.waits()).map(|unit| unit.shares).sum();
    let of_class = |(place, class): (usize, &Contender<'_>)| {
        let unit = units.get(&key(place, class)).filter(|unit| class.waited && unit.waits())?;
        let among_members = f64::from(class.shares) / unit.waiting_shares;
        Some((rest * unit.shares / shares - unit.content).max(0.0) * among_members)
    };
    let parts = classes.iter().enumerate();
    parts.map(|(place, class)| of_class((place, class)).unwrap_or(class.consumption)).collect()
}

/// What shares the disk: a group, or a class outside of groups, as if it were alone in one.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    shares: f64,
    /// The shares of those of it that waited; 0 if none did.
    waiting_shares: f64,
    /// The disk time per second of those that did not.
    content: f64,
}

impl Unit {
    fn waits(&self) -> bool {
        self.waiting_shares > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(shares: u32, consumption: f64, waited: bool) -> Contender<'static> {
        Contender { shares, group: None, consumption, waited }
    }

    fn assert_parts(classes: &[Contender<'_>], expected: &[f64]) {
        let parts = parts_by_shares(classes);
        let is_near = |(part, expected): (&f64, &f64)| (part - expected).abs() < 1e-9;
        assert!(parts.iter().zip(expected).all(is_near), "{parts:?}, not {expected:?}");
        assert_eq!(parts.len(), expected.len());
    }

    #[test]
    fn waiting_processes_share_unused_parts() {
        assert_parts(&[], &[]);
        assert_parts(&[class(300, 0.5, true), class(100, 0.5, true)], &[0.75, 0.25]);
        let content = [class(300, 0.3, true), class(100, 0.5, true), class(900, 0.2, false)];
        assert_parts(&content, &[0.6, 0.2, 0.2]);
        assert_parts(&[class(0, 0.5, true), class(0, 0.5, false)], &[0.5, 0.5]);
    }

    #[test]
    fn shares_of_classes_in_groups_count_within_their_group() {
        let [a, b] = ["a", "b"].map(|name| Group { name: name.into(), shares: 100 });
        let of = |group, shares, consumption, waited| Contender {
            group: Some(group),
            ..class(shares, consumption, waited)
        };
        let two = [of(&a, 1000, 0.5, true), of(&b, 100, 0.5, true)];
        assert_parts(&two, &[0.5, 0.5]);
        let mixed = [
            of(&a, 300, 0.2, true),
            of(&a, 100, 0.2, true),
            of(&a, 900, 0.1, false),
            class(100, 0.5, true),
        ];
        assert_parts(&mixed, &[0.3, 0.1, 0.1, 0.5]);
    }
}
