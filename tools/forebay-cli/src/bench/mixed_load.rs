//! Reads alongside writes at given rates, on files or a device of its own.

use std::num::{NonZero, NonZeroU32};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use forebay::engine::BackendChoice;
use forebay::properties::Properties;
use forebay_core::{Control, Policy, ServiceOrder};
use forebay_load::job_file::{ClassSpec, FileOptions, Gaps, Job, JobFile, JobKind, Pace, Rate};
use forebay_load::results::model::{ClassResult, RunResult};
use forebay_sim::surface::Cell;
use indicatif::HumanBytes;

use super::plan::{Plan, Topology};
use super::probe::Probe;
use super::results::Run;
use super::runner::run;
use super::storage::{JobData, RunTarget, Storage};
use crate::disk::Disk;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// The jobs by their places in the file.
const READS: usize = 0;
const WRITES: usize = 1;
const DISCARDS: usize = 2;
const NAMES: [&str; 3] = ["reads", "writes", "discards"];
/// More threads than this do not send more than a disk takes.
const SHARDS_MAX: usize = 8;
/// Fibers of all shards together, reads and writes: each sends its next request when its last is
/// done, so that more of them are further from a closed loop, and take more memory.
const FIBERS: [u32; 3] = [4096, 512, 512];
/// Of this many rates of a fiber the one is taken that all fibers together keep best.
const FIBER_RATES: u32 = 8;
/// Fewer requests per second than this come from one shard.
const SHARD_RATE_MIN: f64 = 1000.0;
/// Without reads in the load there are this many probes per second.
const PROBES: f64 = 50.0;
/// A load lasts until this many reads are due, but no more than this many times as long as planned.
const READS_MIN: f64 = 100.0;
const PATIENCE: u32 = 10;
/// The part of a load that may be missing at its end, and how many requests may in any case.
const MISSING: f64 = 0.03;
const MISSING_COUNT: f64 = 16.0;
const MIB: u64 = 1 << 20;

/// What is read and written, and where.
#[derive(Clone, Debug)]
pub(crate) struct MixedLoadOptions {
    /// A directory, or a block device whose data may be destroyed.
    pub(crate) place: PathBuf,
    pub(crate) may_overwrite_device: bool,
    /// Bytes of a read and of a write.
    pub(crate) read_bytes: u32,
    pub(crate) write_bytes: u32,
    /// Bytes of data: half of them are read, half are written.
    pub(crate) data_bytes: u64,
    /// Whether what was written is given back at the rate of the writes.
    pub(crate) discards: bool,
    /// How long a load is measured, after a fourth of that as warm-up.
    pub(crate) duration: Duration,
}

impl MixedLoadOptions {
    /// Whether the data holds some requests of every shard.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let least = 4 * u64::from(self.read_bytes.max(self.write_bytes)).max(MIB);
        let least = least * 2 * SHARDS_MAX as u64;
        if self.data_bytes >= least {
            return Ok(());
        }
        Err(Failure::Input(format!(
            "--data-size is {} bytes; give {least} or more",
            self.data_bytes
        )))
    }

    /// Whether there is room for the data.
    fn check_space(&self, target: &RunTarget) -> Result<(), Failure> {
        let RunTarget::Directory(path) = target else { return Ok(()) };
        let shown = path.display();
        let space = rustix::fs::statvfs(path).map_err(|error| {
            Failure::Run(format!("cannot look up the free space of `{shown}`: {error}"))
        })?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        // a filesystem without blocks takes no files, as is found later
        if space.f_blocks == 0 || free >= self.data_bytes {
            return Ok(());
        }
        Err(Failure::Input(format!(
            "`{shown}` has {} free, and --data-size is {}; lower it, free some space, or name \
             another directory",
            HumanBytes(free),
            HumanBytes(self.data_bytes)
        )))
    }
}

/// A disk under loads of reads and writes, in an open loop.
pub(crate) struct MixedLoad {
    options: MixedLoadOptions,
    target: RunTarget,
    shard_count: u32,
    interrupt: Interrupt,
    /// Made with the first load.
    storage: Option<Storage>,
}

impl MixedLoad {
    /// Nothing is written yet. Ctrl-C ends what is run from now on.
    pub(crate) fn new(options: MixedLoadOptions) -> Result<Self, Failure> {
        let target = RunTarget::of(&options.place, options.may_overwrite_device, None);
        let target = target.map_err(without_option)?;
        if matches!(target, RunTarget::Null) {
            return Err(Failure::Input(String::from("/dev/null has no disk; name a directory")));
        }
        options.check_space(&target)?;
        let nothing = JobFile { jobs: Vec::new(), classes: Vec::new(), groups: Vec::new() };
        Storage::check(&target, &nothing).map_err(without_option)?;
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let shard_count = processors.min(SHARDS_MAX) as u32;
        let interrupt = Interrupt::on_signals()?;
        Ok(Self { options, target, shard_count, interrupt, storage: None })
    }

    /// The bytes written and the reads done per second by the disk alone: what `properties` say of
    /// it, or else a short measurement.
    pub(crate) fn rates(&self, properties: Option<&Properties>) -> Result<(f64, f64), Failure> {
        let rates = match properties {
            Some(properties) => {
                let disk = properties.disk_for(self.target.path());
                Some(disk.map_err(|error| Failure::Input(error.to_string()))?.rates())
            }
            None => {
                let (target, interrupt) = (&self.target, &self.interrupt);
                let backend = BackendChoice::Auto;
                let shard_count = self.shard_count;
                let probe = Probe { target, shard_count, backend, interrupt };
                probe.measure().map_err(without_option)?.rates
            }
        };
        let rates = rates.ok_or_else(|| Failure::Run(String::from("nothing was measured")))?;
        Ok((rates.write_bandwidth as f64, rates.read_iops as f64))
    }

    /// The latencies of reads while this many bytes are written and reads done per second, both at
    /// random times; nothing where the disk carried less than 97 % of that.
    ///
    /// # Errors
    /// A request failed, or the user wants to end.
    pub(crate) fn measure(&mut self, title: &str, at: (f64, f64)) -> Result<Option<Cell>, Failure> {
        self.prepare()?;
        let Some(storage) = &self.storage else { return Ok(None) };
        let jobs = self.jobs(at);
        let duration = self.duration(at.1);
        let Run { result, failed } = run(&Plan {
            title,
            jobs: &jobs,
            storage,
            target: self.target.path(),
            disk: &Disk::unmeasured(),
            policy: Policy::Unlimited,
            latency_target: None,
            control: Control::Rates,
            order: ServiceOrder::StartTime,
            topology: Topology::PerThread,
            io_queues: 1,
            metrics: None,
            has_series: false,
            is_scheduled: false,
            warmup: duration / 4,
            duration,
            seed: 1,
            backend: BackendChoice::Auto,
            interrupt: &self.interrupt,
        })?;
        self.interrupt.check()?;
        match failed {
            Some((_, first)) => Err(Failure::Run(first)),
            None => Ok(cell(at, &result)),
        }
    }

    /// How long a load with this many reads per second lasts: longer for the sake of few reads.
    fn duration(&self, read_iops: f64) -> Duration {
        let planned = self.options.duration;
        let reads = if read_iops > 0.0 { read_iops } else { PROBES };
        Duration::from_secs_f64(READS_MIN / reads).clamp(planned, planned * PATIENCE)
    }

    /// Writes the data, unless that is done.
    fn prepare(&mut self) -> Result<(), Failure> {
        if self.storage.is_some() {
            return Ok(());
        }
        let mut jobs = self.jobs((1.0, 1.0));
        jobs.jobs.truncate(DISCARDS);
        jobs.jobs.iter_mut().for_each(|job| job.shards = (0..self.shard_count).collect());
        let backend = BackendChoice::Auto;
        let storage = Storage::make(&self.target, &jobs, backend, &self.interrupt);
        let mut storage = storage.map_err(without_option)?;
        let written: Vec<JobData> =
            storage.data.iter().filter(|data| data.job == WRITES).cloned().collect();
        // what is discarded is what was written
        storage.data.extend(written.into_iter().map(|data| JobData { job: DISCARDS, ..data }));
        self.storage = Some(storage);
        Ok(())
    }

    fn jobs(&self, (write_bandwidth, read_iops): (f64, f64)) -> JobFile {
        let writes = write_bandwidth / f64::from(self.options.write_bytes);
        let discards = if self.options.discards { writes } else { 0.0 };
        let reads = if read_iops > 0.0 { read_iops } else { PROBES };
        let jobs = [
            self.job(READS, JobKind::RandRead, reads),
            self.job(WRITES, JobKind::Overwrite, writes),
            self.job(DISCARDS, JobKind::Discard, discards),
        ];
        let class = ClassSpec {
            name: String::from("explore"),
            shares: 1,
            parent: None,
            bandwidth_max: None,
        };
        JobFile { jobs: jobs.into(), classes: vec![class], groups: Vec::new() }
    }

    /// Requests of one kind, this many per second; no shard runs it where there are none.
    fn job(&self, place: usize, kind: JobKind, rate: f64) -> Job {
        let MixedLoadOptions { read_bytes, write_bytes, data_bytes, .. } = self.options;
        let shards = if rate < SHARD_RATE_MIN { 1 } else { self.shard_count };
        let (fibers, of_fiber) = fibers(rate / f64::from(shards), FIBERS[place] / shards);
        Job {
            name: NAMES[place].to_owned(),
            kind,
            shards: if rate > 0.0 { (0..shards).collect() } else { Vec::new() },
            file_size: (data_bytes / 2 / u64::from(self.shard_count) / MIB).max(1) * MIB,
            files_count: 1,
            class: 0,
            parallelism: fibers,
            start: Duration::ZERO,
            pace: Pace::Open(Rate {
                rps: of_fiber,
                batch: NonZeroU32::MIN,
                gaps: Gaps::Poisson,
                skips_missed: false,
            }),
            limit: None,
            reqsize: if place == READS { read_bytes } else { write_bytes },
            iov_count: 1,
            execution_time: Duration::ZERO,
            fsync_every: None,
            options: FileOptions::default(),
            steps: None,
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.target.path()
    }
}

/// What is wrong with a place, which is an argument here and in `bench` an option.
fn without_option(failure: Failure) -> Failure {
    match failure {
        Failure::Input(text) => Failure::Input(text.replace(" with --dir", "")),
        other => other,
    }
}

/// How many fibers send how many requests per second each, so that together it is nearly `rate`.
fn fibers(rate: f64, fibers_max: u32) -> (u32, NonZeroU32) {
    let least = (rate / f64::from(fibers_max.max(1))).ceil().max(1.0) as u32;
    let of_fiber = |of_fiber: u32| {
        let fibers = (rate / f64::from(of_fiber)).round().max(1.0);
        (fibers as u32, of_fiber, (fibers * f64::from(of_fiber) - rate).abs())
    };
    let all = (least..least + FIBER_RATES).rev().map(of_fiber);
    let best = all.min_by(|one, other| one.2.total_cmp(&other.2));
    let (fibers, of_fiber, _) = best.unwrap_or((1, least, 0.0));
    (fibers, NonZeroU32::new(of_fiber).unwrap_or(NonZeroU32::MIN))
}

/// What was measured, if the disk carried the load.
fn cell((write_bandwidth, read_iops): (f64, f64), result: &RunResult) -> Option<Cell> {
    let missed = |class: &ClassResult| {
        let all = class.requests + class.unfinished;
        class.unfinished as f64 > MISSING * all as f64 + MISSING_COUNT
    };
    let reads = result.classes.iter().find(|class| class.name == NAMES[READS])?;
    if reads.latency_us.p50 <= 0.0 || result.classes.iter().any(missed) {
        return None;
    }
    let latency = reads.latency_us;
    Some(Cell {
        write_bandwidth,
        read_iops,
        p50_us: latency.p50,
        p95_us: latency.p95,
        p99_us: Some(latency.p99),
        p999_us: Some(latency.p999),
        clipped: false,
    })
}
