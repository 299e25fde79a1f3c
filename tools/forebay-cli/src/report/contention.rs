//! What classes had of a disk while they waited for it throughout.

use forebay_load::results::series::{ClassSeries, Series};
use forebay_report::verdict::{Contender, DiskPart, Group, is_busy, parts_by_shares};

/// Of each class, over those of the samples `from` this one on in which it waited throughout; `None`
/// of one that never did.
pub(super) fn while_waiting(series: &Series, from: usize) -> Vec<Option<DiskPart>> {
    let group = |class: &ClassSeries| {
        let group = class.group.as_ref()?;
        Some(Group { name: group.name.clone(), shares: group.shares })
    };
    let groups: Vec<Option<Group>> = series.classes.iter().map(group).collect();
    let mut sums = vec![DiskPart::default(); series.classes.len()];
    for (sample, end) in series.ends_seconds.iter().enumerate().skip(from) {
        let begin = sample.checked_sub(1).and_then(|before| series.ends_seconds.get(before));
        let seconds = end - begin.unwrap_or(&0.0);
        let classes = series.classes.iter().zip(&groups);
        let contenders: Vec<Contender<'_>> =
            classes.map(|(class, group)| contender(class, group.as_ref(), sample)).collect();
        if !is_busy(&contenders) {
            continue;
        }
        let parts = parts_by_shares(&contenders);
        for ((sum, class), part) in sums.iter_mut().zip(&contenders).zip(parts) {
            if class.waited {
                sum.seconds += seconds;
                sum.had += class.consumption * seconds;
                sum.by_shares += part * seconds;
            }
        }
    }
    let mean = |DiskPart { seconds, had, by_shares }| {
        let of_all = |sum: f64| sum / seconds;
        (seconds > 0.0).then(|| DiskPart {
            seconds,
            had: of_all(had),
            by_shares: of_all(by_shares),
        })
    };
    sums.into_iter().map(mean).collect()
}

fn contender<'a>(class: &ClassSeries, group: Option<&'a Group>, sample: usize) -> Contender<'a> {
    let counted = |column: &[u64]| column.get(sample).copied();
    // older files do not tell whether the queue was empty at times
    let never_empty = counted(&class.activations) == Some(0) && counted(&class.pending) > Some(0);
    let limited = class.limited_seconds.get(sample).is_some_and(|&seconds| seconds > 0.0);
    Contender {
        shares: class.shares,
        group,
        consumption: class.consumption.get(sample).copied().unwrap_or_default(),
        waited: never_empty && !limited,
    }
}

#[cfg(test)]
mod tests {
    use forebay_load::results::series::GroupOfClass;

    use super::*;

    /// A class that waited in some of the samples, throughout, and what it had in all.
    fn class(shares: u32, samples: &[(bool, f64)]) -> ClassSeries {
        ClassSeries {
            shares,
            pending: vec![7; samples.len()],
            activations: samples.iter().map(|(waited, _)| u64::from(!waited)).collect(),
            consumption: samples.iter().map(|(_, consumption)| *consumption).collect(),
            ..ClassSeries::default()
        }
    }

    fn series(classes: Vec<ClassSeries>) -> Series {
        let samples = classes[0].pending.len();
        let ends_seconds = (1..=samples).map(|sample| sample as f64).collect();
        Series { classes, ends_seconds, ..Series::default() }
    }

    #[test]
    fn a_class_is_judged_by_the_time_in_which_it_waited() {
        let seldom = class(100, &[(true, 0.5), (false, 0.0), (false, 0.1)]);
        let always = class(100, &[(true, 0.5), (true, 1.0), (true, 0.9)]);
        let found = while_waiting(&series(vec![seldom, always]), 0);
        assert_eq!(found[0], Some(DiskPart { seconds: 1.0, had: 0.5, by_shares: 0.5 }));
        assert!((found[1].unwrap().had - found[1].unwrap().by_shares).abs() < 1e-9);
    }

    #[test]
    fn a_class_that_a_limit_held_or_of_an_older_file_is_not_judged() {
        let mut limited = class(100, &[(true, 0.1)]);
        limited.limited_seconds = vec![0.2];
        let mut older = class(100, &[(true, 0.8)]);
        older.activations.clear();
        assert_eq!(while_waiting(&series(vec![limited, older]), 0), [None, None]);
    }

    #[test]
    fn shares_of_a_class_in_a_group_count_in_it() {
        let of = |name: &str, shares| ClassSeries {
            group: Some(GroupOfClass { name: name.into(), shares: 100 }),
            ..class(shares, &[(true, 0.5)])
        };
        let found = while_waiting(&series(vec![of("a", 1000), of("b", 100)]), 0);
        let expected = Some(DiskPart { seconds: 1.0, had: 0.5, by_shares: 0.5 });
        assert_eq!(found, [expected, expected]);
    }
}
