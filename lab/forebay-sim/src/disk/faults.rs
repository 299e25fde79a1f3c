//! What goes wrong with a disk of any kind.

mod fault;
mod speed;

use std::collections::HashSet;
use std::time::Duration;

use forebay_core::{CostCurve, DiskRates, Time};
use forebay_load::Rng;

use super::servers::Due;
use super::{Command, Completion, MembersInFlight, SimDisk, Status};
use fault::moment;
pub use fault::{Fault, Range};
use speed::Speed;

/// A disk with faults.
pub(crate) struct Faulty {
    disk: Box<dyn SimDisk>,
    faults: Vec<Fault>,
    /// What the clock of `disk` shows.
    speed: Speed,
    /// Commands that are not begun yet, and when they will be.
    held: Vec<(Time, u64, Command)>,
    /// Commands that will fail.
    doomed: HashSet<u64>,
    /// Answers of `disk` that are late.
    late: Due,
    chance: Rng,
}

impl Faulty {
    pub(crate) fn new(disk: Box<dyn SimDisk>, faults: Vec<Fault>, seed: u64) -> Self {
        Self {
            disk,
            speed: Speed::new(&faults),
            faults,
            held: Vec::new(),
            doomed: HashSet::new(),
            late: Due::default(),
            chance: Rng::new(seed, &[1]),
        }
    }

    /// When a command may begin: not while its range hangs.
    fn begins(&self, now: Time, command: Command) -> Time {
        let mut begin = now;
        for fault in &self.faults {
            if let Fault::Hang { from, to, range: Some(range) } = fault
                && range.touches(command)
                && (moment(*from)..to.map_or(Time::MAX, moment)).contains(&now)
            {
                begin = begin.max(to.map_or(Time::MAX, moment));
            }
        }
        begin
    }

    fn fails(&self, command: Command) -> bool {
        self.faults.iter().any(|f| matches!(f, Fault::Error(range) if range.touches(command)))
    }

    fn begin(&mut self, now: Time, id: u64, command: Command) {
        if self.fails(command) {
            self.doomed.insert(id);
        }
        self.disk.submit(self.speed.inside(now), id, command);
    }

    /// Takes the disk's answers until `now`.
    fn collect(&mut self, now: Time) {
        while let Some(Completion { id, at, status }) =
            self.disk.poll_completion(self.speed.inside(now))
        {
            let status = if self.doomed.remove(&id) { Status::Failed } else { status };
            let at = self.speed.outside(at).unwrap_or(Time::MAX).plus_nanos(self.delay());
            self.late.push(Completion { id, at, status });
        }
    }

    fn delay(&mut self) -> u64 {
        let spreads = self.faults.iter().filter_map(|fault| match fault {
            Fault::Reorder { spread } => u64::try_from(spread.as_nanos()).ok(),
            _ => None,
        });
        let spread = spreads.max().unwrap_or(0);
        if spread == 0 { 0 } else { self.chance.below(spread) }
    }

    /// The next command to begin, unless it never does.
    fn next_held(&self) -> Option<(Time, usize)> {
        let begins = self.held.iter().enumerate().map(|(place, &(begin, ..))| (begin, place));
        begins.min().filter(|&(begin, _)| begin < Time::MAX)
    }

    /// Does what happens until `now`, in order.
    fn advance(&mut self, now: Time) {
        while let Some((begin, place)) = self.next_held().filter(|&(begin, _)| begin <= now) {
            self.collect(begin);
            let (_, id, command) = self.held.remove(place);
            self.begin(begin, id, command);
        }
        self.collect(now);
    }
}

impl SimDisk for Faulty {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.advance(now);
        let begin = self.begins(now, command);
        if begin > now {
            self.held.push((begin, id, command));
        } else {
            self.begin(now, id, command);
        }
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.late.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        let inside = self.disk.next_event().and_then(|at| self.speed.outside(at));
        let held = self.next_held().map(|(begin, _)| begin);
        [inside, held, self.late.next()].into_iter().flatten().min()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn seeks(&self) -> bool {
        self.disk.seeks()
    }

    fn flush(&self) -> Option<Duration> {
        self.disk.flush()
    }

    fn discards(&self) -> Option<CostCurve> {
        self.disk.discards()
    }

    fn members(&self, now: Time) -> MembersInFlight {
        self.disk.members(now)
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}
