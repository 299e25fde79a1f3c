//! The load that surfaces are measured under.

use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, SimDisk};

/// Bytes of a read and of a write.
const READ: u64 = 512;
const WRITE: u64 = 131_072;
/// The most reads and writes under way.
const READS_MAX: u64 = 1000;
const WRITES_MAX: u64 = 64;
/// Probes per second where there are no reads, and how many of them are made.
const PROBES_PER_SECOND: f64 = 10.0;
const PROBES: usize = 40;
/// Otherwise a round of reads takes this many seconds, and at least this many reads.
const SECONDS: f64 = 0.02;
const READS_MIN: f64 = 6000.0;
/// Rounds follow until the median rises by less than this factor from one to the
/// next, which it does not soon where the queue grows,
const RISE: f64 = 1.1;
/// but no more than this many.
const ROUNDS_MAX: usize = 12;

/// Median and 95th percentile in microseconds of random reads at `read_iops`,
/// alongside writes of `write_bandwidth` bytes per second at even times.
pub(crate) fn percentiles(
    disk: &mut dyn SimDisk,
    write_bandwidth: f64,
    read_iops: f64,
) -> (f64, f64) {
    let (rate, wanted) = match read_iops {
        0.0 => (PROBES_PER_SECOND, PROBES),
        rate => (rate, READS_MIN.max(rate * SECONDS) as usize),
    };
    let mut load = Load::new(rate, write_bandwidth, READS_MAX);
    let mut last = (0.0, 0.0);
    for _ in 0..ROUNDS_MAX {
        let round = load.round(disk, wanted);
        let settled = round.0 < RISE * last.0;
        last = round;
        if settled {
            break;
        }
    }
    last
}

/// How many reads, sent at random times with none held back, are under way after so long.
pub(crate) fn reads_under_way(disk: &mut dyn SimDisk, read_iops: f64, seconds: f64) -> u64 {
    let mut load = Load::new(read_iops, 0.0, u64::MAX);
    while load.read_at < seconds * 1e9 {
        load.step(disk, &mut Vec::new());
    }
    load.in_flight[0]
}

struct Load {
    rng: Rng,
    rate: f64,
    write_gap: f64,
    read_at: f64,
    write_at: f64,
    reads_max: u64,
    /// Reads and writes under way.
    in_flight: [u64; 2],
    /// When each read was sent, by its number.
    sent_at: Vec<u64>,
    writes: u64,
}

impl Load {
    fn new(rate: f64, write_bandwidth: f64, reads_max: u64) -> Self {
        let write_gap = if write_bandwidth > 0.0 {
            WRITE as f64 * 1e9 / write_bandwidth
        } else {
            f64::INFINITY
        };
        Self {
            rng: Rng::new(1, &[]),
            rate,
            write_gap,
            read_at: 0.0,
            write_at: if write_bandwidth > 0.0 { 0.0 } else { f64::INFINITY },
            reads_max,
            in_flight: [0; 2],
            sent_at: Vec::new(),
            writes: 0,
        }
    }

    /// Both percentiles of this many reads.
    fn round(&mut self, disk: &mut dyn SimDisk, wanted: usize) -> (f64, f64) {
        let mut latencies = Vec::with_capacity(wanted);
        while latencies.len() < wanted {
            self.step(disk, &mut latencies);
        }
        latencies.sort_unstable();
        let quantile = |part: usize| latencies[latencies.len() * part / 100] as f64 / 1e3;
        (quantile(50), quantile(95))
    }

    /// Goes on to the next event.
    fn step(&mut self, disk: &mut dyn SimDisk, latencies: &mut Vec<u64>) {
        let done = disk.next_event().map_or(f64::INFINITY, |at| at.as_nanos() as f64);
        let read = if self.in_flight[0] < self.reads_max { self.read_at } else { f64::INFINITY };
        let write = if self.in_flight[1] < WRITES_MAX { self.write_at } else { f64::INFINITY };
        let nanos = done.min(read).min(write);
        let now = Time::from_nanos(nanos as u64);
        while let Some(finished) = disk.poll_completion(now) {
            let write = finished.id % 2 == 1;
            self.in_flight[usize::from(write)] -= 1;
            if !write {
                latencies.push(now.as_nanos() - self.sent_at[(finished.id / 2) as usize]);
            }
        }
        if read <= nanos {
            let id = 2 * self.sent_at.len() as u64;
            self.sent_at.push(now.as_nanos());
            self.in_flight[0] += 1;
            disk.submit(now, id, Command { op: Op::Read, offset: id * READ, len: READ });
            self.read_at = nanos.max(self.read_at) + self.rng.gap_ns(1000) as f64 * 1e3 / self.rate;
        }
        if write <= nanos {
            self.in_flight[1] += 1;
            self.writes += 1;
            let id = 2 * self.writes + 1;
            disk.submit(now, id, Command { op: Op::Write, offset: id * WRITE, len: WRITE });
            self.write_at += self.write_gap;
        }
    }
}
