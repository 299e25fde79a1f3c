//! When each shard is to be given its next turn.

use forebay_core::Time;

/// One alarm per shard, the earliest of all at hand: a tree of minima, the alarms as its leaves.
#[derive(Clone, Debug)]
pub(super) struct Alarms {
    tree: Vec<Time>,
    leaves: usize,
}

impl Alarms {
    /// This many alarms, all of them set to `at`.
    pub(super) fn all_at(at: Time, count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let mut alarms = Self { tree: vec![Time::MAX; 2 * leaves], leaves };
        (0..count).for_each(|alarm| alarms.set(alarm, at));
        alarms
    }

    /// The time of one alarm, [`Time::MAX`] if it is not set.
    pub(super) fn get(&self, alarm: usize) -> Time {
        self.tree[self.leaves + alarm]
    }

    /// Sets one alarm again.
    pub(super) fn set(&mut self, alarm: usize, at: Time) {
        let mut node = self.leaves + alarm;
        self.tree[node] = at;
        while node > 1 {
            let least = self.tree[node].min(self.tree[node ^ 1]);
            node /= 2;
            if self.tree[node] == least {
                return;
            }
            self.tree[node] = least;
        }
    }

    /// Sets one alarm if it is not set to an earlier time.
    pub(super) fn at_the_latest(&mut self, alarm: usize, at: Time) {
        if at < self.get(alarm) {
            self.set(alarm, at);
        }
    }

    /// The earliest time of all.
    pub(super) fn first_time(&self) -> Time {
        self.tree[1]
    }

    /// The first of the alarms with the earliest time.
    pub(super) fn first(&self) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.tree[node] > self.tree[node + 1] {
                node += 1;
            }
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_alarm_is_found_among_any_number() {
        for count in [1, 2, 3, 8, 100] {
            let mut alarms = Alarms::all_at(Time::MAX, count);
            let time = |alarm: usize| Time::from_nanos((alarm * 37 % 101) as u64 + 1);
            for alarm in 0..count {
                alarms.set(alarm, time(alarm));
            }
            let mut seen = Vec::new();
            while alarms.first_time() < Time::MAX {
                let first = alarms.first();
                assert_eq!(alarms.get(first), alarms.first_time());
                seen.push(first);
                alarms.set(first, Time::MAX);
            }
            let mut expected: Vec<usize> = (0..count).collect();
            expected.sort_by_key(|&alarm| time(alarm));
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn an_earlier_alarm_stands() {
        let mut alarms = Alarms::all_at(Time::MAX, 2);
        alarms.at_the_latest(1, Time::from_nanos(5));
        alarms.at_the_latest(1, Time::from_nanos(9));
        assert_eq!(alarms.get(1), Time::from_nanos(5));
        alarms.at_the_latest(1, Time::from_nanos(3));
        assert_eq!((alarms.first(), alarms.first_time()), (1, Time::from_nanos(3)));
    }
}
