//! A range of the disk that fails or hangs, and the rate of what is elsewhere.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, Operation};
use forebay::shard::Shard;
use forebay::{AlignedBuf, BufResult, Class, DirectFile, File, Request};
use rustix::io::Errno;

use crate::bench::{BLOCK, Bench, filled};
use crate::disk::{Disk, FAILS, HANGS};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    a_bad_range_fails_and_the_rest_goes_on,
    errors_leave_the_rest_of_a_file_its_rate,
    a_range_that_hangs_leaves_the_rest_of_a_file_its_rate,
    a_range_that_hangs_leaves_the_rest_of_a_shard_its_rate,
}

/// Reads at once, where nothing is wrong.
const DEPTH: u64 = 8;
/// And where something is: more than the window holds.
const BAD: u64 = 12;
const SLICE: Duration = Duration::from_millis(50);
/// Slices before the fault, until the rate must be back, and of the rate then.
const BEFORE: usize = 4;
const BACK: usize = 4;
const AFTER: usize = 6;

fn a_bad_range_fails_and_the_rest_goes_on(backend: BackendChoice) {
    let Some(bench) = Bench::new(backend, Disk::default()) else { return };
    let file = bench.file();
    let BufResult(result, _) = file.read_at(&bench.class, filled(0), FAILS.start).wait();
    assert_eq!(Errno::from_io_error(&result.unwrap_err()), Some(Errno::IO));
    // Of a large read there is what comes before the bad range.
    let before = 256 << 10;
    let buffer = AlignedBuf::new(1 << 20, BLOCK).unwrap();
    let BufResult(result, buffer) = file.read_at(&bench.class, buffer, FAILS.start - before).wait();
    assert_eq!((result.unwrap() as u64, buffer.len()), (before, 1 << 20));
    let BufResult(result, _) = file.read_at(&bench.class, filled(0), 0).wait();
    assert_eq!(result.unwrap(), BLOCK);
    // What was dropped there ends as well.
    while bench.scheduler.disk("served").unwrap().in_flight() > Duration::ZERO {
        std::thread::yield_now();
    }
}

/// Reads some blocks all the time.
trait Reads {
    /// Until one has ended.
    fn read(&mut self, class: &Class);
    /// Reads of blocks at `offset` and behind, which nobody waits for.
    fn read_bad(&mut self, class: &Class, offset: u64);
}

struct OfFile {
    file: File,
    requests: VecDeque<Request<BufResult<AlignedBuf>>>,
    bad: Vec<Request<BufResult<AlignedBuf>>>,
}

impl Reads for OfFile {
    fn read(&mut self, class: &Class) {
        while self.requests.len() < DEPTH as usize {
            self.requests.push_back(self.file.read_at(class, filled(0), 0));
        }
        let first = self.requests.pop_front().unwrap();
        assert_eq!(first.wait().into_result().unwrap().0, BLOCK);
    }

    fn read_bad(&mut self, class: &Class, offset: u64) {
        let read = |n| self.file.read_at(class, filled(0), offset + n * BLOCK as u64);
        self.bad.extend((0..BAD).map(read));
    }
}

struct OfShard {
    shard: Shard,
    file: DirectFile,
    under_way: u64,
}

impl OfShard {
    fn submit(&mut self, class: &Class, offset: u64) {
        let read = Operation::read(self.file.clone(), offset, filled(0));
        self.shard.submit(class, read).map_err(|(error, _)| error).unwrap();
    }
}

impl Reads for OfShard {
    fn read(&mut self, class: &Class) {
        while self.under_way < DEPTH {
            self.submit(class, 0);
            self.under_way += 1;
        }
        loop {
            if let Some(finished) = self.shard.pop() {
                assert_eq!(finished.result.unwrap(), BLOCK);
                self.under_way -= 1;
                return;
            }
            self.shard.run_once(None).unwrap();
        }
    }

    fn read_bad(&mut self, class: &Class, offset: u64) {
        (0..BAD).for_each(|n| self.submit(class, offset + n * BLOCK as u64));
    }
}

/// What is read per slice of time, with the bad reads at the end of `BEFORE`:
/// the rate 200 ms later, as a part of what it was.
fn part_of_the_rate(bench: &Bench, reads: &mut impl Reads, offset: u64) -> f64 {
    let bad = bench.scheduler.add_class("bad", 100).unwrap();
    let mut slices = Vec::new();
    for slice in 0..BEFORE + BACK + AFTER {
        if slice == BEFORE {
            reads.read_bad(&bad, offset);
        }
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < SLICE {
            reads.read(&bench.class);
            done += 1;
        }
        slices.push(f64::from(done) / start.elapsed().as_secs_f64());
    }
    let mean = |slices: &[f64]| slices.iter().sum::<f64>() / slices.len() as f64;
    let part = mean(&slices[BEFORE + BACK..]) / mean(&slices[..BEFORE]);
    eprintln!("per second: {slices:.0?}, the last {part:.2} of the first");
    part
}

/// Virtual time shows the bound; here the machine may be busy with something
/// else, so the best of a few attempts counts.
fn assert_rate_is_back(backend: BackendChoice, offset: u64, reads: fn(&Bench) -> f64) {
    let mut best = 0.0;
    for _ in 0..5 {
        let Some(bench) = Bench::new(backend, Disk::default()) else { return };
        best = f64::max(best, reads(&bench));
        if best >= 0.9 {
            return;
        }
    }
    panic!("{best:.2} of the rate 200 ms after reads from {offset} on");
}

fn of_file(bench: &Bench, offset: u64) -> f64 {
    let requests = VecDeque::new();
    let mut reads = OfFile { file: bench.file(), requests, bad: Vec::new() };
    part_of_the_rate(bench, &mut reads, offset)
}

fn errors_leave_the_rest_of_a_file_its_rate(backend: BackendChoice) {
    assert_rate_is_back(backend, FAILS.start, |bench| of_file(bench, FAILS.start));
}

fn a_range_that_hangs_leaves_the_rest_of_a_file_its_rate(backend: BackendChoice) {
    assert_rate_is_back(backend, HANGS.start, |bench| of_file(bench, HANGS.start));
}

fn a_range_that_hangs_leaves_the_rest_of_a_shard_its_rate(backend: BackendChoice) {
    assert_rate_is_back(backend, HANGS.start, |bench| {
        let (shard, file) = (bench.shard(), bench.direct_file());
        let mut reads = OfShard { shard, file, under_way: 0 };
        part_of_the_rate(bench, &mut reads, HANGS.start)
    });
}
