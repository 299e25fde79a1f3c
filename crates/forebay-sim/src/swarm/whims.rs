//! A disk with whims: late, hanging and failing commands.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use forebay_core::{DiskRates, Time};
use forebay_load::Rng;

use crate::disk::{Answer, Command, Finished, SimDisk};

/// What goes wrong with a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whims {
    /// From this time to that one commands are not answered; then all at once.
    hangs: Option<(Time, Time)>,
    /// Answers come late by up to so many nanoseconds, and not in order.
    late_nanos: u64,
    /// One command in so many fails.
    fails_one_in: Option<u64>,
    /// One command in so many is never answered.
    loses_one_in: Option<u64>,
}

impl Whims {
    pub(super) fn random(rng: &mut Rng, millis: u64) -> Self {
        let from = Time::from_nanos(rng.below(millis) * 1_000_000);
        let to = from.plus_nanos(rng.below(millis) * 1_000_000);
        Self {
            hangs: (rng.below(2) == 0).then_some((from, to)),
            late_nanos: [0, 0, 100_000, 20_000_000][rng.below(4) as usize],
            fails_one_in: (rng.below(3) == 0).then_some(10),
            loses_one_in: (rng.below(4) == 0).then_some(1000),
        }
    }
}

/// A disk that has its whims.
pub(super) struct WhimsicalDisk {
    disk: Box<dyn SimDisk>,
    whims: Whims,
    rng: Rng,
    answers: BinaryHeap<Reverse<(Time, u64, bool)>>,
}

impl WhimsicalDisk {
    pub(super) fn new(disk: Box<dyn SimDisk>, whims: Whims, seed: u64) -> Self {
        Self { disk, whims, rng: Rng::new(seed, &[]), answers: BinaryHeap::new() }
    }

    fn one_in(&mut self, chance: Option<u64>) -> bool {
        chance.is_some_and(|chance| self.rng.below(chance) == 0)
    }

    fn take_in(&mut self, now: Time) {
        while let Some(Finished { id, at, answer }) = self.disk.poll_finished(now) {
            let ok = !self.one_in(self.whims.fails_one_in) && answer == Answer::Done;
            if self.one_in(self.whims.loses_one_in) {
                continue;
            }
            let late = at.plus_nanos(self.rng.below(self.whims.late_nanos));
            let hang = self.whims.hangs.filter(|&(from, to)| late >= from && late < to);
            let at = hang.map_or(late, |(_, to)| to);
            self.answers.push(Reverse((at, id, ok)));
        }
    }
}

impl SimDisk for WhimsicalDisk {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.disk.submit(now, id, command);
    }

    fn poll_finished(&mut self, now: Time) -> Option<Finished> {
        self.take_in(now);
        let &Reverse((at, id, ok)) = self.answers.peek()?;
        if at > now {
            return None;
        }
        self.answers.pop();
        Some(Finished { id, at, answer: if ok { Answer::Done } else { Answer::Failed } })
    }

    fn next_event(&self) -> Option<Time> {
        let own = self.answers.peek().map(|Reverse((at, ..))| *at);
        own.into_iter().chain(self.disk.next_event()).min()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}
