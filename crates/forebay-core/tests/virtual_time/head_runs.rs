//! Disks that seek: a stream that has the head keeps it for at most 50 ms.

use std::collections::VecDeque;

use forebay_core::{
    Access, ClassId, CostCurve, DiskModel, GroupConfig, IoGroup, IoQueue, Op, Outcome, Policy,
    RUN_NANOS, Ticket, Time,
};

use crate::world::{MILLI, SECOND, model};

const LEN: u64 = 128 << 10;
/// The disk time of 128 KiB at 100 MB/s, in nanoseconds.
const BYTES: u64 = 1_310_720;
/// The number of requests of the stream that wait or are in the disk.
const DEPTH: usize = 12;

fn hard_disk() -> DiskModel {
    let bytes = || CostCurve::transfer(100_000_000).unwrap();
    model(200, 100_000_000).with_sequential(bytes(), bytes())
}

/// A stream on the first shard, and a read on the second.
struct Bed {
    stream: IoQueue,
    reads: IoQueue,
    classes: [ClassId; 2],
    now: u64,
    in_disk: VecDeque<Ticket>,
    /// The numbers of requests of the stream that were queued, and dispatched.
    queued: u64,
    went: u64,
}

impl Bed {
    /// A stream that has had the disk to itself for `steps` requests.
    fn new(model: DiskModel, shares: [u32; 2], steps: u64) -> Self {
        let mut config = GroupConfig::new(model, Policy::pace_window());
        config.shards_max = 2;
        let group = IoGroup::new(config);
        let classes = shares.map(|shares| group.add_class(None, shares).unwrap());
        let [stream, reads] = [(); 2].map(|()| group.join().unwrap());
        let (in_disk, now) = (VecDeque::new(), SECOND);
        let mut bed = Self { stream, reads, classes, now, in_disk, queued: 0, went: 0 };
        (0..steps).for_each(|_| _ = bed.step(true));
        bed
    }

    fn at(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// Serves a request of the stream. With `sends` the stream queues another one. Returns whether the
    /// shard of the reads is woken.
    fn step(&mut self, sends: bool) -> bool {
        self.now += BYTES;
        let now = self.at();
        if let Some(ticket) = self.in_disk.pop_front() {
            self.stream.complete(now, ticket, Outcome::Done).unwrap();
        }
        while sends && self.stream.len() < DEPTH {
            let access: Access = Op::Write.at(self.queued * LEN);
            self.stream.enqueue(now, self.classes[0], access, LEN).unwrap();
            self.queued += 1;
        }
        while let Some(ticket) = self.stream.poll_dispatch(now) {
            self.in_disk.push_back(ticket);
            self.went += 1;
        }
        std::iter::from_fn(|| self.stream.poll_wake()).any(|shard| shard == self.reads.shard())
    }

    fn read_comes(&mut self) {
        let at = Op::Read.at(1 << 40);
        self.reads.enqueue(self.at(), self.classes[1], at, 4096).unwrap();
    }

    fn read_goes(&mut self) -> bool {
        self.reads.poll_dispatch(self.at()).is_some()
    }
}

/// The most disk time of the stream that is dispatched before a read arriving at the worst time.
fn longest_wait(model: &DiskModel, shares: [u32; 2]) -> u64 {
    let wait_from = |steps| {
        let mut bed = Bed::new(model.clone(), shares, steps);
        let before = bed.went;
        bed.read_comes();
        let waits = (0..200).take_while(|_| !bed.read_goes() && bed.step(true) | true).count();
        assert!(waits < 200, "{shares:?} {steps}: it starves");
        (bed.went - before) * BYTES
    };
    (400..440).map(wait_from).max().unwrap()
}

#[test]
fn a_stream_keeps_the_head_for_50_ms_whatever_the_shares() {
    assert_eq!(RUN_NANOS, 50 * MILLI);
    for shares in [[100, 100], [1000, 1], [1, 1000]] {
        let wait = longest_wait(&hard_disk(), shares);
        assert!((40 * MILLI..=RUN_NANOS + BYTES).contains(&wait), "{shares:?}: {wait}");
    }
}

#[test]
fn a_disk_that_does_not_seek_has_no_runs() {
    let wait = longest_wait(&model(20_000, 100_000_000), [100, 100]);
    assert!(wait <= 2 * BYTES, "{wait}: a window has two of them");
}

#[test]
fn a_run_ends_with_its_stream() {
    let woken_with = |steps| {
        let mut bed = Bed::new(hard_disk(), [100, 100], steps);
        bed.read_comes();
        assert!(!bed.read_goes(), "the stream has the head");
        let woken = (0..2 * DEPTH).find(|_| bed.step(false));
        woken.map(|_| bed.stream.len())
    };
    // with 12 requests, fewer than in a run, after one has just begun
    assert!((400..440).any(|steps| woken_with(steps) == Some(0)), "when its last one is done");
}

#[test]
fn a_queue_that_leaves_gives_the_head_back() {
    let mut bed = Bed::new(hard_disk(), [100, 100], 400);
    bed.read_comes();
    assert!(!bed.read_goes());
    let (now, reads) = (bed.at(), bed.reads.shard());
    assert!(bed.stream.leave(now).any(|shard| shard == reads));
}

#[test]
fn a_stream_waits_for_what_is_in_the_disk() {
    let mut bed = Bed::new(hard_disk(), [100, 100], 400);
    (0..3).for_each(|_| bed.read_comes());
    let mut in_disk = 0;
    while in_disk < 3 {
        _ = bed.step(true);
        in_disk += std::iter::from_fn(|| bed.read_goes().then_some(())).count();
    }
    let before = bed.went;
    // 13 ms: the stream waits for the reads for at most 50 ms after its turn
    (0..10).for_each(|_| _ = bed.step(true));
    assert_eq!(bed.went, before, "it would make the disk leave them alone");
}
