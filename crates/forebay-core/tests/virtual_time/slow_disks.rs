//! Disks that are far slower than stated, and threads that were absent: neither is taken for a disk
//! that hangs.

use std::time::Duration;

use forebay_core::{
    Control, GroupConfig, IoGroup, IoQueue, LATENCY_GOAL_DEFAULT, Op, Outcome, Policy, Time,
};

use crate::world::{Client, MILLI, SECOND, World, by_figures, model};

fn millis(at: u64) -> Time {
    Time::from_nanos(at * MILLI)
}

/// A backlog, and a request now and then, on a disk that is `slowness` times slower than its model.
/// Returns the world after 20 s.
fn overloaded((iops, bandwidth): (u64, u64), slowness: u64) -> World {
    let base_latency = Some(Duration::from_micros(100));
    let policy = Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency };
    let mut world = World::new(model(iops, bandwidth), policy, 1);
    world.disk.slowness = 100 * slowness;
    let [bulk, query] = [100, 1000].map(|shares| world.group.add_class(None, shares).unwrap());
    let reads = |class| Client { shard: 0, class, op: Op::Read, len: 4096, pause: 0 };
    world.clients(12_000, reads(bulk));
    world.clients(1, Client { pause: 10 * MILLI, ..reads(query) });
    world.run_until(20 * SECOND);
    world
}

#[test]
fn a_disk_however_slow_does_not_get_more_and_more() {
    let nvme = ((100_000, 1_000_000_000), 150);
    let hdd = ((200, 150_000_000), 2);
    let cloud = ((3_000, 125_000_000), 7);
    for (disk, healthy_most) in [nvme, hdd, cloud] {
        for slowness in [5, 10, 20, 30, 50, 100] {
            let world = overloaded(disk, slowness);
            let counters = world.shards[0].queue.counters();
            let seen = format!("{disk:?}, {slowness} x slower: {counters:?}");
            // one probe per 10 ms until the first completion shows the speed of the disk
            let service_ms = 1_000 * slowness / disk.0;
            let probes = (2 * service_ms).saturating_sub(100).div_ceil(10) as u32;
            assert!(counters.in_disk_max <= healthy_most + 1 + probes, "{seen}");
            assert!(counters.overdue <= u64::from(probes) + 1, "{seen}");
        }
    }
}

#[test]
fn a_slow_spell_is_over_when_it_is_over() {
    for slowness in [10, 15, 20, 30] {
        let mut world = overloaded((200, 150_000_000), slowness);
        world.disk.slowness = 100;
        let in_disk = world.shards[0].queue.counters().in_disk;
        assert!(in_disk <= 4, "{slowness} x slower: {in_disk} in the disk at its end");
        world.run_until(22 * SECOND);
        let query = world.clients.len() - 1;
        world.watched = Some((query, Vec::new()));
        world.run_until(30 * SECOND);
        let waits = world.watched.take().unwrap().1;
        assert!(waits.iter().all(|&nanos| nanos < 40 * MILLI), "{slowness} x slower: {waits:?}");
    }
}

/// A lone queue with 15 requests in the disk, dispatched within 3 ms.
fn busy_queue() -> (IoGroup, IoQueue, Vec<forebay_core::Ticket>) {
    let mut config = by_figures(model(10_000, 1_000_000_000), Policy::pace_window());
    config.shards_max = 1;
    let group = IoGroup::new(config);
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    for _ in 0..100 {
        queue.enqueue(millis(1), class, Op::Read, 4096).unwrap();
    }
    let polls = (1..4).flat_map(|ms| std::iter::repeat_n(millis(ms), 20));
    let sent: Vec<_> = polls.filter_map(|now| queue.poll_dispatch(now)).collect();
    assert_eq!(sent.len(), 15);
    (group, queue, sent)
}

#[test]
fn a_thread_that_was_away_may_say_what_came_back_before_it_is_taken_for_a_hang() {
    for away_ms in [120, 153, 1_000, 10_000, 3_600_000] {
        let (group, mut queue, sent) = busy_queue();
        let now = millis(away_ms);
        assert_eq!(queue.poll_dispatch(now), None);
        assert_eq!((queue.counters().overdue, group.hangs(now)), (0, false), "{away_ms} ms");
        assert!(queue.poll_timeout(now).is_some_and(|at| at <= millis(away_ms + 10)));
        for ticket in sent {
            let completion = queue.complete(now, ticket, Outcome::Done).unwrap();
            assert!(!completion.overdue, "{away_ms} ms");
        }
        assert!(queue.poll_dispatch(now).is_some());
    }
}

#[test]
fn hanging_requests_are_given_up_however_rarely_their_thread_turns() {
    for turn_ms in [1, 7, 20, 50, 90] {
        let (_, mut queue, _) = busy_queue();
        let mut given_up_at = None;
        for ms in (4..1_000).step_by(turn_ms) {
            while queue.poll_dispatch(millis(ms)).is_some() {}
            if queue.counters().overdue > 0 {
                given_up_at.get_or_insert(ms);
            }
        }
        let latest = 101 + 10 + 2 * turn_ms as u64;
        assert!(given_up_at.is_some_and(|at| at <= latest), "{turn_ms}: {given_up_at:?}");
    }
}

#[test]
fn a_stall_of_the_whole_disk_is_charged_to_no_class() {
    let (group, mut queue, mut sent) = busy_queue();
    for ms in 4..500 {
        sent.extend(std::iter::from_fn(|| queue.poll_dispatch(millis(ms))));
    }
    let probes = queue.counters().overdue;
    assert!((38..=40).contains(&probes), "{probes}");
    let other = group.add_class(None, 100).unwrap();
    for _ in 0..1_000 {
        queue.enqueue(millis(500), other, Op::Read, 4096).unwrap();
    }
    // the disk continues; both classes have work, and get the same
    for ticket in sent {
        queue.complete(millis(500), ticket, Outcome::Done).unwrap();
    }
    for step in 0..60 {
        let now = Time::from_nanos(500 * MILLI + step * 100_000);
        while let Some(ticket) = queue.poll_dispatch(now) {
            queue.complete(now, ticket, Outcome::Done).unwrap();
        }
    }
    let share = queue.class(other).unwrap().operations[0];
    assert!((25..=45).contains(&share), "{share} of some 67");
}

#[test]
fn a_stall_is_not_charged_to_the_class_that_held_the_disk() {
    for silent_ms in [120, 160, 300, 1_000] {
        let (group, mut queue, mut sent) = busy_queue();
        let had = sent[0];
        let other = group.add_class(None, 100).unwrap();
        for _ in 0..1_000 {
            queue.enqueue(millis(4), other, Op::Read, 4096).unwrap();
        }
        for ms in 4..silent_ms {
            sent.extend(std::iter::from_fn(|| queue.poll_dispatch(millis(ms))));
        }
        assert!(queue.counters().overdue > 0 && group.hangs(millis(silent_ms)));
        let mut class = None;
        for ticket in sent {
            let completion = queue.complete(millis(silent_ms), ticket, Outcome::Done).unwrap();
            if ticket == had {
                class = Some(completion.class);
            }
        }
        let class = class.unwrap();
        for _ in 0..1_000 {
            queue.enqueue(millis(silent_ms), class, Op::Read, 4096).unwrap();
        }
        let before = queue.class(class).unwrap().operations[0];
        for step in 0..60 {
            let now = Time::from_nanos(silent_ms * MILLI + step * 100_000);
            while let Some(ticket) = queue.poll_dispatch(now) {
                queue.complete(now, ticket, Outcome::Done).unwrap();
            }
        }
        let share = queue.class(class).unwrap().operations[0] - before;
        assert!((20..=45).contains(&share), "{silent_ms} ms: {share} of some 67");
    }
}

/// A prompt thread waits for a completion for as long as the disk takes. That is not bridged.
#[test]
fn a_thread_whose_only_request_takes_long_is_not_away() {
    for (control, slowness) in [(Control::Rates, 200), (Control::Adaptive, 100)] {
        let config = by_figures(model(3_000, 131_072_000), Policy::pace_window());
        let mut world = World::with_config(GroupConfig { control, ..config }, 1);
        world.disk.slowness = slowness;
        let class = world.group.add_class(None, 100).unwrap();
        let read = Client { shard: 0, class, op: Op::Read, len: 4096, pause: 0 };
        world.clients(64, read);
        let class = world.group.add_class(None, 100).unwrap();
        world.clients(8, Client { class, op: Op::Write, len: 2 << 20, ..read });
        world.run_until(5 * SECOND);
        assert_eq!(world.shards[0].queue.counters().absence_bypasses, 0, "{control:?}");
    }
}
