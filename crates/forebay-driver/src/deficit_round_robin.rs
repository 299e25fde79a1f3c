//! The requests of one class that wait before the I/O queue: equal disk time
//! for the threads that submit them (Shreedhar, Varghese: Efficient Fair Queueing
//! Using Deficit Round Robin, SIGCOMM 1995).

use std::collections::{HashMap, VecDeque};

use slab::Slab;

/// The end of a list.
const NONE: usize = usize::MAX;

/// Requests of a class, first in first out per submitter, the submitters in
/// turns.
///
/// Deficit round robin: a submitter whose turn it is goes on until it has used
/// what it was credited, so that large requests cost their submitter turns.
#[derive(Debug, Default)]
pub(crate) struct DeficitRoundRobin {
    submitters: Slab<Submitter>,
    by_number: HashMap<u64, usize>,
    /// Keys of submitters that have something waiting, or had.
    turns: VecDeque<usize>,
    /// Requests in it whose submitters hold a permit.
    holders: usize,
    /// How often its own state was impossible.
    bugs: u64,
}

#[derive(Debug)]
struct Submitter {
    number: u64,
    first: usize,
    last: usize,
    /// Nanoseconds of disk time it may use before its turn ends.
    credit: u64,
}

/// A request's link in its queue. The requests are kept by the caller.
#[derive(Debug)]
pub(crate) struct Link {
    submitter: usize,
    previous: usize,
    next: usize,
    /// Disk time that the request costs, in nanoseconds.
    cost: u64,
    /// Its submitter holds a permit.
    holder: bool,
}

/// The caller's requests, by key.
pub(crate) trait Links {
    /// The link of a request that waits in a queue.
    fn link(&mut self, key: usize) -> Option<&mut Link>;
}

impl DeficitRoundRobin {
    /// Puts the request `key` behind the others of its submitter; its link is
    /// to be kept with it.
    pub(crate) fn push(
        &mut self,
        links: &mut impl Links,
        key: usize,
        (number, cost): (u64, u64),
        holder: bool,
    ) -> Link {
        let submitter = self.submitter(number);
        let Some(list) = self.submitters.get_mut(submitter) else {
            self.report_invariant("a submitter is missing that was just looked up");
            return Link { submitter, previous: NONE, next: NONE, cost, holder: false };
        };
        self.holders += usize::from(holder);
        let previous = std::mem::replace(&mut list.last, key);
        match links.link(previous) {
            Some(link) => link.next = key,
            None => list.first = key,
        }
        Link { submitter, previous, next: NONE, cost, holder }
    }

    /// How often its own state was impossible: each is a bug.
    pub(crate) const fn bugs(&self) -> u64 {
        self.bugs
    }

    /// Whether there is a request in it whose submitter holds a permit.
    pub(crate) fn has_holders(&self) -> bool {
        self.holders > 0
    }

    /// The request that is next; it leaves the queue. A turn is worth `quantum`
    /// nanoseconds of disk time.
    pub(crate) fn pop(&mut self, links: &mut impl Links, quantum: u64) -> Option<usize> {
        let quantum = quantum.max(1);
        let mut in_vain = 0;
        loop {
            let turn = *self.turns.front()?;
            let Some(submitter) = self.submitters.get_mut(turn) else {
                self.report_invariant("a turn belongs to no submitter");
                self.turns.pop_front();
                continue;
            };
            let key = submitter.first;
            let Some(link) = links.link(key) else {
                // Nothing of it waits: it gives its credit up.
                self.turns.pop_front();
                let gone = self.submitters.remove(turn);
                self.by_number.remove(&gone.number);
                continue;
            };
            if self.turns.len() == 1 || submitter.credit >= link.cost {
                submitter.credit = submitter.credit.saturating_sub(link.cost);
                self.remove(links, key);
                return Some(key);
            }
            submitter.credit = submitter.credit.saturating_add(quantum);
            self.turns.rotate_left(1);
            in_vain += 1;
            if in_vain >= self.turns.len() {
                self.skip_rounds(links, quantum);
                in_vain = 0;
            }
        }
    }

    /// Gives everybody the credit of all rounds but the last before somebody
    /// can go. A request may cost more than a thread could ever count in turns.
    fn skip_rounds(&mut self, links: &mut impl Links, quantum: u64) {
        let lacks = self.submitters.iter().filter_map(|(_, submitter)| {
            Some(links.link(submitter.first)?.cost.saturating_sub(submitter.credit))
        });
        let rounds = lacks.min().unwrap_or(0).div_ceil(quantum).saturating_sub(1);
        for (_, submitter) in &mut self.submitters {
            let skipped = rounds.saturating_mul(quantum);
            submitter.credit = submitter.credit.saturating_add(skipped);
        }
    }

    /// Takes the request `key` out, wherever in the queue it is.
    pub(crate) fn remove(&mut self, links: &mut impl Links, key: usize) {
        let Some(link) = links.link(key) else {
            return self
                .report_invariant("a request was taken out of a queue in which it did not wait");
        };
        let (submitter, previous, next) = (link.submitter, link.previous, link.next);
        self.holders -= usize::from(link.holder);
        let Some(list) = self.submitters.get_mut(submitter) else {
            return self.report_invariant("a waiting request has no submitter");
        };
        match links.link(previous) {
            Some(link) => link.next = next,
            None => list.first = next,
        }
        match links.link(next) {
            Some(link) => link.previous = previous,
            None => list.last = previous,
        }
    }

    #[cold]
    fn report_invariant(&mut self, violation: &str) {
        self.bugs += 1;
        debug_assert!(false, "{violation}");
    }

    /// The key of the submitter `number`.
    fn submitter(&mut self, number: u64) -> usize {
        if let Some(turn) = self.turns.back()
            && self.submitters.get(*turn).is_some_and(|submitter| submitter.number == number)
        {
            return *turn;
        }
        let Self { submitters, by_number, turns, .. } = self;
        *by_number.entry(number).or_insert_with(|| {
            let key = submitters.insert(Submitter { number, first: NONE, last: NONE, credit: 0 });
            turns.push_back(key);
            key
        })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Requests by key, with the number of their submitter.
    #[derive(Default)]
    struct Requests(Slab<(u64, Option<Link>)>);

    impl Links for Requests {
        fn link(&mut self, key: usize) -> Option<&mut Link> {
            self.0.get_mut(key)?.1.as_mut()
        }
    }

    impl Requests {
        fn push(&mut self, queue: &mut DeficitRoundRobin, number: u64, cost: u64) -> usize {
            let key = self.0.insert((number, None));
            let link = queue.push(self, key, (number, cost), false);
            self.0[key].1 = Some(link);
            key
        }

        fn pop(&mut self, queue: &mut DeficitRoundRobin) -> Option<u64> {
            let key = queue.pop(self, 10)?;
            Some(self.0.remove(key).0)
        }

        fn cancel(&mut self, queue: &mut DeficitRoundRobin, key: usize) {
            queue.remove(self, key);
            self.0.remove(key);
        }
    }

    #[test]
    fn submitters_get_equal_disk_time() {
        let (mut queue, mut requests) = (DeficitRoundRobin::default(), Requests::default());
        for _ in 0..1000 {
            requests.push(&mut queue, 1, 10);
            requests.push(&mut queue, 2, 40);
        }
        let mut served = [0u64; 3];
        for _ in 0..500 {
            served[requests.pop(&mut queue).unwrap() as usize] += 1;
        }
        assert!((395..=405).contains(&served[1]) && (95..=105).contains(&served[2]), "{served:?}");
    }

    #[test]
    fn a_request_may_cost_more_turns_than_can_be_counted() {
        let (mut queue, mut requests) = (DeficitRoundRobin::default(), Requests::default());
        requests.push(&mut queue, 1, u64::MAX);
        requests.push(&mut queue, 2, u64::MAX - 1_000);
        requests.push(&mut queue, 2, 5);
        let order: Vec<_> = std::iter::from_fn(|| requests.pop(&mut queue)).collect();
        assert_eq!(order, [2, 2, 1]);
    }

    #[test]
    fn one_submitter_is_served_in_order_and_cancellation_leaves_no_gap() {
        let (mut queue, mut requests) = (DeficitRoundRobin::default(), Requests::default());
        let keys: Vec<_> = (0..10).map(|_| requests.push(&mut queue, 7, 5)).collect();
        for at in [0, 9, 5] {
            requests.cancel(&mut queue, keys[at]);
        }
        let order: Vec<_> = std::iter::from_fn(|| {
            let key = queue.pop(&mut requests, 10)?;
            requests.0.remove(key);
            Some(key)
        })
        .collect();
        assert_eq!(order, [1, 2, 3, 4, 6, 7, 8]);
        assert!(
            queue.turns.is_empty() && queue.by_number.is_empty() && queue.submitters.is_empty()
        );
    }

    #[test]
    fn a_waiter_without_a_queue_is_reported_and_affects_no_others() {
        let (mut queue, mut requests) = (DeficitRoundRobin::default(), Requests::default());
        let keys = [1, 2, 1].map(|number| requests.push(&mut queue, number, 5));
        requests.cancel(&mut queue, keys[0]);
        let again = AssertUnwindSafe(|| queue.remove(&mut requests, keys[0]));
        assert_eq!(catch_unwind(again).is_err(), cfg!(debug_assertions));
        assert_eq!(queue.bugs(), 1);
        let order: Vec<_> = std::iter::from_fn(|| requests.pop(&mut queue)).collect();
        assert_eq!(order.len(), 2);
    }

    #[test]
    fn a_submitter_that_comes_later_does_not_wait_for_all_others() {
        let (mut queue, mut requests) = (DeficitRoundRobin::default(), Requests::default());
        for _ in 0..100 {
            requests.push(&mut queue, 1, 10);
        }
        for _ in 0..10 {
            requests.pop(&mut queue);
        }
        requests.push(&mut queue, 2, 10);
        let next: Vec<_> = (0..4).filter_map(|_| requests.pop(&mut queue)).collect();
        assert!(next.contains(&2), "{next:?}");
    }
}
