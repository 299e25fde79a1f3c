//! Measures the surface of a simulated disk, under virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, SimDisk};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::{Axes, Cell};
use thiserror::Error;

/// Unless stated, a load lasts until this number of timed requests was seen, within these bounds in
/// seconds,
const READS: usize = 10_000;
const SECONDS: (f64, f64) = (0.1, 30.0);
/// after a part of that which does not count.
const WARM_UP: f64 = 0.3;
/// Probes per second in a load without timed requests, and its length in seconds.
const PROBING: (f64, f64) = (10.0, 5.0);
/// The same of writes, alongside which any number of reads may have to be simulated.
const PROBING_WRITES: (f64, f64) = (100.0, 0.5);
/// Sizes are multiples of this.
const SECTOR: u64 = 512;
/// With more requests of one kind in it the disk does not carry the load.
const IN_FLIGHT_MAX: u64 = 4096;
/// The number of a request is this many times its place in the row of its kind, and its kind.
const IDS: u64 = 3;
const READ_ID: u64 = 0;
const WRITE_ID: u64 = 1;
const DISCARD_ID: u64 = 2;
/// The part of a load that may be missing at its end, and how many requests may in any case.
const MISSING: f64 = 0.03;
const MISSING_COUNT: f64 = 16.0;

/// What requests to a simulated disk are, apart from their rates.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedLoad {
    /// Bytes of a read, 512 or more.
    pub read_bytes: u64,
    /// Bytes of a write, 512 or more.
    pub write_bytes: u64,
    /// Bytes from the beginning of the disk on that are read and written; all of it if not given.
    pub data_bytes: Option<u64>,
    /// How long each load is measured, after a third of that as warm-up. Unless given, until 10,000
    /// reads were seen: between 0.1 and 30 s.
    pub duration: Option<Duration>,
    /// Each write is discarded so long after it was sent, if at all.
    pub discarded_after: Option<Duration>,
    /// Whether latencies are those of writes, and not of reads.
    pub times_writes: bool,
    /// What is combined. [`SimulatedLoad::write_bytes`] are those of a large read, too, and where
    /// sizes are combined these are the largest.
    pub axes: Axes,
    /// Where sizes are combined: reads and writes per second.
    pub fixed_rates: (f64, f64),
}

impl Default for SimulatedLoad {
    /// Reads of 4 KiB and writes of 128 KiB, all over the disk, and no discards.
    fn default() -> Self {
        Self {
            read_bytes: 4096,
            write_bytes: 131_072,
            data_bytes: None,
            duration: None,
            discarded_after: None,
            times_writes: false,
            axes: Axes::Rates,
            fixed_rates: (0.0, 0.0),
        }
    }
}

impl SimulatedLoad {
    const fn probing(&self) -> (f64, f64) {
        if self.times_writes { PROBING_WRITES } else { PROBING }
    }

    /// The same at one point: with these sizes, and the number of writes and reads per second.
    fn at(self, (x, y): (f64, f64)) -> (Self, (f64, f64)) {
        if self.axes != Axes::Sizes {
            return (self, (x / self.write_bytes as f64, y));
        }
        let size = |bytes: f64| (bytes as u64).next_multiple_of(SECTOR).max(SECTOR);
        let rate = |bytes: f64, rate: f64| if bytes > 0.0 { rate } else { 0.0 };
        let (reads, writes) = self.fixed_rates;
        let load = Self { read_bytes: size(y), write_bytes: size(x), ..self };
        (load, (rate(x, writes), rate(y, reads)))
    }
}

/// Why a load cannot run on a simulated disk; the text says what to do.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum SimulatedLoadError {
    /// A request is longer than the data, or the data than the disk.
    #[error("{larger} is {bytes} bytes, and {smaller} has {limit}: lower the former")]
    TooLarge {
        /// What is too large.
        larger: &'static str,
        /// Its bytes.
        bytes: u64,
        /// What it has to fit into.
        smaller: &'static str,
        /// The bytes of that.
        limit: u64,
    },
    /// Nothing says what a discard costs the disk.
    #[error(
        "the file does not state the cost of a discard: leave out --trim, or name a file of a \
         disk of the kind flash that states discard_command and discard_bandwidth"
    )]
    NoDiscards,
}

forebay_core::debug_as_display!(SimulatedLoadError);

/// The latencies of a simulated disk under a load, of reads unless it says of writes.
pub struct SimulatedDisk {
    disk: DiskSpec,
    load: SimulatedLoad,
    measured: u64,
}

impl SimulatedDisk {
    /// A disk under reads of 4 KiB and writes of 128 KiB.
    pub fn new(disk: DiskSpec) -> Self {
        Self { disk, load: SimulatedLoad::default(), measured: 0 }
    }

    /// A disk under requests as the load says.
    ///
    /// # Errors
    /// The data does not fit on the disk, a request does not fit into the data, or nothing says
    /// what a discard costs.
    pub fn with_load(disk: DiskSpec, load: SimulatedLoad) -> Result<Self, SimulatedLoadError> {
        let capacity = disk.capacity();
        let data = load.data_bytes.unwrap_or(capacity);
        let too_large = |larger, bytes, smaller, limit| {
            (bytes > limit).then_some(SimulatedLoadError::TooLarge {
                larger,
                bytes,
                smaller,
                limit,
            })
        };
        let error = too_large("--data-size", data, "the disk", capacity)
            .or_else(|| too_large("--read-size", load.read_bytes, "the data", data))
            .or_else(|| too_large("--write-size", load.write_bytes, "the data", data));
        if let Some(error) = error {
            return Err(error);
        }
        if load.discarded_after.is_some() && disk.build(0).discards().is_none() {
            return Err(SimulatedLoadError::NoDiscards);
        }
        Ok(Self { disk, load, measured: 0 })
    }

    /// What it does alone of requests of these sizes: the bytes that it writes and the reads that
    /// it does per second. The largest of both where sizes are combined.
    pub fn rates(&self) -> (f64, f64) {
        let rates = self.disk.build(0).rates();
        let SimulatedLoad { read_bytes, write_bytes, axes, .. } = self.load;
        if axes == Axes::Sizes {
            return (write_bytes as f64, read_bytes as f64);
        }
        let reads = (rates.read_bandwidth as f64 / read_bytes as f64).min(rates.read_iops as f64);
        if axes == Axes::LargeReads {
            return (rates.read_bandwidth as f64, reads);
        }
        // long writes one after the other take no seeks
        let is_long = write_bytes >= SimulatedLoad::default().write_bytes;
        let write_iops = if is_long { f64::INFINITY } else { rates.write_iops as f64 };
        let writes = (write_iops * write_bytes as f64).min(rates.write_bandwidth as f64);
        (writes, reads)
    }

    /// The latencies of reads, or of writes, while this many bytes are written and reads done per
    /// second, if it carries that: on a disk of its own, both directions at random times (an open
    /// loop, Poisson). Reads at random places, writes one after the other. The same on every
    /// machine.
    pub fn measure(&mut self, at: (f64, f64)) -> Option<Cell> {
        self.measured += 1;
        Run::new(&self.disk, self.load, at, self.measured - 1).run()
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
struct Run {
    disk: Box<dyn SimDisk>,
    load: SimulatedLoad,
    /// Bytes that are read and written.
    data: u64,
    at: (f64, f64),
    rng: Rng,
    reads: Stream,
    writes: Stream,
    /// When each timed request arrived, by its number.
    timed_at: Vec<u64>,
    /// When what was written is discarded, in nanoseconds, and where it is.
    discards: VecDeque<(f64, u64)>,
    discarded: u64,
    /// What timed requests took, in nanoseconds, after the warm-up.
    latencies: Vec<u64>,
}

impl Run {
    fn new(disk: &DiskSpec, load: SimulatedLoad, at: (f64, f64), seed: u64) -> Self {
        let (load, (writes, reads)) = load.at(at);
        let mut rng = Rng::new(seed, &[]);
        let probes = load.probing().0;
        let probed =
            |rate: f64, is_timed: bool| if is_timed && rate <= 0.0 { probes } else { rate };
        let write_rate = probed(writes, load.times_writes);
        Self {
            disk: disk.build(seed),
            data: load.data_bytes.unwrap_or_else(|| disk.capacity()),
            at,
            reads: Stream::new(probed(reads, !load.times_writes), &mut rng),
            writes: Stream::new(write_rate, &mut rng),
            rng,
            load,
            timed_at: Vec::new(),
            discards: VecDeque::new(),
            discarded: 0,
            latencies: Vec::new(),
        }
    }

    /// The latencies of the timed requests, if the disk carries the load.
    fn run(&mut self) -> Option<Cell> {
        let timed = if self.load.times_writes { &self.writes } else { &self.reads };
        let is_probed = if self.load.times_writes { self.at.0 } else { self.at.1 } <= 0.0;
        let seconds = match self.load.duration {
            Some(duration) => duration.as_secs_f64(),
            None if is_probed => self.load.probing().1,
            None => (READS as f64 / timed.rate).clamp(SECONDS.0, SECONDS.1),
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
        let discard = self.discards.front().map_or(f64::INFINITY, |&(at, _)| at);
        let at = event.min(self.reads.next_at).min(self.writes.next_at).min(discard);
        if at > until {
            return false;
        }
        let now = Time::from_nanos(at as u64);
        while let Some(completion) = self.disk.poll_completion(now) {
            match completion.id % IDS {
                WRITE_ID => self.writes.done += 1,
                READ_ID => self.reads.done += 1,
                _ => {}
            }
            if completion.id % IDS == self.timed_id() {
                self.timed_is_done(completion.id / IDS, completion.at, from);
            }
        }
        self.send(at, now);
        true
    }

    fn timed_id(&self) -> u64 {
        if self.load.times_writes { WRITE_ID } else { READ_ID }
    }

    fn timed_is_done(&mut self, number: u64, at: Time, from: f64) {
        let arrived = self.timed_at[number as usize];
        if arrived as f64 >= from {
            self.latencies.push(at.as_nanos().saturating_sub(arrived).max(1));
        }
    }

    /// Sends the requests that are due at the time `at`, in nanoseconds.
    fn send(&mut self, at: f64, now: Time) {
        let SimulatedLoad { read_bytes, write_bytes, discarded_after, times_writes, axes, .. } =
            self.load;
        let is_timed = if times_writes { self.writes.next_at } else { self.reads.next_at } <= at;
        self.timed_at.extend(is_timed.then_some(now.as_nanos()));
        if self.reads.next_at <= at {
            let offset = self.rng.below(self.data / read_bytes) * read_bytes;
            let id = IDS * self.reads.arrived + READ_ID;
            self.disk.submit(now, id, Command { op: Op::Read, offset, len: read_bytes });
            self.reads.arrived += 1;
            self.reads.schedule(&mut self.rng);
        }
        if self.writes.next_at <= at {
            let offset = self.writes.arrived % (self.data / write_bytes) * write_bytes;
            let id = IDS * self.writes.arrived + WRITE_ID;
            let op = if axes == Axes::LargeReads { Op::Read } else { Op::Write };
            self.disk.submit(now, id, Command { op, offset, len: write_bytes });
            self.writes.arrived += 1;
            self.writes.schedule(&mut self.rng);
            let discard = discarded_after.map(|after| (at + after.as_nanos() as f64, offset));
            self.discards.extend(discard);
        }
        while let Some(&(due, offset)) = self.discards.front()
            && due <= at
        {
            self.discards.pop_front();
            let id = IDS * self.discarded + DISCARD_ID;
            self.discarded += 1;
            self.disk.submit(now, id, Command { op: Op::Discard, offset, len: write_bytes });
        }
    }
}
