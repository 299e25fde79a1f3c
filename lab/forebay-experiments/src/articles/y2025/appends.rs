//! Appends of 128 KiB to an array whose disks complete sectors of which they were given a part.

use forebay_config::Source;
use forebay_core::Policy;
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;

use super::placement::ArrayLoad;
use super::traced_array::TracedArray;
use crate::experiment::Seed;
use crate::scenario::{job, pace_window, run as simulate};

const MEMBER: &str = include_str!("disk-completing-sectors.yaml");
const SLICE_NANOS: u64 = 1_000_000;

/// The offset of requests from the borders of physical sectors, in bytes, as on a file system with
/// blocks of 1 KiB.
pub(crate) const MISALIGNED: u64 = 1024;

/// How writes are sent: their offset from the borders of sectors, and whether without a scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteVariant {
    pub(crate) name: &'static str,
    pub(crate) off: u64,
    pub(crate) is_open: bool,
}

/// What the array is, for reports.
pub(crate) fn array(load: ArrayLoad) -> String {
    let (members, chunk) = (load.members, load.chunk_text());
    format!(
        "RAID0 of {members} presets nvme-2025 (3.22 GB/s each, sectors of 4 KiB: published), chunk \
         {chunk}; a part of a sector waits for the rest while 2 MB are written, then costs 22 us \
         (both chosen)"
    )
}

/// What one run gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendFigures {
    pub(crate) gb_per_second: f64,
    pub(crate) disk_us: f64,
    pub(crate) queue_us: f64,
}

/// A run of this load, in which the file of each shard begins at one of `starts`; without a scheduler
/// if `is_open`.
pub(crate) fn append(
    seed: Seed,
    load: ArrayLoad,
    starts: Vec<u64>,
    is_open: bool,
    millis: u64,
) -> Result<AppendFigures, String> {
    let member =
        DiskSpec::parse(&Source::new("disk", MEMBER)).map_err(|error| error.to_string())?;
    let members = (0..u64::from(load.members)).map(|index| member.build(seed.0 + index)).collect();
    let jobs = load.jobs()?;
    let (array, _) = TracedArray::new(load.chunk, members, starts, SLICE_NANOS)?;
    let array = Box::new(array);
    let policy = if is_open { Policy::Unlimited } else { pace_window(&*array) };
    let mut config = seed.config(jobs, array, millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let load = job(&outcome, "load")?;
    Ok(AppendFigures {
        gb_per_second: load.bandwidth_bytes_per_second as f64 / 1e9,
        disk_us: load.disk_us.mean,
        queue_us: load.queue_us.mean,
    })
}
