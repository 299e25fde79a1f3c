//! Stops of the disk: spans in which requests are in the disk and none completes.

use crate::sync::{AtomicU64, Ordering, get, set};
use crate::{DiskTime, GroupCounters, Time};

/// The longest time that a disk is given to answer before its silence is a stop, in nanoseconds (2
/// s). It binds where eight windows are longer, so that a large window hides no stop.
const ALLOWED_NANOS_MAX: u64 = 2_000_000_000;

/// A request that the window no longer waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp {
    pub(crate) dispatched_at: Time,
    pub(crate) cost: DiskTime,
    /// Whether it is a permit, whose holder says when it ends.
    pub(crate) is_permit: bool,
}

/// Stops are noted when a request becomes overdue while nothing completes, and end with the next
/// completion. So nothing is counted on the way of a usual request.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// When the present silence began; zero while the disk answers.
    since: AtomicU64,
    /// From when on that silence is a stop.
    counts_at: AtomicU64,
    /// When a permit was first given up in the latest silence in which one was.
    permit_given_up_at: AtomicU64,
    /// Requests given up during the present silence.
    overdue: AtomicU64,
    count: AtomicU64,
    nanos: AtomicU64,
    longest_nanos: AtomicU64,
    overdue_in_all: AtomicU64,
}

impl Stops {
    /// `request` is given up at `now`. Nothing has completed since `completed_at`. Within
    /// `allowed_nanos` a disk in good times answers.
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

    /// Whether `request` is a sign that the disk is silent. A permit may be held while its holder
    /// does other work. So it is a sign only if it was granted after another permit was given up
    /// in the same silence: on a disk that answers, its I/O would have ended the silence.
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

    /// The disk answers again; how long it stood still, in nanoseconds, zero if that was no stop.
    pub(super) fn end(&self, now: Time) -> u64 {
        // of several shards that see the end one counts it
        let Some(nanos) = self.length(self.since.swap(0, Ordering::Relaxed), now) else {
            return 0;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
        self.overdue_in_all.fetch_add(get(&self.overdue), Ordering::Relaxed);
        nanos
    }

    /// How long the disk has stood still `now`; `None` where it does not.
    pub(super) fn present_nanos(&self, now: Time, completed_at: Time) -> Option<u64> {
        let since = get(&self.since);
        self.length(since, now).filter(|_| completed_at.as_nanos() <= since)
    }

    fn length(&self, since: u64, now: Time) -> Option<u64> {
        let is_stop = since > 0 && now.as_nanos() >= get(&self.counts_at);
        is_stop.then(|| now.nanos_since(Time::from_nanos(since)))
    }

    /// Adds what was counted until `now`, with the stop that lasts, to `counters`.
    pub(super) fn add_to(&self, counters: &mut GroupCounters, now: Time, completed_at: Time) {
        counters.stops = get(&self.count);
        counters.stopped_nanos = get(&self.nanos);
        counters.stop_nanos_max = get(&self.longest_nanos);
        counters.stop_overdue = get(&self.overdue_in_all);
        if let Some(nanos) = self.present_nanos(now, completed_at) {
            counters.stops = counters.stops.wrapping_add(1);
            counters.stopped_nanos = counters.stopped_nanos.wrapping_add(nanos);
            counters.stop_nanos_max = counters.stop_nanos_max.max(nanos);
            counters.stop_overdue = counters.stop_overdue.wrapping_add(get(&self.overdue));
            counters.waited_nanos = counters.waited_nanos.wrapping_add(nanos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED_NANOS: u64 = 100_000_000;
    const COST: DiskTime = DiskTime::from_nanos(100_000);

    fn ms(at: u64) -> Time {
        Time::from_nanos(at * 1_000_000)
    }

    /// A request of the library's own, which went `dispatched_at` and costs `COST`.
    fn request(dispatched_at: u64) -> GivenUp {
        GivenUp { dispatched_at: ms(dispatched_at), cost: COST, is_permit: false }
    }

    fn permit(dispatched_at: u64) -> GivenUp {
        GivenUp { is_permit: true, ..request(dispatched_at) }
    }

    fn counters(stops: &Stops, now: Time) -> GroupCounters {
        let mut counters = GroupCounters::default();
        stops.add_to(&mut counters, now, ms(1_000));
        counters
    }

    #[test]
    fn a_silence_is_a_stop_once_it_is_as_long_as_requests_may_take() {
        let stops = Stops::default();
        stops.note(ms(1_090), ms(1_000), request(990), ALLOWED_NANOS);
        assert_eq!(counters(&stops, ms(1_100)), GroupCounters::default());
        let lasting = counters(&stops, ms(1_101));
        assert_eq!((lasting.stops, lasting.stop_overdue), (1, 1));
        assert_eq!([lasting.stopped_nanos, lasting.waited_nanos], [101_000_000; 2]);
        stops.note(ms(1_150), ms(1_000), request(1_050), ALLOWED_NANOS);
        assert_eq!((stops.end(ms(1_300)), stops.end(ms(1_300))), (300_000_000, 0));
        let ended = counters(&stops, ms(9_000));
        assert_eq!((ended.stops, ended.stop_overdue), (1, 2));
        assert_eq!([ended.stopped_nanos, ended.stop_nanos_max], [300_000_000; 2]);
        assert_eq!(ended.waited_nanos, 0, "what is over is counted with its period");
    }

    #[test]
    fn a_single_request_that_costs_much_is_no_stop() {
        let stops = Stops::default();
        let whole = DiskTime::from_nanos(5_000_000_000);
        let request = GivenUp { cost: whole, ..request(1_000) };
        stops.note(ms(1_100), ms(1_000), request, ALLOWED_NANOS);
        assert_eq!(counters(&stops, ms(6_000)).stops, 0);
        assert_eq!(stops.end(ms(6_000)), 0);
    }

    #[test]
    fn a_silence_begins_when_the_request_went_to_an_idle_disk() {
        let stops = Stops::default();
        stops.note(ms(5_100), ms(1_000), request(5_000), ALLOWED_NANOS);
        assert_eq!(stops.end(ms(5_500)), 500_000_000);
    }

    #[test]
    fn an_end_that_a_late_note_missed_does_not_last() {
        let stops = Stops::default();
        stops.note(ms(1_100), ms(1_000), request(1_000), ALLOWED_NANOS);
        assert_eq!(stops.present_nanos(ms(9_000), ms(1_001)), None);
        stops.note(ms(8_100), ms(8_000), request(8_000), ALLOWED_NANOS);
        assert_eq!(stops.end(ms(8_500)), 500_000_000);
    }

    #[test]
    fn permits_that_were_granted_before_the_first_was_given_up_are_no_stop() {
        let stops = Stops::default();
        for dispatched_at in [990, 990, 1_000, 1_050] {
            stops.note(ms(1_200), ms(1_000), permit(dispatched_at), ALLOWED_NANOS);
        }
        assert_eq!(counters(&stops, ms(60_000)), GroupCounters::default());
        assert_eq!(stops.end(ms(60_000)), 0);
    }

    #[test]
    fn a_permit_that_was_granted_in_the_silence_and_is_given_up_too_shows_a_stop() {
        let stops = Stops::default();
        stops.note(ms(1_100), ms(1_000), permit(1_000), ALLOWED_NANOS);
        stops.note(ms(1_120), ms(1_000), permit(1_100), ALLOWED_NANOS);
        assert_eq!(stops.end(ms(7_100)), 6_000_000_000);
        // that silence is over, and says nothing of the next one
        stops.note(ms(8_100), ms(8_000), permit(8_000), ALLOWED_NANOS);
        assert_eq!(stops.end(ms(9_000)), 0);
    }

    #[test]
    fn a_request_that_hangs_beside_a_held_permit_is_a_stop_from_its_own_start() {
        let stops = Stops::default();
        stops.note(ms(1_100), ms(1_000), permit(1_000), ALLOWED_NANOS);
        stops.note(ms(60_100), ms(1_000), request(60_000), ALLOWED_NANOS);
        assert_eq!(stops.end(ms(61_000)), 1_000_000_000);
    }
}
