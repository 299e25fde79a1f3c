//! Reads alongside deletes, on the file system and the disk of all tables.

use core::num::NonZeroU64;
use core::time::Duration;

use forebay_config::Source;
use forebay_core::Policy;
use forebay_load::job_file::{JobKind, Pace};
use forebay_load::results::model::LatencyResult;
use forebay_sim::disk::SimDisk;
use forebay_sim::file_system::FileSystem;
use forebay_sim::simulation::{SchedulerConfig, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::experiment::Seed;
use crate::scenario;

pub(crate) const MIB: u64 = 1 << 20;
/// Reads per second of most tables.
pub(crate) const READS: u64 = 4000;
/// Fibers of reads. These are so seldom late for their next ones that it makes no difference who
/// counts.
const FIBERS: u64 = 500;

/// What is deleted alongside the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletes {
    None,
    /// This many files are unlinked a second.
    Unlink {
        files: u64,
        file_size: u64,
        extent_size: u64,
    },
    /// This many holes are punched a second; each is followed by a flush of the file, or not.
    Punch {
        holes: u64,
        hole: u64,
        file_size: u64,
        extent_size: u64,
        flush: bool,
    },
}

/// The disk of all tables, and the file system on it.
pub(crate) fn disk_spec() -> Result<DiskSpec, String> {
    let text = include_str!("disk.yaml");
    DiskSpec::parse(&Source::new("disk.yaml", text)).map_err(|error| error.to_string())
}

/// The file system of the disk file, whose log is written so often.
pub(crate) fn file_system(sync_period: Duration) -> Result<FileSystem, String> {
    let spec = disk_spec()?.file_system().unwrap_or_default();
    let first_sync = spec.first_sync.min(sync_period / 2);
    Ok(FileSystem { sync_period, first_sync, ..spec })
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) deletes: Deletes,
    pub(crate) file_system: FileSystem,
    /// Reads of 512 bytes a second.
    pub(crate) reads: u64,
    /// This many fibers send them, each of which waits for its own and skips what it misses, as
    /// io_tester does it; an open loop if not given.
    pub(crate) waiting_fibers: Option<u64>,
    pub(crate) seconds: u64,
    pub(crate) seed: Seed,
}

impl Run {
    /// The configuration, with nothing that schedules: what io_tester does.
    pub(crate) fn config(&self, disk: Box<dyn SimDisk>) -> Result<SimulationConfig, String> {
        let fibers = self.waiting_fibers.unwrap_or(FIBERS);
        let mut text = format!(
            "- {{name: reads, type: randread, shards: [0], data_size: 64GB, \
             options: {{pause_distribution: poisson}}, \
             shard_info: {{parallelism: {fibers}, rps: {}, reqsize: 512}}}}\n",
            self.reads / fibers
        );
        let (kind, size, count, rate, reqsize, extent) = match self.deletes {
            Deletes::None => ("", 0, 0, 0, 0, 0),
            Deletes::Unlink { files, file_size, extent_size } => {
                let count = files * self.seconds + 1;
                ("unlink", file_size * count, count, files, 4096, extent_size)
            }
            Deletes::Punch { holes, hole, file_size, extent_size, .. } => {
                ("overwrite", file_size, 1, holes, hole, extent_size)
            }
        };
        if !kind.is_empty() {
            text.push_str(&format!(
                "- {{name: deletes, type: {kind}, shards: [0], data_size: {size}, \
                 files_count: {count}, options: {{extent_allocation_size_hint: {extent}}}, \
                 shard_info: {{parallelism: 1, rps: {rate}, reqsize: {reqsize}}}}}\n"
            ));
        }
        let mut jobs = scenario::jobs(&text, 1)?;
        for job in &mut jobs.jobs {
            if let (JobKind::RandRead, Pace::Open(rate)) = (job.kind, &mut job.pace) {
                rate.skips_missed = self.waiting_fibers.is_some();
            }
            if let (JobKind::Overwrite, Deletes::Punch { flush, .. }) = (job.kind, self.deletes) {
                job.kind = JobKind::Discard;
                job.fsync_every = NonZeroU64::new(u64::from(flush));
            }
        }
        let mut config = SimulationConfig::new(jobs, disk);
        config.seed = self.seed.0;
        config.warmup = Duration::ZERO;
        config.duration = Duration::from_secs(self.seconds);
        config.file_system = Some(self.file_system);
        config.scheduler =
            SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
        Ok(config)
    }

    /// What reads took, in microseconds.
    pub(crate) fn latencies(&self) -> Result<LatencyResult, String> {
        let config = self.config(disk_spec()?.build(self.seed.0))?;
        Ok(scenario::job(&scenario::run(config)?, "reads")?.latency_us)
    }
}
