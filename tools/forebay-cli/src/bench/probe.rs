//! A short measurement of a disk that nobody has described.

use std::sync::Once;
use std::time::Duration;

use forebay::engine::BackendChoice;
use forebay::properties::{DiskProperties, Properties};
use forebay_core::{Control, DiskRates, Policy, ServiceOrder};
use forebay_load::job_file::{ClassSpec, FileOptions, Job, JobFile, JobKind, Pace, Think};
use forebay_load::results::PROCESSOR_WAIT_MAX;
use forebay_load::results::model::{ClassResult, PropertiesSource};
use forebay_tune::{CostPoint, Saturation, saturation_of};

use super::plan::{Plan, Topology};
use super::results::Run;
use super::runner::run;
use super::storage::{RunTarget, Storage};
use crate::console::note;
use crate::disk::Disk;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Bytes that all shards together read and write.
const BYTES: u64 = 256 << 20;
/// Bytes that a shard reads and writes at the least.
const SHARD_BYTES_MIN: u64 = 16 << 20;
/// Requests in the disk while small requests are counted, of all shards together at the most.
const DEPTH: u32 = 128;
/// Requests of one shard in the disk while small requests are counted, at the most.
const SHARD_DEPTH_MAX: u32 = 32;
/// Bytes in the disk of all shards together while bandwidth is measured.
const BULK_BYTES: u32 = 16 << 20;
const WARMUP: Duration = Duration::from_millis(100);
const DURATION: Duration = Duration::from_millis(400);

const SMALL: u32 = 4096;
const LARGE: u32 = 128 << 10;
const LARGEST: u32 = 1 << 20;
/// Each size is streamed so often by turns, and together for as long as small requests are counted.
const TURNS: u32 = 4;

/// What is probed, and with what.
pub(super) struct Probe<'a> {
    pub(super) target: &'a RunTarget,
    pub(super) shard_count: u32,
    pub(super) backend: BackendChoice,
    pub(super) interrupt: &'a Interrupt,
}

/// What one direction of a disk can do.
struct Direction {
    iops: u64,
    bandwidth: u64,
    saturation_length: Option<u64>,
}

impl Probe<'_> {
    /// Measures the disk, and says what was found.
    pub(super) fn measure(&self) -> Result<Disk, Failure> {
        let mut one = self.load(JobKind::RandRead, SMALL, 1);
        Storage::check(self.target, &one).map_err(not_probed)?;
        note("probing the disk for about four seconds, because there is no --properties FILE");
        let storage = Storage::make(self.target, &one, self.backend, self.interrupt);
        let storage = storage.map_err(not_probed)?;
        one.jobs.iter_mut().for_each(|job| job.shards.truncate(1));
        let base = self.run(&storage, &one, DURATION)?;
        let reads = self.direction(&storage, [JobKind::RandRead, JobKind::SeqRead])?;
        let writes = self.direction(&storage, [JobKind::RandWrite, JobKind::Overwrite])?;
        let rates = DiskRates {
            read_iops: reads.iops,
            write_iops: writes.iops,
            read_bandwidth: reads.bandwidth,
            write_bandwidth: writes.bandwidth,
        };
        let target = self.target.path().to_owned();
        let properties = DiskProperties {
            read_saturation_length: reads.saturation_length,
            write_saturation_length: writes.saturation_length,
            ..DiskProperties::from_rates(&rates, vec![target])
        };
        let base_latency = Duration::from_nanos((base.latency_us.p50 * 1e3) as u64);
        note(format_args!(
            "{}# base latency: {:.0} us. A short probe is inaccurate: the disk may do more, or \
             less in the long run.",
            Properties { disks: vec![properties.clone()] }.to_yaml(),
            base.latency_us.p50
        ));
        let disk = Disk::new(&properties, PropertiesSource::Probe)?;
        Ok(Disk { base_latency: Some(base_latency), ..disk })
    }

    fn direction(
        &self,
        storage: &Storage,
        [small, bulk]: [JobKind; 2],
    ) -> Result<Direction, Failure> {
        let depth = (DEPTH / self.shard_count).clamp(1, SHARD_DEPTH_MAX);
        let bulk_depth = |reqsize: u32| (BULK_BYTES / reqsize / self.shard_count).clamp(1, 32);
        let iops = self.run(storage, &self.load(small, SMALL, depth), DURATION)?.iops;
        let sizes = [LARGE, LARGEST];
        let mut rates = [const { Vec::new() }; 2];
        for _ in 0..TURNS {
            for (rates, reqsize) in rates.iter_mut().zip(sizes) {
                let load = self.load(bulk, reqsize, bulk_depth(reqsize));
                let class = self.run(storage, &load, DURATION / TURNS)?;
                rates.push(class.bandwidth_bytes_per_second as f64 / f64::from(reqsize));
            }
        }
        let points: Vec<CostPoint> =
            rates.iter().zip(sizes).map(|(rates, size)| CostPoint::of_rates(size, rates)).collect();
        let Saturation { bytes, bandwidth } = saturation_of(&points);
        Ok(Direction {
            iops: (iops as u64).max(1),
            bandwidth: (bandwidth as u64).max(1),
            saturation_length: bytes.filter(|&bytes| bytes > u64::from(LARGE)),
        })
    }

    /// Runs a load for a moment.
    fn run(
        &self,
        storage: &Storage,
        jobs: &JobFile,
        duration: Duration,
    ) -> Result<ClassResult, Failure> {
        let Run { result, failed } = run(&Plan {
            title: "probing the disk",
            jobs,
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
            warmup: WARMUP,
            duration,
            seed: 1,
            backend: self.backend,
            interrupt: self.interrupt,
        })?;
        warn_if_busy(result.processor_wait);
        if let Some((_, first)) = failed {
            return Err(not_probed(Failure::Run(first.to_string())));
        }
        let class = result.classes.into_iter().next().filter(|class| class.requests > 0);
        class.ok_or_else(|| {
            not_probed(Failure::Run(format!("no request was completed within {duration:?}")))
        })
    }

    /// The load of all shards with this many requests of one kind in the disk.
    fn load(&self, kind: JobKind, reqsize: u32, depth: u32) -> JobFile {
        let file_size = (BYTES / u64::from(self.shard_count)).max(SHARD_BYTES_MIN);
        let job = Job {
            name: String::from("probe"),
            kind,
            shards: (0..self.shard_count).collect(),
            file_size: file_size >> 20 << 20,
            files_count: 1,
            class: 0,
            parallelism: depth,
            start: Duration::ZERO,
            pace: Pace::Closed(Think::default()),
            limit: None,
            reqsize,
            iov_count: 1,
            execution_time: Duration::ZERO,
            fsync_every: None,
            options: FileOptions::default(),
            steps: None,
        };
        let class =
            ClassSpec { name: job.name.clone(), shares: 1, parent: None, bandwidth_max: None };
        JobFile { jobs: vec![job], classes: vec![class], groups: Vec::new() }
    }
}

/// Says, once, that a probe that waits for a processor finds the disk slower than it is.
fn warn_if_busy(processor_wait: Option<f64>) {
    static WARNED: Once = Once::new();
    let Some(part) = processor_wait.filter(|&part| part >= PROCESSOR_WAIT_MAX) else { return };
    WARNED.call_once(|| {
        note(format_args!(
            "warning: the machine is busy: the probe waited {:.0} % of its time for a processor, \
             so the disk may do far more; run this on an idle machine, or name --properties",
            part * 100.0
        ));
    });
}

/// Who cannot have the disk probed can describe it.
fn not_probed(failure: Failure) -> Failure {
    let or_described = |why: String| {
        format!(
            "cannot probe the disk: {why}. Or describe the disk in a file, and name it with \
             --properties"
        )
    };
    match failure {
        Failure::Run(why) => Failure::Run(or_described(why)),
        Failure::Input(why) => Failure::Input(or_described(why)),
        other => other,
    }
}
