//! What is said of series of requests that are known.

use std::time::Duration;

use forebay_trace::{Shape, SlotCounts, Summary};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// The summary of requests at these milliseconds, of this many bytes.
fn summary(requests: impl IntoIterator<Item = (u64, u64)>, seconds: u64) -> Summary {
    let mut counts = SlotCounts::default();
    for (millis, bytes) in requests {
        counts.add(Duration::from_millis(millis), bytes);
    }
    Summary::new(&counts, Duration::from_secs(seconds))
}

#[test]
fn nothing_is_no_burst() {
    let summary = summary([], 10);
    assert_eq!((summary.shape, summary.slots, summary.requests), (Shape::None, 0, 0));
    assert_eq!((summary.period, summary.bursts.len()), (None, 0));
}

#[test]
fn paced_requests_are_even_at_whatever_rate() {
    for step in [1, 7, 50, 80, 100, 110] {
        let paced = summary((0..10_000 / step).map(|n| (n * step, MIB)), 30);
        assert_eq!(paced.shape, Shape::Even, "every {step} ms: {paced:?}");
        assert_eq!((paced.slots_over_requests, paced.slots_over_bytes), (0, 0));
        assert!(paced.slots_in_use * 10 >= paced.slots * 9);
    }
}

#[test]
fn the_storms_of_the_log_flush_have_its_period() {
    // 2,000 discards within 100 ms every 30 s, and one that is alone between them
    for (period, tolerance) in [(30_000, 0.2), (1_000, 0.05)] {
        let storm = |n: u64| (0..2_000).map(move |k| (n * period + k / 20, MIB));
        let storms = (1..6).flat_map(storm).chain([(period + period / 2, MIB)]);
        let found = summary(storms, 180);
        assert_eq!((found.shape, found.bursts.len()), (Shape::Bursts, 5), "{found:?}");
        let of_period = found.period.unwrap();
        assert!(of_period.regular && of_period.gaps == 4);
        assert!((of_period.median_s - period as f64 / 1e3).abs() <= tolerance);
        assert!(found.bursts.iter().all(|burst| burst.requests == 2_000));
    }
}

#[test]
fn storms_above_paced_requests_are_found() {
    let paced = (0..1_200).map(|n| (n * 50, MIB));
    let storms = (0..2).flat_map(|n| (0..500).map(move |k| (10_000 + n * 30_000 + k / 10, MIB)));
    let found = summary(paced.chain(storms), 60);
    assert_eq!((found.shape, found.bursts.len()), (Shape::Bursts, 2), "{found:?}");
    assert_eq!(found.period.map(|period| period.median_s), Some(30.0));
    assert_eq!(found.slots_over_requests, 2);
}

#[test]
fn large_requests_are_a_burst_however_few() {
    let paced = (0..1_000).map(|n| (n * 100, MIB));
    let found = summary(paced.chain([(50_050, 500 * MIB)]), 100);
    assert_eq!((found.slots_over_requests, found.slots_over_bytes), (0, 1));
    assert_eq!((found.shape, found.bursts.len()), (Shape::Bursts, 1));
}

#[test]
fn one_storm_alone_is_a_burst_without_a_period() {
    let found = summary((0..5_000).map(|k| (28_783 + k / 50, MIB)), 60);
    assert_eq!((found.shape, found.bursts.len(), found.period), (Shape::Bursts, 1, None));
}

/// What blktrace showed in the seed, of unlinking four files of 32 MiB per second: the first and
/// the last discard of two storms. All between them was left out there, and is filled in here.
const PUBLISHED: &str = "\
28.783049012 123 Q D 2098688 + 2048 [kworker/4:1H]
28.883829107 123 Q D 938000752 + 2048 [kworker/4:1H]
59.502569437 123 Q D 6530560 + 4096 [kworker/4:1H]
59.604438561 123 Q D 938010992 + 2048 [kworker/4:1H]";

#[test]
fn the_published_storms_are_two_bursts_30_seconds_apart() {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let seconds: f64 = fields[0].parse().unwrap();
        ((seconds * 1e3) as u64, fields[6].parse::<u64>().unwrap() * 512)
    };
    let lines: Vec<(u64, u64)> = PUBLISHED.lines().map(read).collect();
    let between = lines.chunks(2).flat_map(|pair| {
        let (begin, end) = (pair[0].0, pair[1].0);
        (0..3_800).map(move |n| (begin + (end - begin) * n / 3_800, MIB))
    });
    let found = summary(lines.iter().copied().chain(between), 61);
    let starts: Vec<_> = found.bursts.iter().map(|burst| burst.start_s).collect();
    assert_eq!(starts.len(), 2);
    assert!((starts[0] - 28.7).abs() < 1e-6 && (starts[1] - 59.5).abs() < 1e-6, "{starts:?}");
    assert!(found.bursts.iter().all(|burst| burst.length_s < 0.35), "{found:?}");
    assert!(found.period.unwrap().is_about(30.0));
}

proptest! {
    #[test]
    fn counts_add_up_whatever_comes(
        requests in prop::collection::vec((0_u64..200_000, 0..1_u64 << 40), 0..300)
    ) {
        let found = summary(requests.iter().copied(), 200);
        prop_assert_eq!(found.requests, requests.len() as u64);
        prop_assert_eq!(found.bytes, requests.iter().map(|request| request.1).sum::<u64>());
        prop_assert!(found.slots_in_use <= found.slots);
        prop_assert!(found.slots_over_requests <= found.slots_in_use);
        let in_bursts: u64 = found.bursts.iter().map(|burst| burst.requests).sum();
        prop_assert!(in_bursts <= found.requests);
        prop_assert_eq!(found.shape == Shape::None, requests.is_empty());
        prop_assert_eq!(found.shape == Shape::Bursts, !found.bursts.is_empty());
    }
}
