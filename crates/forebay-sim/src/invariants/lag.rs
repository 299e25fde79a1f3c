//! Of two classes that both have work waiting neither gets ahead: start-time fair queueing keeps
//! their disk time per share within one largest request of each.
//!
//! Holds within one queue for siblings without caps.

use forebay_core::DiskTime;

use super::{Class, Wrong};

#[derive(Debug)]
pub(super) struct Lag {
    classes: Vec<Progress>,
    /// For each pair of siblings, what each of them had got when both began to have work.
    pairs: Vec<Pair>,
    idle_credit: f64,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Disk time dispatched.
    dispatched: u64,
    /// The dearest request.
    largest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    members: [usize; 2],
    since: Option<[u64; 2]>,
}

impl Lag {
    pub(super) fn new(classes: &[Class], idle_credit: DiskTime) -> Self {
        let mut pairs = Vec::new();
        for (one, a) in classes.iter().enumerate() {
            for (other, b) in classes.iter().enumerate().skip(one + 1) {
                if a.parent == b.parent && !a.is_capped && !b.is_capped {
                    pairs.push(Pair { members: [one, other], since: None });
                }
            }
        }
        let progress = |_: &Class| Progress { dispatched: 0, largest: 0 };
        let idle_credit = idle_credit.units() as f64;
        Self { classes: classes.iter().map(progress).collect(), pairs, idle_credit }
    }

    /// A request of `class` was dispatched, after which so many of the class still wait.
    pub(super) fn dispatched(&mut self, (class, cost): (usize, u64), waiting: u32) {
        let progress = &mut self.classes[class];
        progress.dispatched += cost;
        progress.largest = progress.largest.max(cost);
        if waiting == 0 {
            let pairs = self.pairs.iter_mut().filter(|pair| pair.members.contains(&class));
            pairs.for_each(|pair| pair.since = None);
        }
    }

    pub(super) fn shares_changed(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.since = None);
    }

    pub(super) fn check(
        &mut self,
        classes: &[Class],
        queued: impl Fn(usize) -> u32,
    ) -> Result<(), Wrong> {
        for pair in &mut self.pairs {
            let [a, b] = pair.members;
            if queued(a) == 0 || queued(b) == 0 {
                pair.since = None;
                continue;
            }
            let now = pair.members.map(|class| self.classes[class].dispatched);
            let since = *pair.since.get_or_insert(now);
            let part = |member: usize| {
                let shares = f64::from(classes[pair.members[member]].shares.now);
                (now[member] - since[member]) as f64 / shares
            };
            let bound = pair.members.map(|class| {
                let largest = self.classes[class].largest as f64;
                // A tag is a whole number.
                (largest + self.idle_credit) / f64::from(classes[class].shares.least) + 1.0
            });
            let lag = part(0) - part(1);
            if lag.abs() > bound[0] + bound[1] {
                let behind = if lag > 0.0 { b } else { a };
                let what = format!(
                    "it lags by {:.0} units of disk time per share, more than {:.0}",
                    lag.abs(),
                    bound[0] + bound[1]
                );
                return Err((Some(behind), what));
            }
        }
        Ok(())
    }
}
