//! Grants that their owners do not collect, and requests that never complete.

use forebay_core::{
    ClassId, DiskTime, EnqueueError, IoGroup, IoQueue, Op, Outcome, Policy, Ticket, Time,
};

use crate::world::{MILLI, SECOND, by_figures, model};

/// A disk of 10,000 requests of 4 KiB per second: 100 us each.
fn bed(requests_max: u32) -> (IoGroup, IoQueue) {
    let mut config = by_figures(model(10_000, 1_000_000_000), Policy::pace_window());
    (config.shards_max, config.requests_max) = (1, requests_max);
    let group = IoGroup::new(config);
    let queue = group.join().unwrap();
    (group, queue)
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn enqueue(queue: &mut IoQueue, class: ClassId, nanos: u64) -> Ticket {
    queue.enqueue(at(nanos), class, Op::Read, 4096).unwrap()
}

/// The requests dispatched in 20 ms.
fn dispatched(queue: &mut IoQueue, now: &mut u64) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for _ in 0..200 {
        *now += MILLI / 10;
        tickets.extend(std::iter::from_fn(|| queue.poll_dispatch(at(*now))));
    }
    tickets
}

#[test]
fn a_grant_that_is_set_aside_gives_its_room_to_others_and_is_paid_for_once() {
    let (group, mut queue) = bed(1_000);
    let [late, other] = [(); 2].map(|()| group.add_class(None, 100).unwrap());
    let mut now = SECOND;
    let granted: Vec<_> = (0..15).map(|_| enqueue(&mut queue, late, now)).collect();
    assert_eq!(dispatched(&mut queue, &mut now), granted);
    (0..100).for_each(|_| _ = enqueue(&mut queue, other, now));
    assert_eq!(dispatched(&mut queue, &mut now), [], "the window is full");
    for ticket in &granted {
        queue.park(at(now), *ticket).unwrap();
        assert!(queue.park(at(now), *ticket).is_err());
    }
    assert_eq!(group.in_flight(), DiskTime::ZERO);
    let others = dispatched(&mut queue, &mut now);
    assert_eq!(others.len(), 15);
    // one goal of them is dispatched in any case; the rest waits ahead of its class
    let next = enqueue(&mut queue, late, now);
    let (went, waits): (Vec<_>, Vec<_>) =
        granted.into_iter().partition(|ticket| queue.resume(at(now), *ticket).unwrap());
    assert_eq!((went.len(), group.in_flight().as_nanos_ceil()), (8, 2_300_000));
    assert!(waits.iter().all(|ticket| queue.resume(at(now), *ticket).is_err()));
    for ticket in went.into_iter().chain(others) {
        queue.complete(at(now), ticket, Outcome::Done).unwrap();
    }
    let mut order = dispatched(&mut queue, &mut now);
    order.retain(|ticket| *ticket == next || waits.contains(ticket));
    assert_eq!((order.len(), order.last()), (8, Some(&next)));
    let counters = queue.class(late).unwrap();
    assert_eq!(counters.consumption.as_nanos_ceil(), 16 * 100_000);
    assert_eq!((counters.queued, counters.in_disk), (0, 8));
}

#[test]
fn a_late_owner_who_comes_every_few_milliseconds_gets_what_was_set_aside_each_time() {
    let (group, mut queue) = bed(1_000);
    let [late, other] = [(); 2].map(|()| group.add_class(None, 100).unwrap());
    let mut now = SECOND;
    (0..64).for_each(|_| _ = enqueue(&mut queue, other, now));
    for every in [1, 5, 20] {
        let mut in_disk = std::collections::VecDeque::new();
        let (mut granted, mut taken) = (None, 0);
        let mut asked = enqueue(&mut queue, late, now);
        for step in 1..=1_000 * every {
            now += MILLI / 10;
            while let Some(&(ticket, since)) = in_disk.front()
                && now >= since + MILLI
            {
                in_disk.pop_front();
                queue.complete(at(now), ticket, Outcome::Done).unwrap();
                enqueue(&mut queue, other, now);
            }
            if let Some(since) = granted
                && now > since + group.effective_goal().as_nanos_ceil()
            {
                _ = queue.park(at(now), asked);
            }
            while let Some(ticket) = queue.poll_dispatch(at(now)) {
                if ticket == asked {
                    granted = Some(now);
                } else {
                    in_disk.push_back((ticket, now));
                }
            }
            if step % (10 * every) == 0 && granted.is_some() {
                // still in the disk, or resumed
                if queue.resume(at(now), asked).unwrap_or(true) {
                    queue.complete(at(now), asked, Outcome::Done).unwrap();
                    asked = enqueue(&mut queue, late, now);
                    taken += 1;
                }
                granted = None;
            }
        }
        assert!(taken >= 90, "{taken} of 100, asked for every {every} ms");
        queue.cancel(at(now), asked);
        while let Some((ticket, _)) = in_disk.pop_front() {
            queue.complete(at(now), ticket, Outcome::Done).unwrap();
            enqueue(&mut queue, other, now);
        }
    }
}

#[test]
fn permits_given_up_long_ago_make_room_in_a_full_table() {
    let (group, mut queue) = bed(8);
    let class = group.add_class(None, 100).unwrap();
    let mut now = SECOND;
    let forgotten: Vec<_> = (0..8).map(|_| enqueue(&mut queue, class, now)).collect();
    dispatched(&mut queue, &mut now);
    let full = Err(EnqueueError::Full);
    assert_eq!(queue.enqueue(at(now), class, Op::Read, 4096), full);
    for _ in 0..40 {
        dispatched(&mut queue, &mut now);
    }
    assert_eq!((queue.counters().overdue, queue.counters().in_disk), (8, 8));
    assert_eq!(queue.enqueue(at(now), class, Op::Read, 4096), full, "they may come back");
    for _ in 0..10 {
        dispatched(&mut queue, &mut now);
    }
    let next: Vec<_> = forgotten.iter().map(|_| enqueue(&mut queue, class, now)).collect();
    for (ticket, next) in forgotten.iter().zip(&next) {
        assert_eq!(next.index(), ticket.index());
        assert!(queue.complete(at(now), *ticket, Outcome::Done).is_err());
    }
    assert_eq!(queue.enqueue(at(now), class, Op::Read, 4096), full);
    assert_eq!(dispatched(&mut queue, &mut now), next);
    for ticket in next {
        queue.complete(at(now), ticket, Outcome::Done).unwrap();
    }
    assert!(queue.is_empty());
    assert_eq!((queue.counters().in_disk, queue.class(class).unwrap().in_disk), (0, 0));
}

#[test]
fn a_request_that_was_taken_up_again_and_cancelled_counts_as_completed() {
    let (group, mut queue) = bed(1_000);
    let class = group.add_class(None, 100).unwrap();
    let mut now = SECOND;
    (0..60).for_each(|_| _ = enqueue(&mut queue, class, now));
    let granted = dispatched(&mut queue, &mut now);
    for ticket in &granted {
        queue.park(at(now), *ticket).unwrap();
    }
    let others = dispatched(&mut queue, &mut now);
    let waits = |ticket: &&Ticket| !queue.resume(at(now), **ticket).unwrap();
    let waits: Vec<_> = granted.iter().filter(waits).copied().collect();
    assert!(!waits.is_empty() && !others.is_empty());
    assert!(waits.iter().all(|&ticket| queue.cancel(at(now), ticket)));
    let counters = queue.counters();
    assert_eq!(counters.dispatched - counters.completed, u64::from(counters.in_disk));
}
