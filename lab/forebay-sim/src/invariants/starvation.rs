//! Each class with shares gets its turn: nobody with work and shares starves for longer than X.
//!
//! The wait of a class on a shard is measured in the disk time that the whole group dispatches
//! meanwhile, so a slow disk is no excuse, and in the turns of the shard, for nobody is served who
//! does not come. Both, and so X, are known beforehand:
//!
//! - *Due.* Before its first request goes, every other class on every shard may send what its shares
//!   allow while the class earns one largest request, and one request of its own; each other shard
//!   may lead by two goals, counted in the disk time that the class itself is owed. So it is due
//!   after `B = 2 (shards (1 / f + classes) largest + ((shards - 1) 2 goals + notice) / f) + goal`
//!   of disk time, where `f` is the part of the disk that its shares are worth while all have work,
//!   `largest` the dearest request so far, and `notice` the tick, the wake-up latency and the idle
//!   credit. A class that is charged for what it kept from others by a hang is due later, by as much
//!   as the charge takes to be worked off at its part of the disk: `charge / f`.
//! - *Served.* A shard that finds a class due in a turn has been away, or others went before; the
//!   credit it may bring along is bounded, so another `B` may pass, and
//!   `N = classes (1 + largest / goal) + 4` turns: a shard that is behind sends at least a goal in
//!   each, and every class on it may have a request and a goal of credit before this one.
//!
//! A class that is served on another shard does not starve: how its shards share what it gets is not
//! promised where one turns rarely and another class is owed more there.
//!
//! Thus `X` in time is what it takes the disk to do `2 B` at its speed, as it never idles meanwhile
//! (`conservation`), or `N + 1` turns of the shard, whichever is longer; and a disk that hangs adds
//! the time until what hangs is given up. A class with an upper limit waits for that instead.

use forebay_core::DiskTime;

use super::violation::Wrong;

/// Goals by which another shard may be ahead.
const LEAD_GOALS: f64 = 2.0;
/// What is allowed above the sum of all that may go before.
const MARGIN: f64 = 2.0;
/// Turns that may find the budget used by others who are due.
const TURNS_MIN: f64 = 4.0;

#[derive(Debug)]
pub(super) struct Starvation {
    /// By shard and class.
    waits: Vec<Vec<Option<Wait>>>,
    /// By shard, its turns so far, and those when it was last looked at.
    turns: Vec<[u64; 2]>,
    /// By class, what the group will have dispatched when the class has paid for what it kept from
    /// others.
    paid_at: Vec<f64>,
    largest: u64,
    /// Disk time of the tick, the wake-up latency, and a run on a disk that seeks.
    extra: f64,
}

/// The wait of a class on a shard.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// What the group had dispatched when it began.
    since: u64,
    /// What it had dispatched in the turn that found the class due, and the number of that turn.
    due: Option<(u64, u64)>,
}

impl Wait {
    fn from(since: u64) -> Self {
        Self { since, due: None }
    }
}

impl Starvation {
    pub(super) fn new((shards, classes): (usize, usize), notice: u64, credit: DiskTime) -> Self {
        Self {
            waits: vec![vec![None; classes]; shards],
            turns: vec![[0; 2]; shards],
            paid_at: vec![0.0; classes],
            largest: 0,
            extra: DiskTime::from_nanos(notice).plus(credit).units() as f64,
        }
    }

    /// A request of `class` was queued, when the group had `dispatched` so much.
    pub(super) fn enqueued(&mut self, shard: usize, (class, cost): (usize, u64), dispatched: u64) {
        self.waits[shard][class].get_or_insert_with(|| Wait::from(dispatched));
        self.largest = self.largest.max(cost);
    }

    /// A request of `class` went, or was taken back, and this many still wait.
    pub(super) fn served(&mut self, shard: usize, (class, left): (usize, u32), dispatched: u64) {
        self.waits[shard][class] = (left > 0).then_some(Wait::from(dispatched));
        for wait in self.waits.iter_mut().filter_map(|waits| waits[class].as_mut()) {
            *wait = Wait::from(dispatched);
        }
    }

    /// A shard has asked what may go.
    pub(super) fn polled(&mut self, shard: usize) {
        self.turns[shard][0] += 1;
    }

    /// `class` kept disk time from others that it is worth `delay` of all that goes to earn.
    pub(super) fn charged(&mut self, class: usize, delay: f64, dispatched: u64) {
        self.paid_at[class] = self.paid_at[class].max(dispatched as f64) + delay;
    }

    /// Restarts the waits of a class, or of all classes.
    pub(super) fn forgive(&mut self, only: Option<usize>, dispatched: u64) {
        for waits in &mut self.waits {
            for (class, wait) in waits.iter_mut().enumerate() {
                if only.is_none_or(|only| only == class) {
                    *wait = wait.map(|_| Wait::from(dispatched));
                }
            }
        }
    }

    pub(super) fn check(
        &mut self,
        shard: usize,
        (dispatched, goal): (u64, u64),
        (fractions, is_capped): (&[f64], impl Fn(usize) -> bool),
    ) -> Result<(), Wrong> {
        let (shards, classes) = (self.waits.len() as f64, fractions.len() as f64);
        let [turns, looked] = &mut self.turns[shard];
        if turns == looked {
            return Ok(());
        }
        *looked = *turns;
        let (largest, goal) = (self.largest as f64, goal as f64);
        let turns_max = classes * (largest / goal.max(1.0) + 1.0) + TURNS_MIN;
        for (class, wait) in self.waits[shard].iter_mut().enumerate() {
            let Some(wait) = wait else { continue };
            if is_capped(class) {
                *wait = Wait::from(dispatched);
                continue;
            }
            let requests = shards * (1.0 / fractions[class] + classes) * largest;
            let leads = (shards - 1.0) * LEAD_GOALS * goal + self.extra;
            let bound = MARGIN * (requests + leads / fractions[class]) + goal;
            let waited = dispatched as f64 - self.paid_at[class].max(wait.since as f64);
            if waited <= bound {
                continue;
            }
            let (since, turn) = *wait.due.get_or_insert((dispatched, *turns));
            if (dispatched - since) as f64 > bound && (*turns - turn) as f64 > turns_max {
                let turns = *turns - turn;
                let what = format!(
                    "it has waited while {waited:.0} units of disk time went, more than twice \
                     {bound:.0}, and for {turns} turns after it was due"
                );
                return Err((Some(class), what));
            }
        }
        Ok(())
    }
}
