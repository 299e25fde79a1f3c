//! `forebay disk serve`: a simulated disk in real time, as a file.

mod loop_device;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay::properties::Properties;
use forebay_config::ByteSize;
use forebay_core::Op;
use forebay_serve::{LatencySummary, ServeConfig, Served, WriteCacheConfig, WriteCacheStats};
use forebay_sim::spec::DiskSpec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::console::{note, print};
use crate::disk::properties_of;
use crate::failure::Failure;
use crate::load_options::seed;
use crate::whole_file;
use loop_device::LoopDevice;

/// How often it looks for signals and for an unmount by somebody else.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Serve simulated disks in real time.
#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Options),
}

/// Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O.
///
/// Requests take as long as on the simulated disk, and fail and hang like there. The data is kept
/// until the command ends. SIGUSR1 prints counters. Ctrl-C or SIGTERM unmounts the disk and prints
/// them; requests that hang at that time fail. With --loop the disk is also a block device.
#[derive(Args)]
pub(crate) struct Options {
    /// The disk: a preset, a disk file, or a measured latency surface (.csv, .json)
    #[arg(long, value_name = "NAME|FILE")]
    disk: String,
    /// Size of a sector in bytes, 512 or 4096 [default: that of the disk]
    #[arg(long, value_name = "BYTES")]
    sector: Option<u32>,
    /// Size of the disk, at most that of the simulated disk, which is the default
    #[arg(long, value_name = "SIZE")]
    capacity: Option<ByteSize>,
    /// Keep the data in this file, which is created or emptied, instead of in memory
    #[arg(long, value_name = "FILE")]
    backing: Option<PathBuf>,
    /// The most data to keep in memory; writes beyond it fail with ENOSPC
    #[arg(long, value_name = "SIZE", default_value = "1GB", conflicts_with = "backing")]
    memory: ByteSize,
    /// Seed of the disk
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    seed: u64,
    /// Give the disk a volatile write cache of this size: a power cut loses a part of the writes
    /// that were not flushed. SIGUSR2 cuts the power, and turns it on again; in between all
    /// requests fail with EIO. --seed decides what is lost
    #[arg(long, value_name = "SIZE")]
    volatile_cache: Option<ByteSize>,
    /// Cut the power after this many writes
    #[arg(long, value_name = "N", requires = "volatile_cache")]
    cut_after_writes: Option<u64>,
    /// Attach it as a block device too, which needs root and the program losetup
    #[arg(long)]
    r#loop: bool,
    /// Write the disk's rates to a properties file, for `forebay bench --properties`
    #[arg(long, value_name = "FILE")]
    io_properties: Option<PathBuf>,
    /// Do not ask for real-time priority; a busy machine then disturbs the timing
    #[arg(long)]
    no_realtime: bool,
    /// An empty directory
    mountpoint: PathBuf,
}

/// The command.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    let Command::Serve(options) = command;
    options.io_properties.as_deref().map(whole_file::check).transpose()?;
    let spec = DiskSpec::resolve(&options.disk)?;
    let config = options.config(&spec)?;
    // from before the mount on, so that no signal leaves it behind
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]);
    let mut signals =
        signals.map_err(|error| Failure::Run(format!("cannot listen for signals: {error}")))?;
    let served = Served::mount(spec.build(options.seed), &config, &options.mountpoint)
        .map_err(|error| refused(&error))?;
    // before the disk is announced, and writes
    if let Some(writes) = options.cut_after_writes {
        served.cut_power_after(writes);
    }
    announce(&spec, &config, &served);
    let device = options.r#loop.then(|| LoopDevice::attach(served.path(), config.sector));
    let mut device = device.transpose()?;
    let place = device.as_ref().map_or_else(|| served.path(), LoopDevice::path);
    // A reader of this message may open the file at once.
    if let Some(file) = &options.io_properties {
        write_properties(file, &spec, place)?;
    }
    if device.is_some() {
        note(format_args!("block device: {}", place.display()));
    }
    watch(&served, &mut signals)?;
    let summary = summary(&served);
    device.iter_mut().for_each(LoopDevice::detach);
    drop(served);
    drop(device);
    print(&summary)
}

/// Does what signals ask for until one asks for the end, or somebody else has unmounted the disk.
fn watch(served: &Served, signals: &mut Signals) -> Result<(), Failure> {
    let mut cuts = 0;
    let mut is_full = false;
    while !served.is_ended() {
        if served.was_memory_full() && !is_full {
            is_full = true;
            note(
                "the memory for data is full: writes to new offsets fail with ENOSPC until data \
                 is discarded; serve the disk again with a larger --memory, or with --backing \
                 FILE",
            );
        }
        for signal in signals.pending() {
            match (signal, served.write_cache()) {
                (SIGUSR1, _) => print(&summary(served))?,
                (SIGUSR2, Some(WriteCacheStats { is_off: true, .. })) => {
                    served.restore_power().map_err(|error| Failure::Run(error.to_string()))?;
                    note("the power is back");
                }
                (SIGUSR2, Some(_)) => served.cut_power_after(0),
                (SIGUSR2, None) => note("no power cut: it needs --volatile-cache"),
                _ => return Ok(()),
            }
        }
        if let Some(cache) = served.write_cache()
            && cache.cuts > cuts
        {
            cuts = cache.cuts;
            note(format_args!("the power is off: {} writes lost so far", cache.lost));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Writes down what a disk that is found at `place` can do.
fn write_properties(file: &Path, spec: &DiskSpec, place: &Path) -> Result<(), Failure> {
    let simulated = spec.build(0);
    let disk = properties_of(&*simulated, vec![place.to_owned()]);
    whole_file::put(file, &Properties { disks: vec![disk] }.to_yaml_alone())
}

impl Options {
    fn config(&self, spec: &DiskSpec) -> Result<ServeConfig, Failure> {
        let own = spec.capacity();
        let capacity = self.capacity.map_or(own, |size| size.0);
        if capacity > own {
            return Err(Failure::Input(format!(
                "--capacity: {capacity} bytes, but the disk {} has {own}; use at most that, or \
                 set `capacity` in the disk file",
                spec.name()
            )));
        }
        let sector = match self.sector {
            Some(sector) => sector,
            None => u32::try_from(spec.sector())
                .map_err(|_| Failure::Input("the disk's sector is too large".into()))?,
        };
        Ok(ServeConfig {
            sector,
            backing: self.backing.clone(),
            memory_max: self.memory.0,
            realtime: !self.no_realtime,
            write_cache: self
                .volatile_cache
                .map(|size| WriteCacheConfig { size: size.0, seed: self.seed }),
            ..ServeConfig::new(capacity)
        })
    }
}

fn refused(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::Input(error.to_string()),
        _ => Failure::Run(error.to_string()),
    }
}

fn announce(spec: &DiskSpec, config: &ServeConfig, served: &Served) {
    note(format_args!(
        "serving {} as {}: {}, sectors of {}",
        spec.name(),
        served.path().display(),
        room(config),
        config.sector
    ));
    note(format_args!("own overhead {:.1?}, subtracted from the disk's time", served.overhead()));
    match served.realtime() {
        Ok(()) => note("real-time priority: yes"),
        Err(reason) => note(format_args!("real-time priority: no ({reason})")),
    }
}

/// How much data the disk holds: where that is kept in memory, seldom its nominal size.
fn room(config: &ServeConfig) -> String {
    let ServeConfig { capacity, memory_max, .. } = *config;
    if config.backing.is_some() || memory_max >= capacity {
        return format!("{capacity} bytes");
    }
    format!("{memory_max} bytes of data at most (--memory), on a disk of {capacity}")
}

/// What the disk has done, for people.
fn summary(served: &Served) -> String {
    let stats = served.stats();
    let mut text = String::new();
    for (op, name) in Op::ALL.into_iter().zip(["reads", "writes", "discards", "flushes"]) {
        let requests = stats.of(op);
        text += &format!(
            "{name:<9} {:>12} {:>18} bytes {:>8} failed\n",
            requests.completed, requests.bytes, requests.failed
        );
    }
    text += &format!("{:<9} {:>12}\n", "waiting", stats.in_flight);
    if let Some(WriteCacheStats { cuts, unflushed, lost, kept, .. }) = served.write_cache() {
        text += &format!("{:<9} {unflushed:>12}\n", "unflushed");
        text += &format!("{:<9} {cuts:>12} {lost:>12} lost {kept:>12} kept\n", "cuts");
    }
    text += &latency_line("latency", stats.latency);
    text += &latency_line("lateness", stats.lateness);
    text
}

fn latency_line(name: &str, summary: LatencySummary) -> String {
    let LatencySummary { mean, p50, p99, max } = summary;
    format!("{name:<9} mean {mean:.1?}, p50 {p50:.1?}, p99 {p99:.1?}, max {max:.1?}\n")
}
