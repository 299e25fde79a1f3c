//! Whether a disk has a head that seeks.

use forebay_tune::Budget;

use super::tune;
use crate::disks::{Known, presets, raid, raids};

/// What a budget says of a disk with this many seeds: how often it is right, wrong, and does not
/// know.
fn said(known: &Known, budget: &Budget, seeds: u64) -> [usize; 3] {
    let has_head = known.spec.build(1).seeks();
    let mut counts = [0; 3];
    for seed in 1..=seeds {
        let place = match tune(known, known.spec.build(seed), budget).seeks {
            Some(said) => usize::from(said != has_head),
            None => 2,
        };
        counts[place] += 1;
    }
    let [right, wrong, unknown] = counts;
    println!("{}, {}: {right} right, {wrong} wrong, {unknown} unknown", known.name, budget.name);
    counts
}

#[test]
fn a_head_is_known_from_none_by_how_much_faster_reads_in_sequence_are() {
    for known in presets().into_iter().chain(raids()) {
        if ["hdd-7200rpm", "gp2", "nvme-2018", "i3en.3xlarge"].contains(&known.name.as_str())
            || known.name.contains("hdd-7200rpm")
        {
            assert_eq!(said(&known, &Budget::QUICK, 1), [1, 0, 0], "{}", known.name);
        }
    }
}

/// `cargo test --release -p forebay-tune --test truth heads -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn heads_of_twenty_seeds() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let of_others = [3, 5, 6, 7].map(|count| raid(count, "hdd-7200rpm", "1MB"));
    let mut all = presets();
    all.extend(raids().into_iter().chain(of_others));
    all.retain(|known| known.name.contains(&only));
    let mut sum = [0; 3];
    for budget in super::budgets() {
        for known in &all {
            let counts = said(known, &budget, 20);
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    println!("right, wrong, unknown: {sum:?}");
    assert_eq!(sum[1], 0);
}
