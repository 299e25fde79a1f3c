//! When the budget stops waiting for a request that does not come back.

use super::pace::Pace;
use super::stops::{GivenUp, Stops};
use crate::sync::{AtomicU64, Ordering};
use crate::{DiskTime, GroupCounters, Time};

/// A request is overdue after this many windows of time; within as much, at most one window's worth
/// of requests is given up. With fewer, requests are given up that a healthy disk still answers;
/// with more, a disk that hangs stops others for longer.
pub(super) const WINDOWS: u64 = 8;
/// The shortest patience while the disk does not hang, in nanoseconds (100 ms). Eight windows of a
/// fast disk are a few milliseconds, which a slow request of a healthy disk may exceed.
const OVERDUE_NANOS_MIN: u64 = 100_000_000;
/// The shortest patience while a part of the disk hangs, in nanoseconds (10 ms). Classes that work
/// there fill each new window with requests that hang. At 100 ms the others had 3 % of their rate,
/// 200 ms after the hang.
const HANGING_NANOS_MIN: u64 = 10_000_000;
/// The time for which a part of the disk is taken to hang after a request was given up, in
/// nanoseconds (1 s), unless one that was given up comes back. After a shorter time each further
/// request that hangs is waited for with the long patience again.
const HANGING_FOR_NANOS: u64 = 1_000_000_000;
/// A request that takes long raises the patience to this multiple of its time. The disk is slow
/// then, and giving up its requests would only send it more.
const RAISED_BY: u64 = 2;
/// The longest patience that slow requests raise it to, in nanoseconds (2 s). A permit may just be
/// held for long, which says nothing of the disk.
const RAISED_NANOS_MAX: u64 = 2_000_000_000;
/// Each quicker answer lowers a raised patience by one part in this many of the excess. A smaller
/// number forgets too soon that the disk is slow, and sends it more; a larger one waits for longer
/// where it hangs later.
const FALL_PART: u64 = 16;
/// While nothing completes at all, one request is given up in this time, in nanoseconds (10 ms).
/// The one that takes its place probes whether the disk is back. A shorter time fills a silent disk
/// with probes; a longer one finds later that it is back.
const PROBE_NANOS: u64 = 10_000_000;
/// Nothing completes at all where nothing has for one part in this many of the patience. The disk
/// counts as silent before requests become overdue that it had when it fell silent.
const SILENT_PART: u64 = 2;

/// The time between two notes that something completed, in nanoseconds (0.1 ms). All shards write
/// it, so a note for each request would cost each of them a cache miss. It is a thousandth of the
/// shortest usual patience, so that silence is still measured well.
const NOTED_NANOS: u64 = 100_000;

/// Decides which unfinished requests may leave the window uncompleted, so that
/// forgotten permits and a disk that hangs do not stop everybody for ever.
#[derive(Debug)]
pub(crate) struct Overdue {
    given_up: Pace,
    probe_after: AtomicU64,
    completed_at: AtomicU64,
    /// When the disk answered again after it had been silent.
    answers_since: AtomicU64,
    /// Until when the disk, or a part of it, is taken to hang.
    hanging_until: AtomicU64,
    /// What slow answers have raised the patience to; zero in good times.
    raised_nanos: AtomicU64,
    stops: Stops,
}

/// What the disk did meanwhile, when it kept a request for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskState {
    /// Nothing: it kept nobody from anything that there was to have.
    Stalled,
    /// It served others.
    Responding,
}

impl Overdue {
    pub(crate) fn new() -> Self {
        Self {
            given_up: Pace::new(false),
            probe_after: AtomicU64::new(0),
            completed_at: AtomicU64::new(0),
            answers_since: AtomicU64::new(0),
            hanging_until: AtomicU64::new(0),
            raised_nanos: AtomicU64::new(0),
            stops: Stops::default(),
        }
    }

    /// Whether a request may be overdue after this time in the disk: a cheap
    /// first look.
    pub(crate) fn is_possible(in_disk_nanos: u64) -> bool {
        in_disk_nanos >= HANGING_NANOS_MIN
    }

    /// Whether the disk, or a part of it, is taken to hang.
    pub(crate) fn hangs(&self, now: Time) -> bool {
        now.as_nanos() < self.hanging_until.load(Ordering::Relaxed)
    }

    /// How long a request may be in the disk before it is overdue.
    pub(crate) fn patience_nanos(&self, now: Time, window: DiskTime) -> u64 {
        let least = if self.hangs(now) { HANGING_NANOS_MIN } else { OVERDUE_NANOS_MIN };
        windows_nanos(window).max(least).max(self.raised_nanos.load(Ordering::Relaxed))
    }

    /// A request has completed after `in_disk_nanos`; whether there is more to
    /// learn from that, with [`Overdue::learn`].
    pub(crate) fn completed(&self, now: Time, in_disk_nanos: u64) -> Option<Time> {
        let before = Time::from_nanos(self.completed_at.load(Ordering::Relaxed));
        if now.nanos_since(before) >= NOTED_NANOS {
            self.completed_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        let is_usual = in_disk_nanos < OVERDUE_NANOS_MIN / RAISED_BY
            && now.nanos_since(before) < OVERDUE_NANOS_MIN / SILENT_PART
            && self.raised_nanos.load(Ordering::Relaxed) == 0;
        (!is_usual).then_some(before)
    }

    /// Learns from a request that has completed, the first since `before`; for how long the disk
    /// had stood still until then, in nanoseconds.
    pub(crate) fn learn(
        &self,
        now: Time,
        window: DiskTime,
        in_disk_nanos: u64,
        before: Time,
    ) -> u64 {
        let mut stopped = 0;
        if now.nanos_since(before) >= service_horizon_nanos(window) {
            self.answers_since.store(now.as_nanos(), Ordering::Relaxed);
            stopped = self.stops.end(now);
        }
        let raised = self.raised_nanos.load(Ordering::Relaxed);
        let wanted = in_disk_nanos.saturating_mul(RAISED_BY).min(RAISED_NANOS_MAX);
        let next =
            if wanted >= raised { wanted } else { raised - (raised - wanted).div_ceil(FALL_PART) };
        let next = if next > usual_patience_nanos(window) { next } else { 0 };
        if next != raised {
            self.raised_nanos.store(next, Ordering::Relaxed);
        }
        stopped
    }

    /// For how long the disk has stood still `now`, in nanoseconds; `None` where it answers.
    pub(crate) fn stopped_nanos(&self, now: Time) -> Option<u64> {
        self.stops.present_nanos(now, self.completed_at())
    }

    /// Adds the stops until `now` to `counters`.
    pub(crate) fn add_stops_to(&self, counters: &mut GroupCounters, now: Time) {
        self.stops.add_to(counters, now, self.completed_at());
    }

    fn completed_at(&self) -> Time {
        Time::from_nanos(self.completed_at.load(Ordering::Relaxed))
    }

    /// A request that was given up has come back.
    pub(crate) fn returned_late(&self) {
        self.hanging_until.store(0, Ordering::Relaxed);
    }

    /// Whether an overdue request may leave the window now; if not, when to
    /// ask again.
    pub(crate) fn give_up(
        &self,
        now: Time,
        window: DiskTime,
        request: GivenUp,
    ) -> Result<DiskState, Time> {
        let completed_at = self.completed_at();
        let quiet = now.nanos_since(completed_at);
        let silent = service_horizon_nanos(window);
        if quiet < silent.min(self.patience_nanos(now, window)) {
            self.give_up_some(now, window, request.cost)?;
        } else {
            self.give_up_probe(now)?;
        }
        let until = now.plus_nanos(HANGING_FOR_NANOS).as_nanos();
        self.hanging_until.store(until, Ordering::Relaxed);
        if quiet < silent {
            return Ok(DiskState::Responding);
        }
        self.stops.note(now, completed_at, request, usual_patience_nanos(window));
        Ok(DiskState::Stalled)
    }

    /// The disk answers: at most one window's worth at a time. Right after it
    /// was silent it may still answer what it had.
    fn give_up_some(&self, now: Time, window: DiskTime, cost: DiskTime) -> Result<(), Time> {
        let burst = windows_nanos(window).max(HANGING_NANOS_MIN);
        let answers_since = Time::from_nanos(self.answers_since.load(Ordering::Relaxed));
        let answered = answers_since.plus_nanos(burst);
        if now < answered {
            return Err(answered);
        }
        let burst = DiskTime::from_nanos(burst);
        if self.given_up.try_take(now, burst, part_of(burst, cost, window)) {
            return Ok(());
        }
        Err(self.given_up.available_at(now, burst, DiskTime::from_units(1)))
    }

    /// Nothing has completed for a while: one request at a time.
    fn give_up_probe(&self, now: Time) -> Result<(), Time> {
        let probe_after = self.probe_after.load(Ordering::Relaxed);
        let next = now.plus_nanos(PROBE_NANOS).as_nanos();
        let won = now.as_nanos() >= probe_after
            && self
                .probe_after
                .compare_exchange(probe_after, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if won { Ok(()) } else { Err(Time::from_nanos(probe_after).max(now.plus_nanos(1))) }
    }

    /// Disk time that a request of `cost` has kept from others by being in the
    /// window for `in_disk_nanos`, at most the patience with a disk in good
    /// times. Its class pays for it: so others have their share however often
    /// a class fills the window with what hangs.
    pub(crate) fn occupancy_cost(in_disk_nanos: u64, cost: DiskTime, window: DiskTime) -> DiskTime {
        let kept = DiskTime::from_nanos(in_disk_nanos.min(usual_patience_nanos(window)));
        part_of(kept, cost.min(window), window)
    }
}

/// How long a request may be in a disk that is neither slow nor hangs.
fn usual_patience_nanos(window: DiskTime) -> u64 {
    windows_nanos(window).max(OVERDUE_NANOS_MIN)
}

fn service_horizon_nanos(window: DiskTime) -> u64 {
    usual_patience_nanos(window) / SILENT_PART
}

fn windows_nanos(window: DiskTime) -> u64 {
    window.as_nanos_ceil().saturating_mul(WINDOWS)
}

/// The part of `time` that `cost` is of `window`.
fn part_of(time: DiskTime, cost: DiskTime, window: DiskTime) -> DiskTime {
    let part = u128::from(cost.units()) * u128::from(time.units());
    let part = part.div_ceil(u128::from(window.units().max(1)));
    DiskTime::from_units(u64::try_from(part).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: DiskTime = DiskTime::from_nanos(1_500_000);
    const COST: DiskTime = DiskTime::from_nanos(100_000);

    fn request(dispatched_at: Time) -> GivenUp {
        GivenUp { dispatched_at, cost: COST, is_permit: false }
    }

    fn given_up(overdue: &Overdue, from_ms: u64, to_ms: u64, alive: bool) -> usize {
        let mut count = 0;
        for ms in from_ms..to_ms {
            let now = Time::from_nanos(ms * 1_000_000);
            if alive {
                overdue.completed(now, 100_000);
            }
            while overdue.give_up(now, WINDOW, request(now)).is_ok() {
                count += 1;
            }
        }
        count
    }

    #[test]
    fn at_most_one_window_per_8_windows_while_the_disk_answers() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, true), 15);
        let more = given_up(&overdue, 1_001, 2_001, true);
        assert!((1249..=1251).contains(&more), "{more} in a second");
    }

    #[test]
    fn one_probe_per_10_ms_while_nothing_completes() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, false), 1);
        assert_eq!(given_up(&overdue, 1_001, 2_001, false), 100);
        let retry = overdue
            .give_up(Time::from_nanos(2_000_500_000), WINDOW, request(Time::ZERO))
            .unwrap_err();
        assert_eq!(retry, Time::from_nanos(2_010_000_000));
    }

    #[test]
    fn patience_is_eight_windows_but_at_least_100_ms() {
        let (overdue, now) = (Overdue::new(), Time::from_nanos(1_000_000_000));
        assert_eq!(overdue.patience_nanos(now, WINDOW), 100_000_000);
        let slow = DiskTime::from_nanos(20_000_000);
        assert_eq!(overdue.patience_nanos(now, slow), 160_000_000);
    }

    #[test]
    fn patience_is_eight_windows_for_a_second_after_something_was_given_up() {
        let (overdue, now) = (Overdue::new(), Time::from_nanos(1_000_000_000));
        overdue.completed(now, 100_000);
        assert_eq!(overdue.give_up(now, WINDOW, request(now)), Ok(DiskState::Responding));
        let at = |ms: u64| now.plus_nanos(ms * 1_000_000);
        assert_eq!(overdue.patience_nanos(at(999), WINDOW), 12_000_000);
        assert_eq!(overdue.patience_nanos(at(999), COST), 10_000_000);
        assert_eq!(overdue.patience_nanos(at(1_000), WINDOW), 100_000_000);
        overdue.returned_late();
        assert_eq!(overdue.patience_nanos(at(0), WINDOW), 100_000_000);
    }

    /// Tells of one request after the other, `count` times.
    fn answer(overdue: &Overdue, from_ms: u64, count: u64, in_disk_ms: u64) {
        for ms in from_ms..from_ms + count {
            let now = Time::from_nanos(ms * 1_000_000);
            if let Some(before) = overdue.completed(now, in_disk_ms * 1_000_000) {
                overdue.learn(now, WINDOW, in_disk_ms * 1_000_000, before);
            }
        }
    }

    #[test]
    fn patience_is_twice_what_answers_take_and_falls_when_they_are_quick_again() {
        let (overdue, now) = (Overdue::new(), Time::from_nanos(2_000_000_000));
        let patience = || overdue.patience_nanos(now, WINDOW) / 1_000_000;
        answer(&overdue, 1_000, 10, 50);
        assert_eq!(patience(), 100);
        answer(&overdue, 1_010, 1, 300);
        assert_eq!(patience(), 600);
        answer(&overdue, 1_011, 1_000, 300);
        assert_eq!(patience(), 600);
        answer(&overdue, 1_011, 8, 1);
        assert!((350..400).contains(&patience()), "{}", patience());
        answer(&overdue, 1_019, 50, 1);
        assert_eq!(patience(), 100);
        answer(&overdue, 1_069, 1, 60_000);
        assert_eq!(patience(), 2_000);
    }

    #[test]
    fn a_disk_that_answers_again_may_answer_all_it_has() {
        let overdue = Overdue::new();
        assert_eq!(given_up(&overdue, 1_000, 1_001, false), 1);
        answer(&overdue, 1_001, 1, 40);
        assert_eq!(given_up(&overdue, 1_001, 1_013, true), 0);
        assert_eq!(given_up(&overdue, 1_013, 1_014, true), 15);
    }

    #[test]
    fn a_request_kept_from_others_what_part_of_the_window_it_was() {
        let kept = |nanos, cost| Overdue::occupancy_cost(nanos, cost, WINDOW);
        assert_eq!(kept(30_000_000, COST), DiskTime::from_nanos(2_000_000));
        let large = DiskTime::from_nanos(5_000_000);
        assert_eq!(kept(30_000_000, large), DiskTime::from_nanos(30_000_000));
        assert_eq!(kept(9_000_000_000, large), DiskTime::from_nanos(100_000_000));
    }
}
