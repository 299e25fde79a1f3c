//! Measures the surface of a simulated disk, under virtual time.

use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, SimDisk};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Cell;

/// Bytes of a read and of a write.
const READ: u64 = 4096;
const WRITE: u64 = 131_072;
/// A load lasts until so many reads were seen, but so many seconds at least and at most,
const READS: usize = 10_000;
const SECONDS: (f64, f64) = (0.1, 30.0);
/// after a part of that which does not count.
const WARM_UP: f64 = 0.3;
/// Without reads in the load there are so many probes per second, for so long.
const PROBES: f64 = 10.0;
const PROBING_SECONDS: f64 = 5.0;
/// With more requests of one kind in it the disk does not carry the load.
const IN_FLIGHT_MAX: u64 = 4096;
/// The part of a load that may be missing at its end, and how many requests may in any case.
const MISSING: f64 = 0.03;
const MISSING_COUNT: f64 = 16.0;

/// The read latencies of a simulated disk under a load.
pub struct SimulatedDisk {
    disk: DiskSpec,
    measured: u64,
}

impl SimulatedDisk {
    /// A disk.
    pub fn new(disk: DiskSpec) -> Self {
        Self { disk, measured: 0 }
    }

    /// What it does alone: the bytes that it writes and the reads that it does per second.
    pub fn rates(&self) -> (f64, f64) {
        let rates = self.disk.build(0).rates();
        (rates.write_bandwidth as f64, rates.read_iops as f64)
    }

    /// The latencies of reads while so many bytes are written and reads done per second, if it
    /// carries that: on a disk of its own, both directions at random times (an open loop, Poisson).
    /// Reads of 4 KiB at random places, writes of 128 KiB one after the other. The same on every
    /// machine.
    pub fn measure(&mut self, at: (f64, f64)) -> Option<Cell> {
        self.measured += 1;
        Load::new(&self.disk, at, self.measured - 1).run()
    }
}

/// Requests of one kind.
struct Stream {
    /// How many arrive per second; none if that is 0.
    rate: f64,
    /// When the next one does, in nanoseconds.
    next_at: f64,
    arrived: u64,
    done: u64,
}

impl Stream {
    fn new(rate: f64, rng: &mut Rng) -> Self {
        let mut stream = Self { rate, next_at: 0.0, arrived: 0, done: 0 };
        stream.schedule(rng);
        stream
    }

    fn schedule(&mut self, rng: &mut Rng) {
        let gap =
            if self.rate > 0.0 { rng.gap_ns(1000) as f64 * 1e3 / self.rate } else { f64::INFINITY };
        self.next_at += gap;
    }

    /// Whether it ended with less done than arrived.
    fn is_missed(&self) -> bool {
        (self.arrived - self.done) as f64 > MISSING * self.arrived as f64 + MISSING_COUNT
    }
}

/// A disk under a load.
struct Load {
    disk: Box<dyn SimDisk>,
    capacity: u64,
    at: (f64, f64),
    rng: Rng,
    reads: Stream,
    writes: Stream,
    /// When each read arrived, by its number.
    read_at: Vec<u64>,
    /// What reads took, in nanoseconds, after the warm-up.
    latencies: Vec<u64>,
}

impl Load {
    fn new(disk: &DiskSpec, at: (f64, f64), seed: u64) -> Self {
        let mut rng = Rng::new(seed, &[]);
        let read_rate = if at.1 > 0.0 { at.1 } else { PROBES };
        Self {
            disk: disk.build(seed),
            capacity: disk.capacity(),
            at,
            reads: Stream::new(read_rate, &mut rng),
            writes: Stream::new(at.0 / WRITE as f64, &mut rng),
            rng,
            read_at: Vec::new(),
            latencies: Vec::new(),
        }
    }

    /// The latencies of reads, if the disk carries the load.
    fn run(&mut self) -> Option<Cell> {
        let seconds = if self.at.1 > 0.0 {
            (READS as f64 / self.at.1).clamp(SECONDS.0, SECONDS.1)
        } else {
            PROBING_SECONDS
        };
        let (from, until) = (seconds * WARM_UP * 1e9, seconds * (1.0 + WARM_UP) * 1e9);
        while self.step(from, until) {
            let in_flight = |stream: &Stream| stream.arrived - stream.done;
            if in_flight(&self.reads).max(in_flight(&self.writes)) > IN_FLIGHT_MAX {
                return None;
            }
        }
        if self.reads.is_missed() || self.writes.is_missed() || self.latencies.is_empty() {
            return None;
        }
        self.latencies.sort_unstable();
        let us = |part: f64| {
            let index = (self.latencies.len() as f64 * part) as usize;
            self.latencies[index.min(self.latencies.len() - 1)] as f64 / 1e3
        };
        Some(Cell {
            write_bandwidth: self.at.0,
            read_iops: self.at.1,
            p50_us: us(0.5),
            p95_us: us(0.95),
            p99_us: Some(us(0.99)),
            p999_us: Some(us(0.999)),
            clipped: false,
        })
    }

    /// Goes on to the next event; whether that was before `until`.
    fn step(&mut self, from: f64, until: f64) -> bool {
        let event = self.disk.next_event().map_or(f64::INFINITY, |at| at.as_nanos() as f64);
        let at = event.min(self.reads.next_at).min(self.writes.next_at);
        if at > until {
            return false;
        }
        let now = Time::from_nanos(at as u64);
        while let Some(completion) = self.disk.poll_completion(now) {
            if completion.id % 2 == 1 {
                self.writes.done += 1;
                continue;
            }
            self.reads.done += 1;
            let arrived = self.read_at[(completion.id / 2) as usize];
            if arrived as f64 >= from {
                self.latencies.push(completion.at.as_nanos().saturating_sub(arrived).max(1));
            }
        }
        if self.reads.next_at <= at {
            let offset = self.rng.below(self.capacity / READ) * READ;
            let id = 2 * self.reads.arrived;
            self.read_at.push(now.as_nanos());
            self.disk.submit(now, id, Command { op: Op::Read, offset, len: READ });
            self.reads.arrived += 1;
            self.reads.schedule(&mut self.rng);
        }
        if self.writes.next_at <= at {
            let offset = self.writes.arrived % (self.capacity / WRITE).max(1) * WRITE;
            let id = 2 * self.writes.arrived + 1;
            self.disk.submit(now, id, Command { op: Op::Write, offset, len: WRITE });
            self.writes.arrived += 1;
            self.writes.schedule(&mut self.rng);
        }
        true
    }
}
