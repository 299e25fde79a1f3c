//! Whoever has shares gets its turn.
//!
//! The wait of a class is measured in the disk time that the whole group dispatches meanwhile, so a
//! slow disk is no excuse. Before the first request of a class on a shard goes, every other class
//! on every shard may send what its shares allow while the class earns one largest request, and
//! one request of its own. Each other shard may lead by some goals, counted in the disk time that the
//! class itself is owed.
//!
//! Where several shards take notice less often than once per goal, the disk is about to idle each
//! time one of them does, and whoever comes may go: nothing is promised to anybody there.

use forebay_core::DiskTime;

use super::Wrong;

/// Goals by which another shard may be ahead.
const LEAD_GOALS: f64 = 2.0;
/// What is allowed above the sum of all that may go before.
const MARGIN: f64 = 2.0;

#[derive(Debug)]
pub(super) struct Starvation {
    /// By shard and class, what the group had dispatched when the wait began.
    since: Vec<Vec<Option<u64>>>,
    largest: u64,
    /// Disk time of the tick, the wake-up latency and the idle credit.
    extra: f64,
    /// Disk time from one notice to the next.
    notice: u64,
}

impl Starvation {
    pub(super) fn new((shards, classes): (usize, usize), notice: u64, credit: DiskTime) -> Self {
        let notice = DiskTime::from_nanos(notice);
        let extra = notice.plus(credit).units() as f64;
        let since = vec![vec![None; classes]; shards];
        Self { since, largest: 0, extra, notice: notice.units() }
    }

    /// A request of `class` was queued, when the group had `dispatched` so much.
    pub(super) fn enqueued(&mut self, seat: usize, (class, cost): (usize, u64), dispatched: u64) {
        self.since[seat][class].get_or_insert(dispatched);
        self.largest = self.largest.max(cost);
    }

    /// A request of `class` went, and so many still wait.
    pub(super) fn dispatched(&mut self, seat: usize, (class, left): (usize, u32), dispatched: u64) {
        self.since[seat][class] = (left > 0).then_some(dispatched);
    }

    /// All waits begin anew.
    pub(super) fn forgive(&mut self, dispatched: u64) {
        let waits = self.since.iter_mut().flatten().flatten();
        waits.for_each(|since| *since = dispatched);
    }

    pub(super) fn check(
        &mut self,
        seat: usize,
        could_go: bool,
        (dispatched, goal): (u64, u64),
        (fractions, is_capped): (&[f64], impl Fn(usize) -> bool),
    ) -> Result<(), Wrong> {
        let shards = self.since.len() as f64;
        let classes = fractions.len() as f64;
        let is_blind = self.since.len() > 1 && self.notice > goal;
        for (class, since) in self.since[seat].iter_mut().enumerate() {
            let Some(since) = since else { continue };
            // A class at its cap waits for that.
            if !could_go || is_blind || is_capped(class) {
                *since = dispatched;
                continue;
            }
            let requests = shards * (1.0 / fractions[class] + classes) * self.largest as f64;
            let leads = (shards - 1.0) * LEAD_GOALS * goal as f64 + self.extra;
            let bound = MARGIN * (requests + leads / fractions[class]) + goal as f64;
            let waited = dispatched - *since;
            if waited as f64 > bound {
                let what = format!(
                    "it has waited while {waited} units of disk time went, more than {bound:.0}"
                );
                return Err((Some(class), what));
            }
        }
        Ok(())
    }
}
