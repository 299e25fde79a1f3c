//! What the latency target makes of what requests take.

use core::time::Duration;

use forebay_core::{IoGroup, LatencyTarget, Op, Outcome, Policy, Time};

use super::world::{by_figures, model};

/// Requests that are under way at once.
const DEPTH: usize = 8;

/// The lowest pace, in thousandths, in a second in which each read took `nanos`;
/// `reaped` where the disk is known to have taken so long.
fn lowest_pace(target: LatencyTarget, nanos: u64, reaped: bool) -> u64 {
    let mut config = by_figures(model(100_000, 1_000_000_000), Policy::pace_window());
    config.latency_target = Some(target);
    let group = IoGroup::new(config);
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    let mut in_disk = Vec::new();
    let mut now = Time::from_nanos(1);
    let mut lowest = 1000;
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
        lowest = lowest.min(group.speed_permille());
        while let Some(&(done, ticket)) = in_disk.first().filter(|(done, _)| *done <= now) {
            in_disk.remove(0);
            let looked_at = if reaped { done } else { Time::ZERO };
            queue.complete_reaped(now, ticket, Outcome::Done, looked_at).unwrap();
        }
    }
    lowest
}

const STATED: LatencyTarget = match LatencyTarget::new(Op::Read, 950, Duration::from_millis(1)) {
    Ok(target) => target,
    Err(_) => panic!("a target"),
};

#[test]
fn permits_that_are_held_while_their_owners_compute_do_not_slow_the_pace_unless_a_target_is_stated()
{
    for millis in [2, 5, 50] {
        let nanos = millis * 1_000_000;
        assert_eq!(lowest_pace(LatencyTarget::OF_WINDOW, nanos, false), 1000, "{millis} ms");
        assert!(lowest_pace(LatencyTarget::OF_WINDOW, nanos, true) < 900, "{millis} ms");
        assert!(lowest_pace(STATED, nanos, false) < 900, "{millis} ms");
    }
}
