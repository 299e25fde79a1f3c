//! `forebay info`: what the scheduler makes of a disk's figures.

mod budget;
mod costs;
mod disk;
mod io_cost;
mod presets;
mod queues;
mod report;
#[cfg(test)]
mod tests;
mod unmet_rates;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay::properties::Properties;
use forebay_block::Machine;
use forebay_core::SHARDS_MAX;
use forebay_govern::DiskCosts;

use crate::console::{json, print};
use crate::failure::Failure;
use crate::load_options::{RegionOptions, TargetOption};
use crate::span;
use crate::whole_number;
use disk::DescribedDisk;
use queues::Threads;
use report::Report;

/// Show the settings that the scheduler derives from a disk's rates.
///
/// For each disk it shows how much work may be in the disk, the longest wait of an urgent request,
/// the number of I/O queues, and the costs of requests, compared with Seastar's model. Nothing is
/// measured. Without a file or preset, it shows the assumptions for an unknown disk.
#[derive(Args)]
pub(crate) struct Options {
    /// The properties of the disks: an io-properties file, or a forebay.yaml, which has more
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// A preset or a disk file; may be repeated
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "properties")]
    disk: Vec<String>,
    /// List the cloud machines and volumes that --disk knows, and the sources of their figures
    #[arg(long, exclusive = true)]
    list: bool,
    /// The mountpoint of the disk of --disk, for --format properties and io.cost
    #[arg(long, value_name = "DIR", requires = "disk", default_value = "/var/lib/store")]
    mountpoint: PathBuf,
    /// Number of shards [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=SHARDS_MAX as u64))]
    shards: Option<u32>,
    /// Number of NUMA nodes [default: those of this machine]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=1024))]
    numa_nodes: Option<u32>,
    /// The disk time with which the window begins, unless the disk needs more
    #[arg(long, value_name = "TIME", value_parser = span::parse_positive)]
    latency_goal: Option<Duration>,
    #[command(flatten)]
    region: RegionOptions,
    /// A latency target, which applies while other requests wait: p95=1ms of reads from enqueueing
    /// to completion, writes:p95=5ms of writes, disk:p95=1ms only of the time in the disk, or off
    /// [default: that of --properties]
    #[arg(long, value_name = "TARGET")]
    latency_target: Option<TargetOption>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people
    Text,
    /// JSON
    Json,
    /// An io-properties file of the disks, or a forebay.yaml if one of them seeks or has a target
    Properties,
    /// Settings for the kernel's io.cost (cgroup v2): its lines, a file for the hardware database
    /// of systemd, and units
    #[value(name = "io.cost")]
    IoCost,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.list {
        return print(&presets::list()?);
    }
    let disks = options.known()?.into_iter();
    let known = disks.map(|disk| disk.with_target(options.latency_target));
    let known = known.collect::<Result<Vec<_>, _>>()?;
    if options.format == Format::Properties {
        return print(&presets::properties_file(&known)?);
    }
    if options.format == Format::IoCost {
        return print(&io_cost::text(&known, &Machine::this())?);
    }
    let report = Report::new(&known, options.threads(), options.latency_goal.unwrap_or_default());
    print(&match options.format {
        Format::Json => json(&report)?,
        Format::Text | Format::Properties | Format::IoCost => report.text(),
    })
}

/// How many I/O queues to have for each disk of a file with figures, on this machine and with the
/// usual latency goal, and why.
pub(crate) fn queues(properties: &Path) -> Result<Vec<String>, Failure> {
    let threads = Threads::here(None, None);
    let disks = Properties::load(properties)?.disks;
    let known = disks.iter().map(|disk| DescribedDisk::from_file(disk, properties));
    let known = known.collect::<Result<Vec<_>, _>>()?;
    Ok(Report::new(&known, threads, Duration::ZERO).queues())
}

/// The kernel's settings for the disk of a file with figures of one disk.
pub(crate) fn disk_costs(properties: &Path) -> Result<DiskCosts, Failure> {
    match Properties::load(properties)?.disks.as_slice() {
        [disk] => io_cost::disk_costs(&DescribedDisk::from_file(disk, properties)?),
        _ => Err(Failure::Input(format!(
            "{} describes several disks, or none; give a file of the one that is governed",
            properties.display()
        ))),
    }
}

impl Options {
    /// The disks asked for, or else the one that is assumed.
    fn known(&self) -> Result<Vec<DescribedDisk>, Failure> {
        if let Some(path) = &self.properties {
            let mut properties = Properties::load(path)?;
            self.region.apply(&mut properties);
            return properties
                .disks
                .iter()
                .map(|disk| DescribedDisk::from_file(disk, path))
                .collect();
        }
        if self.disk.is_empty() {
            return Ok(vec![DescribedDisk::unmeasured()]);
        }
        self.disk.iter().map(|name| presets::known(name, &self.mountpoint)).collect()
    }

    fn threads(&self) -> Threads {
        Threads::here(self.shards, self.numa_nodes)
    }
}
