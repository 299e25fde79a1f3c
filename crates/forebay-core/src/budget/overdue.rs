//! When the budget gives up a request that does not complete, and how long the disk stalls.
//!
//! Decision: `docs/decisions/0020-requests-that-hang.md`.

use super::pace::Pace;
use crate::sync::{AtomicU64, Ordering, get, set};
use crate::{DiskTime, GroupCounters, Time};

/// The patience in windows of time, after which a request is overdue. In the same time at most one window's
/// worth of requests is given up. With fewer, requests are given up that a healthy disk still completes. With
/// more, a disk that hangs blocks other requests for longer.
pub(super) const WINDOWS: u64 = 8;
/// The shortest patience while the disk does not hang, in nanoseconds (100 ms). Eight windows of a
/// fast disk are a few milliseconds, which a slow request of a healthy disk may exceed.
const OVERDUE_NANOS_MIN: u64 = 100_000_000;
/// The shortest patience while a part of the disk hangs, in nanoseconds (10 ms). Classes that use this part
/// fill each new window with requests that hang. At 100 ms the other classes had 3 % of their rate, 200 ms
/// after the hang.
const HANGING_NANOS_MIN: u64 = 10_000_000;
/// The time for which a part of the disk counts as hanging after a request was given up, in nanoseconds
/// (1 s). It ends early if a given-up request completes. With a shorter time, each further request that hangs is
/// waited for with the long patience again.
const HANGING_FOR_NANOS: u64 = 1_000_000_000;
/// A slow request raises the patience to this multiple of its time in the disk. The disk is slow then, and
/// giving up its requests would only send it more.
const RAISED_BY: u64 = 2;
/// The longest patience that slow requests cause, in nanoseconds (2 s). A permit may be held for long, which
/// says nothing about the disk.
const RAISED_NANOS_MAX: u64 = 2_000_000_000;
/// Each quicker request lowers a raised patience by one part in this many of the excess. With a smaller
/// number, the patience falls too soon, and a slow disk is sent more. With a larger one, requests that hang
/// later are waited for longer.
const FALL_PART: u64 = 16;
/// The time between two requests that are given up while the disk is silent, in nanoseconds (10 ms). The
/// request that takes the place of one probes whether the disk answers again. A shorter time fills a silent
/// disk with probes; a longer one notices later that it answers.
const PROBE_NANOS: u64 = 10_000_000;
/// The disk is silent once nothing has completed for one part in this many of the usual patience. So it
/// counts as silent before its remaining requests become overdue.
const SILENT_PART: u64 = 2;

/// The least time between two updates of the latest completion, in nanoseconds (0.1 ms). All shards write it,
/// so an update for each request would cost each of them a cache miss. It is a thousandth of the shortest
/// usual patience, so silence is still measured well.
const NOTED_NANOS: u64 = 100_000;

/// Decides which requests in flight may leave the window before they complete. So forgotten permits and a
/// disk that hangs do not block other requests forever.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    given_up: Pace,
    probe_after: AtomicU64,
    completed_at: AtomicU64,
    /// The time of the first completion after a silence.
    answers_since: AtomicU64,
    /// The time until which the disk, or a part of it, counts as hanging.
    hanging_until: AtomicU64,
    /// The patience that slow requests have caused, in nanoseconds; zero if there were none.
    raised_nanos: AtomicU64,
    stalls: Stalls,
}

impl Overdue {
    /// Whether a request may be overdue after this time in the disk: a cheap first check.
    pub(crate) fn is_possible(in_disk_nanos: u64) -> bool {
        in_disk_nanos >= HANGING_NANOS_MIN
    }

    /// Whether the disk, or a part of it, counts as hanging.
    pub(crate) fn hangs(&self, now: Time) -> bool {
        now.as_nanos() < self.hanging_until.load(Ordering::Relaxed)
    }

    /// The time in the disk after which a request is overdue, in nanoseconds.
    pub(crate) fn patience_nanos(&self, now: Time, window: DiskTime) -> u64 {
        let least = if self.hangs(now) { HANGING_NANOS_MIN } else { OVERDUE_NANOS_MIN };
        windows_nanos(window).max(least).max(self.raised_nanos.load(Ordering::Relaxed))
    }

    /// Notes that a request completed after `in_disk_nanos`. Returns the time of the completion before it if
    /// [`Overdue::learn`] must be called with it.
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

    /// Learns from a completion, the first since `before`. Returns the length of the stall that it ended, in
    /// nanoseconds; zero if it ended none.
    pub(crate) fn learn(
        &self,
        now: Time,
        window: DiskTime,
        in_disk_nanos: u64,
        before: Time,
    ) -> u64 {
        let mut stalled = 0;
        if now.nanos_since(before) >= silence_nanos(window) {
            self.answers_since.store(now.as_nanos(), Ordering::Relaxed);
            stalled = self.stalls.end(now);
        }
        let raised = self.raised_nanos.load(Ordering::Relaxed);
        let wanted = in_disk_nanos.saturating_mul(RAISED_BY).min(RAISED_NANOS_MAX);
        let next =
            if wanted >= raised { wanted } else { raised - (raised - wanted).div_ceil(FALL_PART) };
        let next = if next > usual_patience_nanos(window) { next } else { 0 };
        if next != raised {
            self.raised_nanos.store(next, Ordering::Relaxed);
        }
        stalled
    }

    /// The length of the present stall at `now`, in nanoseconds; `None` if there is none.
    pub(crate) fn stalled_nanos(&self, now: Time) -> Option<u64> {
        self.stalls.present_nanos(now, self.completed_at())
    }

    /// Adds the stalls until `now` to `counters`.
    pub(crate) fn add_stalls_to(&self, counters: &mut GroupCounters, now: Time) {
        self.stalls.add_to(counters, now, self.completed_at());
    }

    fn completed_at(&self) -> Time {
        Time::from_nanos(self.completed_at.load(Ordering::Relaxed))
    }

    /// A request that was given up has completed, so the disk does not hang.
    pub(crate) fn returned_late(&self) {
        self.hanging_until.store(0, Ordering::Relaxed);
    }

    /// Gives up an overdue request if that is allowed now. Returns the disk time that others lost by it,
    /// which is zero while the disk is silent. The error is the time to try again.
    pub(crate) fn give_up(
        &self,
        now: Time,
        window: DiskTime,
        request: GivenUp,
    ) -> Result<DiskTime, Time> {
        let completed_at = self.completed_at();
        let quiet = now.nanos_since(completed_at);
        let silent = silence_nanos(window);
        if quiet < silent.min(self.patience_nanos(now, window)) {
            self.give_up_some(now, window, request.cost)?;
        } else {
            self.give_up_probe(now)?;
        }
        let until = now.plus_nanos(HANGING_FOR_NANOS).as_nanos();
        self.hanging_until.store(until, Ordering::Relaxed);
        if quiet < silent {
            let in_disk_nanos = now.nanos_since(request.dispatched_at);
            return Ok(occupancy_cost(in_disk_nanos, request.cost, window));
        }
        self.stalls.note(now, completed_at, request, usual_patience_nanos(window));
        Ok(DiskTime::ZERO)
    }

    /// While the disk answers, at most one window's worth of requests is given up at a time. Right after a
    /// silence none is: the disk may still complete the requests that it had.
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

    /// While the disk is silent, one request is given up in each [`PROBE_NANOS`].
    fn give_up_probe(&self, now: Time) -> Result<(), Time> {
        let probe_after = self.probe_after.load(Ordering::Relaxed);
        let next = now.plus_nanos(PROBE_NANOS).as_nanos();
        let order = Ordering::Relaxed;
        let won = now.as_nanos() >= probe_after
            && self.probe_after.compare_exchange(probe_after, next, order, order).is_ok();
        if won { Ok(()) } else { Err(Time::from_nanos(probe_after).max(now.plus_nanos(1))) }
    }
}

/// The disk time that others lost by a request of `cost` while it was in the window for `in_disk_nanos`, of
/// which at most the usual patience counts. Its class is charged for it. So others get their share, however
/// often a class fills the window with requests that hang.
fn occupancy_cost(in_disk_nanos: u64, cost: DiskTime, window: DiskTime) -> DiskTime {
    let kept = DiskTime::from_nanos(in_disk_nanos.min(usual_patience_nanos(window)));
    part_of(kept, cost.min(window), window)
}

/// The patience with a disk that is neither slow nor hangs, in nanoseconds.
fn usual_patience_nanos(window: DiskTime) -> u64 {
    windows_nanos(window).max(OVERDUE_NANOS_MIN)
}

/// The time without a completion after which the disk counts as silent, in nanoseconds.
fn silence_nanos(window: DiskTime) -> u64 {
    usual_patience_nanos(window) / SILENT_PART
}

fn windows_nanos(window: DiskTime) -> u64 {
    window.as_nanos_ceil().saturating_mul(WINDOWS)
}

/// `time * cost / window`, rounded up.
fn part_of(time: DiskTime, cost: DiskTime, window: DiskTime) -> DiskTime {
    let part = u128::from(cost.units()) * u128::from(time.units());
    let part = part.div_ceil(u128::from(window.units().max(1)));
    DiskTime::from_units(u64::try_from(part).unwrap_or(u64::MAX))
}

/// The longest silence, without the cost of the request, that is not yet a stall, in nanoseconds (2 s). It
/// binds where eight windows are longer, so that a large window hides no stall.
const ALLOWED_NANOS_MAX: u64 = 2_000_000_000;

/// A request that is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp {
    pub(crate) dispatched_at: Time,
    pub(crate) cost: DiskTime,
    /// Whether it is a permit, whose holder decides when it ends.
    pub(crate) is_permit: bool,
}

/// Counts stalls. A stall is noted when a request becomes overdue while nothing completes, and ends with the
/// next completion. So usual requests cost nothing.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// When the present silence began, in nanoseconds; zero while the disk answers.
    since: AtomicU64,
    /// The time from which that silence is a stall.
    counts_at: AtomicU64,
    /// When the first permit was given up in the latest silence that had one, in nanoseconds.
    permit_given_up_at: AtomicU64,
    /// Requests given up during the present silence.
    overdue: AtomicU64,
    count: AtomicU64,
    nanos: AtomicU64,
    longest_nanos: AtomicU64,
    overdue_in_all: AtomicU64,
}

impl Stalls {
    /// Notes that `request` is given up at `now`. Nothing has completed since `completed_at`. A healthy disk
    /// answers within `allowed_nanos`.
    pub(super) fn note(&self, now: Time, completed_at: Time, request: GivenUp, allowed_nanos: u64) {
        let noted = Time::from_nanos(get(&self.since));
        if noted == Time::ZERO || completed_at > noted {
            if !self.shows_silence(now, completed_at, request) {
                return;
            }
            let since = completed_at.max(request.dispatched_at);
            let allowed = allowed_nanos.min(ALLOWED_NANOS_MAX);
            let counts_at = since.plus_nanos(allowed).plus_nanos(request.cost.as_nanos_ceil());
            set(&self.counts_at, counts_at.as_nanos());
            set(&self.overdue, 0);
            set(&self.since, since.as_nanos().max(1));
        }
        self.overdue.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether `request` is a sign that the disk is silent. A permit may be held while its holder does other
    /// work. So it is a sign only if it was granted after another permit was given up in the same silence. If
    /// the disk answered, the I/O of that permit would have ended the silence.
    fn shows_silence(&self, now: Time, completed_at: Time, request: GivenUp) -> bool {
        if !request.is_permit {
            return true;
        }
        let first = Time::from_nanos(get(&self.permit_given_up_at));
        if first > completed_at {
            return request.dispatched_at >= first;
        }
        set(&self.permit_given_up_at, now.as_nanos());
        false
    }

    /// Notes that the disk answers again. Returns the length of the stall in nanoseconds; zero if there was
    /// none.
    pub(super) fn end(&self, now: Time) -> u64 {
        // if several shards see the end, one of them counts it
        let Some(nanos) = self.length(self.since.swap(0, Ordering::Relaxed), now) else {
            return 0;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
        self.overdue_in_all.fetch_add(get(&self.overdue), Ordering::Relaxed);
        nanos
    }

    /// The length of the present stall at `now`, in nanoseconds; `None` if there is none.
    pub(super) fn present_nanos(&self, now: Time, completed_at: Time) -> Option<u64> {
        let since = get(&self.since);
        self.length(since, now).filter(|_| completed_at.as_nanos() <= since)
    }

    fn length(&self, since: u64, now: Time) -> Option<u64> {
        let is_stall = since > 0 && now.as_nanos() >= get(&self.counts_at);
        is_stall.then(|| now.nanos_since(Time::from_nanos(since)))
    }

    /// Writes the stalls until `now` into `counters`, including one that lasts.
    pub(super) fn add_to(&self, counters: &mut GroupCounters, now: Time, completed_at: Time) {
        counters.stalls = get(&self.count);
        counters.stalled_nanos = get(&self.nanos);
        counters.stall_nanos_max = get(&self.longest_nanos);
        counters.stall_overdue = get(&self.overdue_in_all);
        if let Some(nanos) = self.present_nanos(now, completed_at) {
            counters.stalls = counters.stalls.wrapping_add(1);
            counters.stalled_nanos = counters.stalled_nanos.wrapping_add(nanos);
            counters.stall_nanos_max = counters.stall_nanos_max.max(nanos);
            counters.stall_overdue = counters.stall_overdue.wrapping_add(get(&self.overdue));
            counters.waited_nanos = counters.waited_nanos.wrapping_add(nanos);
        }
    }
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
        let overdue = Overdue::default();
        assert_eq!(given_up(&overdue, 1_000, 1_001, true), 15);
        let more = given_up(&overdue, 1_001, 2_001, true);
        assert!((1249..=1251).contains(&more), "{more} in a second");
    }

    #[test]
    fn one_probe_per_10_ms_while_nothing_completes() {
        let overdue = Overdue::default();
        assert_eq!(given_up(&overdue, 1_000, 1_001, false), 1);
        assert_eq!(given_up(&overdue, 1_001, 2_001, false), 100);
        let retry = overdue
            .give_up(Time::from_nanos(2_000_500_000), WINDOW, request(Time::ZERO))
            .unwrap_err();
        assert_eq!(retry, Time::from_nanos(2_010_000_000));
    }

    #[test]
    fn patience_is_eight_windows_but_at_least_100_ms() {
        let (overdue, now) = (Overdue::default(), Time::from_nanos(1_000_000_000));
        assert_eq!(overdue.patience_nanos(now, WINDOW), 100_000_000);
        let slow = DiskTime::from_nanos(20_000_000);
        assert_eq!(overdue.patience_nanos(now, slow), 160_000_000);
    }

    #[test]
    fn patience_is_eight_windows_for_a_second_after_something_was_given_up() {
        let (overdue, now) = (Overdue::default(), Time::from_nanos(1_000_000_000));
        overdue.completed(now, 100_000);
        assert!(overdue.give_up(now, WINDOW, request(now)).is_ok());
        let at = |ms: u64| now.plus_nanos(ms * 1_000_000);
        assert_eq!(overdue.patience_nanos(at(999), WINDOW), 12_000_000);
        assert_eq!(overdue.patience_nanos(at(999), COST), 10_000_000);
        assert_eq!(overdue.patience_nanos(at(1_000), WINDOW), 100_000_000);
        overdue.returned_late();
        assert_eq!(overdue.patience_nanos(at(0), WINDOW), 100_000_000);
    }

    /// Completes `count` requests, one in each millisecond, each after `in_disk_ms` in the disk.
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
        let (overdue, now) = (Overdue::default(), Time::from_nanos(2_000_000_000));
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
        let overdue = Overdue::default();
        assert_eq!(given_up(&overdue, 1_000, 1_001, false), 1);
        answer(&overdue, 1_001, 1, 40);
        assert_eq!(given_up(&overdue, 1_001, 1_013, true), 0);
        assert_eq!(given_up(&overdue, 1_013, 1_014, true), 15);
    }

    #[test]
    fn a_request_kept_from_others_what_part_of_the_window_it_was() {
        let kept = |nanos, cost| occupancy_cost(nanos, cost, WINDOW);
        assert_eq!(kept(30_000_000, COST), DiskTime::from_nanos(2_000_000));
        let large = DiskTime::from_nanos(5_000_000);
        assert_eq!(kept(30_000_000, large), DiskTime::from_nanos(30_000_000));
        assert_eq!(kept(9_000_000_000, large), DiskTime::from_nanos(100_000_000));
    }
}

#[cfg(test)]
mod stalls_tests {
    use super::*;

    const ALLOWED_NANOS: u64 = 100_000_000;
    const COST: DiskTime = DiskTime::from_nanos(100_000);

    fn ms(at: u64) -> Time {
        Time::from_nanos(at * 1_000_000)
    }

    /// A request that is no permit, dispatched at this millisecond.
    fn request(dispatched_at: u64) -> GivenUp {
        GivenUp { dispatched_at: ms(dispatched_at), cost: COST, is_permit: false }
    }

    fn permit(dispatched_at: u64) -> GivenUp {
        GivenUp { is_permit: true, ..request(dispatched_at) }
    }

    fn counters(stalls: &Stalls, now: Time) -> GroupCounters {
        let mut counters = GroupCounters::default();
        stalls.add_to(&mut counters, now, ms(1_000));
        counters
    }

    #[test]
    fn a_silence_is_a_stall_once_it_is_as_long_as_requests_may_take() {
        let stalls = Stalls::default();
        stalls.note(ms(1_090), ms(1_000), request(990), ALLOWED_NANOS);
        assert_eq!(counters(&stalls, ms(1_100)), GroupCounters::default());
        let lasting = counters(&stalls, ms(1_101));
        assert_eq!((lasting.stalls, lasting.stall_overdue), (1, 1));
        assert_eq!([lasting.stalled_nanos, lasting.waited_nanos], [101_000_000; 2]);
        stalls.note(ms(1_150), ms(1_000), request(1_050), ALLOWED_NANOS);
        assert_eq!((stalls.end(ms(1_300)), stalls.end(ms(1_300))), (300_000_000, 0));
        let ended = counters(&stalls, ms(9_000));
        assert_eq!((ended.stalls, ended.stall_overdue), (1, 2));
        assert_eq!([ended.stalled_nanos, ended.stall_nanos_max], [300_000_000; 2]);
        assert_eq!(ended.waited_nanos, 0, "what is over is counted with its period");
    }

    #[test]
    fn a_single_request_that_costs_much_is_no_stall() {
        let stalls = Stalls::default();
        let whole = DiskTime::from_nanos(5_000_000_000);
        let request = GivenUp { cost: whole, ..request(1_000) };
        stalls.note(ms(1_100), ms(1_000), request, ALLOWED_NANOS);
        assert_eq!(counters(&stalls, ms(6_000)).stalls, 0);
        assert_eq!(stalls.end(ms(6_000)), 0);
    }

    #[test]
    fn a_silence_begins_when_the_request_went_to_an_idle_disk() {
        let stalls = Stalls::default();
        stalls.note(ms(5_100), ms(1_000), request(5_000), ALLOWED_NANOS);
        assert_eq!(stalls.end(ms(5_500)), 500_000_000);
    }

    #[test]
    fn an_end_that_a_late_note_missed_does_not_last() {
        let stalls = Stalls::default();
        stalls.note(ms(1_100), ms(1_000), request(1_000), ALLOWED_NANOS);
        assert_eq!(stalls.present_nanos(ms(9_000), ms(1_001)), None);
        stalls.note(ms(8_100), ms(8_000), request(8_000), ALLOWED_NANOS);
        assert_eq!(stalls.end(ms(8_500)), 500_000_000);
    }

    #[test]
    fn permits_that_were_granted_before_the_first_was_given_up_are_no_stall() {
        let stalls = Stalls::default();
        for dispatched_at in [990, 990, 1_000, 1_050] {
            stalls.note(ms(1_200), ms(1_000), permit(dispatched_at), ALLOWED_NANOS);
        }
        assert_eq!(counters(&stalls, ms(60_000)), GroupCounters::default());
        assert_eq!(stalls.end(ms(60_000)), 0);
    }

    #[test]
    fn a_permit_that_was_granted_in_the_silence_and_is_given_up_too_shows_a_stall() {
        let stalls = Stalls::default();
        stalls.note(ms(1_100), ms(1_000), permit(1_000), ALLOWED_NANOS);
        stalls.note(ms(1_120), ms(1_000), permit(1_100), ALLOWED_NANOS);
        assert_eq!(stalls.end(ms(7_100)), 6_000_000_000);
        // that silence is over, and says nothing of the next one
        stalls.note(ms(8_100), ms(8_000), permit(8_000), ALLOWED_NANOS);
        assert_eq!(stalls.end(ms(9_000)), 0);
    }

    #[test]
    fn a_stall_begins_with_the_hanging_request_not_with_a_held_permit() {
        let stalls = Stalls::default();
        stalls.note(ms(1_100), ms(1_000), permit(1_000), ALLOWED_NANOS);
        stalls.note(ms(60_100), ms(1_000), request(60_000), ALLOWED_NANOS);
        assert_eq!(stalls.end(ms(61_000)), 1_000_000_000);
    }
}
