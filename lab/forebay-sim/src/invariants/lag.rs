//! Of two classes that both have work waiting neither gets ahead: start-time fair queueing keeps
//! their disk time per share within one largest request of each, over any span of time.
//!
//! Holds within one queue for siblings without caps.
//!
//! A class whose request was given up is charged with the disk time that this kept from others, and
//! lags by that until it is served again: then it has paid, for it has the smallest tag of all that
//! wait. Nobody else lags for it.

use forebay_core::DiskTime;

use super::classes::Class;
use super::violation::Wrong;

#[derive(Debug)]
pub(super) struct Lag {
    classes: Vec<Progress>,
    /// For each pair of classes, what each of them had got when both began to have work.
    pairs: Vec<Pair>,
    /// Units of disk time that a class may save up.
    credit: f64,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Disk time dispatched.
    dispatched: u64,
    /// The dearest request.
    largest: u64,
    /// Disk time that it is charged with for what was given up, and has not paid.
    owed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    members: [usize; 2],
    since: Option<[u64; 2]>,
}

impl Lag {
    pub(super) fn new(classes: usize, credit: DiskTime) -> Self {
        let pair = |one, other| Pair { members: [one, other], since: None };
        let pairs = (0..classes).flat_map(|one| (one + 1..classes).map(move |b| pair(one, b)));
        let progress = Progress { dispatched: 0, largest: 0, owed: 0 };
        Self {
            classes: vec![progress; classes],
            pairs: pairs.collect(),
            credit: credit.units() as f64,
        }
    }

    /// A request of `class` was dispatched, after which this many of the class still wait.
    pub(super) fn dispatched(&mut self, (class, cost): (usize, u64), waiting: u32) {
        let progress = &mut self.classes[class];
        progress.dispatched += cost;
        progress.largest = progress.largest.max(cost);
        let owed = core::mem::take(&mut progress.owed);
        if waiting == 0 || owed > 0 {
            self.restart(Some(class));
        }
    }

    /// A request of `class` was given up that had kept so much from others.
    pub(super) fn charged(&mut self, class: usize, kept: u64) {
        self.classes[class].owed += kept;
        self.restart(Some(class));
    }

    /// The comparison restarts for a class, or for all.
    pub(super) fn restart(&mut self, only: Option<usize>) {
        let of = |pair: &&mut Pair| only.is_none_or(|class| pair.members.contains(&class));
        self.pairs.iter_mut().filter(of).for_each(|pair| pair.since = None);
    }

    pub(super) fn check(
        &mut self,
        classes: &[Class],
        queued: impl Fn(usize) -> u32,
    ) -> Result<(), Wrong> {
        let takes_part = |class: usize| queued(class) > 0 && !classes[class].is_capped;
        for pair in &mut self.pairs {
            let [a, b] = pair.members;
            if !takes_part(a) || !takes_part(b) || classes[a].parent != classes[b].parent {
                pair.since = None;
                continue;
            }
            let now = pair.members.map(|class| self.classes[class].dispatched);
            let since = *pair.since.get_or_insert(now);
            let part = |member: usize| {
                let shares = f64::from(classes[pair.members[member]].shares.now);
                (now[member] - since[member]) as f64 / shares
            };
            let per_share =
                |class: usize, units: f64| units / f64::from(classes[class].shares.least);
            let request = pair.members.map(|class| {
                let largest = self.classes[class].largest as f64;
                // A tag is a whole number.
                per_share(class, largest + self.credit) + 1.0
            });
            let lag = part(0) - part(1);
            let behind = if lag > 0.0 { b } else { a };
            let owed = per_share(behind, self.classes[behind].owed as f64);
            let bound = request[0] + request[1] + owed;
            if lag.abs() > bound {
                let lag = lag.abs();
                let what = format!(
                    "it lags by {lag:.0} units of disk time per share, more than {bound:.0}"
                );
                return Err((Some(behind), what));
            }
        }
        Ok(())
    }
}
