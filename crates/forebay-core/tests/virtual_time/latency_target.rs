//! The requests that count for a latency target.

use core::time::Duration;

use forebay_core::{IoGroup, LatencyTarget, Op, Outcome, Policy, Time};

use super::world::{by_figures, model};

/// The number of requests in flight.
const DEPTH: usize = 8;

/// Whether the target holds after a second in which each read took `nanos`. With `reaped`, the disk is
/// known to have taken that long, and not only the owner of a permit.
fn holds(target: LatencyTarget, nanos: u64, reaped: bool) -> bool {
    let mut config = by_figures(model(100_000, 1_000_000_000), Policy::pace_window());
    config.latency_target = Some(target);
    let group = IoGroup::new(config);
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    let mut in_disk = Vec::new();
    let mut now = Time::from_nanos(1);
    while now.as_nanos() < 1_000_000_000 {
        while queue.len() < 4 * DEPTH {
            // 256 KiB take a quarter of a millisecond
            queue.enqueue(now, class, Op::Read, 256 << 10).unwrap();
        }
        while let Some(ticket) = queue.poll_dispatch(now) {
            in_disk.push((now.plus_nanos(nanos), ticket));
        }
        while queue.poll_wake().is_some() {}
        let next = in_disk.first().map_or(Time::MAX, |&(done, _)| done);
        now = queue.poll_timeout(now).map_or(next, |timeout| timeout.min(next));
        while let Some(&(done, ticket)) = in_disk.first().filter(|(done, _)| *done <= now) {
            in_disk.remove(0);
            let looked_at = if reaped { done } else { Time::ZERO };
            queue.complete_polled(now, ticket, Outcome::Done, looked_at).unwrap();
        }
    }
    assert!(group.counters(now).measured > 100);
    group.latency_target().unwrap().holds
}

#[test]
fn holding_a_permit_counts_as_time_in_the_disk() {
    let target = LatencyTarget::new(Op::Read, 950, Duration::from_millis(1)).unwrap().in_disk();
    for reaped in [false, true] {
        assert!(holds(target, 500_000, reaped), "{reaped}");
        for millis in [2, 5, 50] {
            assert!(!holds(target, millis * 1_000_000, reaped), "{millis} ms, {reaped}");
        }
    }
}
