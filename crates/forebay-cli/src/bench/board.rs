//! What the threads of a run see of each other.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use forebay::engine::EngineWaker;
use forebay_core::{DiskTime, ShardId};
use forebay_load::recorder::Recent;

/// Shared by the shards of a run and the thread that watches them.
#[derive(Debug)]
pub(super) struct Board {
    stopped: AtomicBool,
    /// Shards with something left to send.
    busy: AtomicU32,
    in_disk: AtomicU64,
    in_disk_max: AtomicU64,
    /// Disk time dispatched, by seat.
    consumption: Vec<AtomicU64>,
    /// What each job did since the last look.
    recent: Mutex<Vec<Option<Recent>>>,
    wakers: OnceLock<Wakers>,
}

/// The engines of a run.
#[derive(Debug)]
pub(super) struct Wakers {
    /// By seat.
    pub(super) engines: Vec<EngineWaker>,
    /// The seats by their places in each I/O group.
    pub(super) seats: Vec<Vec<usize>>,
}

impl Board {
    /// For so many shards that run, and so many jobs.
    pub(super) fn new(seats: usize, jobs: usize) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            busy: AtomicU32::new(seats as u32),
            in_disk: AtomicU64::new(0),
            in_disk_max: AtomicU64::new(0),
            consumption: (0..seats).map(|_| AtomicU64::new(0)).collect(),
            recent: Mutex::new(vec![None; jobs]),
            wakers: OnceLock::new(),
        }
    }

    /// Says who is to be woken.
    pub(super) fn introduce(&self, wakers: Wakers) {
        let _ = self.wakers.set(wakers);
    }

    /// Wakes the shard at this place of the I/O group of this lane.
    pub(super) fn wake(&self, lane: usize, place: ShardId) {
        let Some(wakers) = self.wakers.get() else { return };
        let seat = wakers.seats.get(lane).and_then(|seats| seats.get(place.index()));
        if let Some(engine) = seat.and_then(|&seat| wakers.engines.get(seat)) {
            engine.wake();
        }
    }

    /// Ends the run.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(wakers) = self.wakers.get() {
            wakers.engines.iter().for_each(EngineWaker::wake);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A shard has nothing left to send. The run ends with the last of them.
    pub(super) fn nothing_left(&self) {
        if self.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop();
        }
    }

    /// A shard sent `entered` requests to the disk after `left` had come back.
    pub(super) fn moved(&self, entered: u64, left: u64) {
        if entered != left {
            let change = entered.wrapping_sub(left);
            let before = self.in_disk.fetch_add(change, Ordering::Relaxed);
            self.in_disk_max.fetch_max(before.wrapping_add(change), Ordering::Relaxed);
        }
    }

    /// The most requests that were in the disk at once.
    pub(super) fn in_disk_max(&self) -> u64 {
        self.in_disk_max.load(Ordering::Relaxed)
    }

    /// The shard at `seat` has dispatched so much disk time.
    pub(super) fn consumed(&self, seat: usize, consumption: DiskTime) {
        if let Some(shown) = self.consumption.get(seat) {
            shown.store(consumption.units(), Ordering::Relaxed);
        }
    }

    /// What all shards have dispatched.
    pub(super) fn consumption(&self) -> DiskTime {
        let units = self.consumption.iter().map(|shown| shown.load(Ordering::Relaxed));
        DiskTime::from_units(units.sum())
    }

    /// Adds what the job with this index did.
    pub(super) fn add_recent(&self, job: usize, recent: &Recent) {
        match self.recent().get_mut(job) {
            Some(Some(sum)) => sum.merge(recent),
            Some(none) => *none = Some(recent.clone()),
            None => {}
        }
    }

    /// What each job did since the last call.
    pub(super) fn take_recent(&self) -> Vec<Option<Recent>> {
        self.recent().iter_mut().map(Option::take).collect()
    }

    fn recent(&self) -> MutexGuard<'_, Vec<Option<Recent>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
