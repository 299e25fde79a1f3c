//! Disks that seek: a sequential request is charged for its bytes only.

use forebay_core::{
    Access, ClassId, CostCurve, DiskModel, DiskTime, IoGroup, IoQueue, Op, Outcome, Policy, Ticket,
    Time,
};

use crate::world::{MILLI, SECOND, by_figures, model};

const LEN: u64 = 128 << 10;
const SEEK: u64 = 5 * MILLI;
/// The disk time of 128 KiB at 100 MB/s, in nanoseconds.
const BYTES: u64 = 1_310_720;

fn hard_disk() -> DiskModel {
    let bytes = || CostCurve::transfer(100_000_000).unwrap();
    model(200, 100_000_000).with_sequential(bytes(), bytes())
}

struct Bed {
    queues: Vec<IoQueue>,
    class: ClassId,
    now: u64,
}

impl Bed {
    fn new(shards: usize) -> Self {
        Self::with(shards, hard_disk())
    }

    fn with(shards: usize, model: DiskModel) -> Self {
        let mut config = by_figures(model, Policy::pace_window());
        config.shards_max = shards;
        let group = IoGroup::new(config);
        let class = group.add_class(None, 100).unwrap();
        let queues = (0..shards).map(|_| group.join().unwrap()).collect();
        Self { queues, class, now: SECOND }
    }

    /// Dispatches a request once the budget is open. Returns its ticket and its charge in nanoseconds.
    fn goes(&mut self, shard: usize, access: impl Into<Access>, len: u64) -> (Ticket, u64) {
        let queue = &mut self.queues[shard];
        queue.enqueue(Time::from_nanos(self.now), self.class, access, len).unwrap();
        loop {
            self.now += MILLI;
            if let Some(ticket) = queue.poll_dispatch(Time::from_nanos(self.now)) {
                return (ticket, queue.cost_of(ticket).unwrap().as_nanos_ceil());
            }
        }
    }

    fn ends(&mut self, shard: usize, ticket: Ticket) {
        let now = Time::from_nanos(self.now);
        self.queues[shard].complete(now, ticket, Outcome::Done).unwrap();
    }

    /// The charge of a request that is dispatched and completed before the next, in nanoseconds.
    fn charged(&mut self, access: impl Into<Access>, len: u64) -> u64 {
        self.charged_on(0, access, len)
    }

    fn charged_on(&mut self, shard: usize, access: impl Into<Access>, len: u64) -> u64 {
        let (ticket, charged) = self.goes(shard, access, len);
        self.ends(shard, ticket);
        charged
    }
}

fn nth(n: u64, file: u64) -> Access {
    Op::Write.at(n * LEN).of(file)
}

#[test]
fn a_stream_that_is_alone_for_a_window_pays_its_bytes() {
    for depth in [1, 2, 5] {
        let mut bed = Bed::new(1);
        let mut in_disk = std::collections::VecDeque::new();
        for n in 0..200 {
            if in_disk.len() == depth {
                let oldest = in_disk.pop_front().unwrap();
                bed.ends(0, oldest);
            }
            let (ticket, charged) = bed.goes(0, nth(n, 1), LEN);
            assert!(charged == BYTES || n < 10, "{depth} {n}: {charged}");
            in_disk.push_back(ticket);
        }
    }
}

#[test]
fn a_request_that_begins_elsewhere_pays_a_seek() {
    let mut bed = Bed::new(1);
    let after_a_stream = |bed: &mut Bed, access: Access| {
        (0..20).for_each(|n| _ = bed.charged(nth(n, 7), LEN));
        bed.charged(access, LEN)
    };
    assert_eq!(after_a_stream(&mut bed, nth(20, 7)), BYTES);
    let elsewhere = [
        (nth(21, 7), "a gap"),
        (nth(19, 7), "again"),
        (Op::Write.at(20 * LEN + 512).of(7), "further on"),
        (nth(20, 8), "another file"),
        (Op::Write.at(20 * LEN), "the disk itself"),
        (Op::Read.at(20 * LEN).of(7), "the other direction"),
        (Op::Write.into(), "who knows where"),
    ];
    for (access, what) in elsewhere {
        assert_eq!(after_a_stream(&mut bed, access), SEEK, "{what}");
    }
}

#[test]
fn each_way_back_to_a_stream_is_a_seek_while_others_use_the_disk() {
    let mut bed = Bed::new(1);
    bed.now += SECOND;
    (0..20).for_each(|n| _ = bed.charged(nth(n, 1), LEN));
    for n in 20..60 {
        assert_eq!(bed.charged(Op::Read.at(n * 999 * LEN).of(2), 4096), SEEK);
        assert_eq!(bed.charged(nth(n, 1), LEN), SEEK, "{n}");
    }
    // a window later, with no other requests
    (60..80).for_each(|n| _ = bed.charged(nth(n, 1), LEN));
    assert_eq!(bed.charged(nth(80, 1), LEN), BYTES);
}

#[test]
fn a_read_that_is_still_in_the_disk_keeps_its_head_away() {
    let mut bed = Bed::new(1);
    let (read, _) = bed.goes(0, Op::Read.at(0), 4096);
    let prices: Vec<u64> = (0..40).map(|n| bed.charged(nth(n, 1), LEN)).collect();
    assert_eq!(prices.last(), Some(&BYTES), "it hangs, or was done long ago");
    bed.ends(0, read);
    assert_eq!(bed.charged(nth(40, 1), LEN), SEEK);
}

#[test]
fn flushes_and_discards_leave_the_head_where_it_is() {
    let mut bed = Bed::new(1);
    (0..20).for_each(|n| _ = bed.charged(nth(n, 1), LEN));
    for n in 20..30 {
        bed.charged(Op::Flush, 0);
        assert_eq!(bed.charged(nth(n, 1), LEN), BYTES, "{n}");
        bed.charged(Op::Discard, LEN);
    }
}

#[test]
fn flushes_that_wait_for_the_same_turn_pay_it_once() {
    const TURN: u64 = 8 * MILLI;
    for shards in [1, 2] {
        let mut bed = Bed::with(shards, hard_disk().with_flush(DiskTime::from_nanos(TURN)));
        let last = shards - 1;
        let (write, _) = bed.goes(last, nth(0, 1), LEN);
        let (first, charged) = bed.goes(0, Op::Flush, 0);
        assert_eq!(charged, TURN);
        let (second, charged) = bed.goes(last, Op::Flush, 0);
        assert!(charged <= 1, "{charged}: no write has finished since the first went");
        bed.ends(last, write);
        let (third, charged) = bed.goes(last, Op::Flush, 0);
        assert_eq!(charged, TURN, "a write has finished since");
        bed.ends(0, first);
        bed.ends(last, second);
        assert!(bed.charged(Op::Flush, 0) <= 1, "the third is still in the disk");
        bed.ends(last, third);
        assert_eq!(bed.charged(Op::Flush, 0), TURN, "none is in the disk");
        let (aside, _) = bed.goes(0, Op::Flush, 0);
        bed.queues[0].park(Time::from_nanos(bed.now), aside).unwrap();
        assert_eq!(bed.charged_on(last, Op::Flush, 0), TURN, "the other does not go yet");
    }
}

#[test]
fn concurrent_streams_pay_their_bytes_while_the_disk_has_some_of_each() {
    for shards in [1, 2] {
        let mut bed = Bed::new(shards);
        let mut last: [Option<Ticket>; 2] = [None; 2];
        for n in 0..200 {
            for (file, last) in last.iter_mut().enumerate() {
                let shard = file % shards;
                let (ticket, charged) = bed.goes(shard, nth(n, file as u64), LEN);
                assert!(charged == BYTES || n < 50, "{n} of {file}: {charged}");
                if let Some(before) = last.replace(ticket) {
                    bed.ends(shard, before);
                }
            }
        }
    }
}

#[test]
fn a_disk_that_does_not_seek_charges_no_less_anywhere() {
    let config = by_figures(model(200, 100_000_000), Policy::pace_window());
    let group = IoGroup::new(config);
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    for n in 0..20 {
        let now = Time::from_nanos(SECOND * n);
        let ticket = queue.enqueue(now, class, nth(n, 1), LEN).unwrap();
        assert_eq!(queue.poll_dispatch(now), Some(ticket));
        assert_eq!(queue.cost_of(ticket), Some(DiskTime::from_nanos(SEEK)));
        queue.complete(now, ticket, Outcome::Done).unwrap();
    }
}

#[test]
fn a_parked_grant_keeps_its_price() {
    let mut bed = Bed::new(1);
    (0..20).for_each(|n| _ = bed.charged(nth(n, 1), LEN));
    let (ticket, charged) = bed.goes(0, nth(20, 1), LEN);
    assert_eq!(charged, BYTES);
    let now = Time::from_nanos(bed.now);
    bed.queues[0].park(now, ticket).unwrap();
    bed.charged(Op::Read.at(1 << 40), 4096);
    let now = Time::from_nanos(bed.now);
    assert!(bed.queues[0].resume(now, ticket).unwrap());
    assert_eq!(bed.queues[0].cost_of(ticket), Some(DiskTime::from_nanos(BYTES)));
    bed.ends(0, ticket);
}
