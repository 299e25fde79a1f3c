//! The state of a deleter's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use forebay_core::{Time, saturating_nanos};

use super::deletion::{DeletedHow, Target};
use super::directories::Directories;
use super::entry_name::{EntryName, EntryNames};
use super::error::DeleteErrorCause;
use super::item::{Item, Place};
use super::open_file::OpenFile;
use super::pace::Pace;
use super::shared::{Job, Shared};
use super::trash::Trash;
use super::urgency::{Backlog, rate_at};
use crate::permit::Parking;
use crate::sys::sync::Clock;

/// The time between two checks of the urgency, in nanoseconds.
pub(super) const CHECK_PERIOD: u64 = 100_000_000;
/// The time after which work that lacked descriptors or room in a queue is tried again, in
/// nanoseconds.
pub(super) const RETRY_AFTER: u64 = 20_000_000;
/// The most such attempts.
pub(super) const RETRIES_MAX: u32 = 500;

/// The state of the thread.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) parking: Arc<Parking>,
    pub(super) waker: Waker,
    pub(super) clock: Clock,
    pub(super) directories: Directories,
    pub(super) names: EntryNames,
    /// Jobs that wait for room.
    pub(super) put_off: VecDeque<Job>,
    pub(super) queue: VecDeque<Item>,
    /// The files that are being freed: one large file, or several small ones.
    pub(super) opened: VecDeque<OpenFile>,
    /// The entries of other deleters.
    pub(super) watched: Vec<Watched>,
    pub(super) emptying: Vec<Emptying>,
    pub(super) held: usize,
    /// The targets that wait until no work is left.
    pub(super) draining: Vec<Arc<Target>>,
    pub(super) pace: Pace,
    pub(super) rate: Option<u64>,
    pub(super) looked: Option<Time>,
    pub(super) retries: u32,
}

/// Entries of one other deleter, which has claimed them or had claimed them.
pub(super) struct Watched {
    pub(super) target: Arc<Target>,
    pub(super) trash: Arc<Trash>,
    pub(super) owner: u64,
    pub(super) numbers: VecDeque<u64>,
}

/// An [`empty_trash`](crate::Deleter::empty_trash), which ends when this trash has no entries left.
pub(super) struct Emptying {
    pub(super) target: Arc<Target>,
    pub(super) trash: Arc<Trash>,
}

impl Watched {
    pub(super) fn names(&self) -> impl Iterator<Item = EntryName> {
        self.numbers.iter().map(|number| EntryName { owner: self.owner, number: *number })
    }
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, parking: Arc<Parking>) -> Self {
        let (waker, names) = (Waker::from(Arc::clone(&parking)), EntryNames::new(shared.owner()));
        let rate = shared.options.rate;
        Self {
            shared,
            parking,
            waker,
            clock: Clock::of_process(),
            directories: Directories::default(),
            names,
            put_off: VecDeque::new(),
            queue: VecDeque::new(),
            opened: VecDeque::new(),
            watched: Vec::new(),
            emptying: Vec::new(),
            held: 0,
            draining: Vec::new(),
            pace: Pace::default(),
            rate,
            looked: None,
            retries: 0,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sleeps before another attempt.
    pub(super) fn back_off(&self) {
        self.parking.park(self.clock, Some(self.now().plus_nanos(RETRY_AFTER)));
    }

    /// Checks other deleters and the urgency, and sets the rate and the shares.
    pub(super) fn look(&mut self, now: Time) {
        if self.looked.is_some_and(|looked| now.nanos_since(looked) < CHECK_PERIOD) {
            return;
        }
        self.looked = Some(now);
        self.check_watched();
        let (options, counts) = (&self.shared.options, self.shared.counts());
        let first = self.opened.front().map(|file| &file.item).or_else(|| self.queue.front());
        let oldest = first.map_or(0, |item| item.since.as_nanos().max(1));
        let part = first.map_or(0.0, |item| {
            let backlog = Backlog {
                bytes: counts.backlog_bytes.load(Relaxed),
                bytes_max: options.bytes_max,
                age_nanos: now.nanos_since(item.since),
                age_max: options.age_max.map(saturating_nanos),
                free: item.place.free_space(),
                free_min: options.free_min,
            };
            backlog.part()
        });
        let rate = rate_at(part, options.rate);
        if rate != self.rate {
            self.pace.hurry(now.plus_nanos(saturating_nanos(options.step)));
            self.rate = rate;
        }
        counts.rate_limit.store(rate.unwrap_or(0), Relaxed);
        self.shared.note(part, oldest);
    }

    /// Ends an item.
    pub(super) fn end(&mut self, item: Item, result: Result<DeletedHow, DeleteErrorCause>) {
        if let (Place::Trash(entry), Err(_)) = (&item.place, &result) {
            entry.give_up();
        }
        let target = self.forget(item);
        self.shared.end(&target, result);
    }

    /// Removes an item from the backlog. Returns its target.
    pub(super) fn forget(&mut self, item: Item) -> Arc<Target> {
        let counts = self.shared.counts();
        counts.backlog_files.fetch_sub(1, Relaxed);
        counts.backlog_bytes.fetch_sub(item.bytes, Relaxed);
        if matches!(item.place, Place::Held(_)) {
            self.held -= 1;
        }
        // The item's open files are closed here, before the result is published.
        item.target
    }
}
