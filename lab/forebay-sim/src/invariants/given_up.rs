//! What classes pay for requests that were given up.

use forebay_core::{DiskTime, Time};

use super::Invariants;
use super::ledger::{GivenUp, Ledger};

/// No request is given up sooner by a disk in good times.
const PATIENCE_NANOS_MIN: u64 = 100_000_000;
/// A thread that polls this much later than a request was overdue was away.
const AWAY_NANOS: u64 = 10_000_000;
/// A part of the disk is taken to hang for so long after a request was given up.
const HANGING_NANOS: u64 = 1_000_000_000;

impl Invariants {
    /// Classes pay for what their requests that were given up have kept from others: their part
    /// of the window, for as long as they were in it, but no longer than the patience with a disk
    /// in good times. They pay nothing for a disk that stood still for half of that, nor for
    /// having been away since it finished, unless a part of the disk hung shortly before: nobody
    /// is waited for then.
    pub(super) fn book_given_up(&mut self, now: Time, group: usize) {
        let watch = &mut self.groups[group];
        let window = watch.io_group.window();
        let patience = window.as_nanos_ceil().saturating_mul(8).max(PATIENCE_NANOS_MIN);
        let is_stalled = now.nanos_since(watch.completed_at) >= patience / 2;
        for given_up in watch.ledgers.iter_mut().flat_map(Ledger::take_given_up) {
            let GivenUp { class, cost, dispatched_at, finished } = given_up;
            let in_disk = now.nanos_since(dispatched_at);
            let hangs = watch.given_up_at.is_some_and(|at| now.nanos_since(at) < HANGING_NANOS);
            watch.given_up_at = Some(now);
            let was_away = in_disk > patience + AWAY_NANOS
                && finished.is_some_and(|at| now.nanos_since(at) > AWAY_NANOS);
            let units = DiskTime::from_nanos(in_disk.min(patience)).units() as f64;
            let part = (cost as f64 / window.units() as f64).min(1.0);
            let kept = if is_stalled || was_away && !hangs { 0.0 } else { units * part };
            if let Some(lag) = &mut watch.lag {
                lag.charged(class, kept.ceil() as u64);
            }
            let Some(starvation) = &mut watch.starvation else { continue };
            let parent = self.classes[class].parent;
            for (other, of) in self.classes.iter().enumerate() {
                // The group of classes pays too.
                let siblings = parent.is_some() && of.parent == parent;
                if other == class || siblings {
                    let delay = kept / self.fractions[other];
                    starvation.charged(other, delay, watch.dispatched);
                }
            }
        }
    }
}
