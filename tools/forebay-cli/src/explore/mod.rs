//! `forebay explore`: which mixes of reads and writes a disk carries within a latency.

mod fits;
mod kept;
mod locks;
mod measured;
mod output;
mod what_if;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use forebay_config::ByteSize;
use forebay_explore::{Goal, Report, text};
use forebay_sim::surface::Axes;

use crate::console::{Format, json, print};
use crate::failure::Failure;
use crate::whole_number;
use crate::{span, whole_file};
use output::Pictures;
use what_if::WhatIf;

/// Rates of each direction in the whole matrix, as diskplorer has them.
const RATES: u32 = 21;
/// Bytes of data below a directory, unless stated.
const DATA_BYTES: u64 = 2 << 30;

/// Find out which mixes of reads and writes a disk serves within a latency goal.
///
/// Measures read latencies under mixed loads of reads and writes, on the disk below DIR or on a
/// simulated disk, or takes them from a surface that was measured earlier. For each goal it fits a
/// region of loads that meet the goal. Loads that were left out of the fit test it: `unsafe` is the
/// part of the allowed loads that miss the goal, and `rejected` the part of the loads meeting the goal
/// that it forbids. Both are compared with the straight line between the disk's rates.
///
/// Its files below DIR have no names, so they disappear at the end, even after a kill. Each load
/// lasts --seconds. Without --full only the loads near the border of the goals are measured, at
/// most a sixth.
///
/// If no load meets a goal, the region of the smallest goal that a load meets is shown instead.
/// Everything is saved, and the exit code is 3.
#[derive(Args)]
#[command(group = ArgGroup::new("source").required(true).multiple(true)
    .args(["place", "from", "simulate", "what_if"]))]
pub(crate) struct Options {
    /// A directory on the disk to measure, or with --overwrite-device a block device
    #[arg(value_name = "DIR", conflicts_with_all = ["from", "simulate", "what_if"])]
    place: Option<PathBuf>,
    /// A surface measured earlier: CSV, or the result file (.json) of diskplorer
    #[arg(long, value_name = "FILE", conflicts_with = "simulate")]
    from: Option<PathBuf>,
    /// Measure a simulated disk, a preset or a disk file, under virtual time
    #[arg(long, alias = "disk", value_name = "NAME|FILE")]
    simulate: Option<String>,
    /// Measure all combinations of 21 rates of reads and 21 rates of writes
    #[arg(long, conflicts_with = "from")]
    full: bool,
    /// Measure all combinations of N rates of reads and N rates of writes, 4 to 32
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(4..=32),
          conflicts_with_all = ["from", "full"])]
    grid: Option<u32>,
    #[command(flatten)]
    load: LoadOptions,
    /// Write the surface as CSV for --from [default: explore.csv if DIR is measured; an existing
    /// file is renamed to explore.csv.old]
    #[arg(long, value_name = "FILE.csv")]
    save: Option<PathBuf>,
    /// Continue the interrupted measurement of DIR, whose loads are saved next to the file of
    /// --save
    #[arg(long, conflicts_with_all = ["from", "simulate"])]
    resume: bool,
    /// A goal: a percentile of reads and its longest latency, such as p95=1ms; may be repeated
    /// [default: p95 of 0.5, 1 and 2 ms, as far as the disk meets them]
    #[arg(long, value_name = "GOAL")]
    goal: Vec<Goal>,
    /// Replace the regions in this forebay.yaml, which `tune` wrote
    #[arg(long, short, value_name = "forebay.yaml")]
    output: Option<PathBuf>,
    /// Replace them even if the highest rates of the surface are less than half or more than twice
    /// those of that file
    #[arg(long, alias = "another-disk", requires = "output")]
    other_disk: bool,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    what_if: WhatIf,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// How the disk is loaded.
#[derive(Args)]
struct LoadOptions {
    /// The duration of each load, after a warm-up of a quarter of it, or a third on a simulated
    /// disk [default: 2s; on a simulated disk until 10,000 reads are done]
    #[arg(long, conflicts_with = "from", value_name = "TIME", value_parser = span::parse_positive)]
    seconds: Option<Duration>,
    /// The size of a read
    #[arg(long, conflicts_with = "from", value_name = "SIZE", default_value = "4kB")]
    read_size: ByteSize,
    /// The size of a write
    #[arg(long, conflicts_with = "from", value_name = "SIZE", default_value = "128kB")]
    write_size: ByteSize,
    /// The size of the data [default: 2GB below DIR, half to read and half to write; a whole
    /// simulated disk, for both]
    #[arg(long, conflicts_with = "from", value_name = "SIZE")]
    data_size: Option<ByteSize>,
    /// Discard written data at the rate of the writes: by holes in files, or by discards on devices
    #[arg(long, conflicts_with = "from")]
    trim: bool,
    /// On a simulated disk: discard written data after this time, such as 10s
    #[arg(long, requires = "trim", conflicts_with_all = ["from", "place"], value_name = "TIME",
          value_parser = span::parse)]
    trim_after: Option<Duration>,
    /// On a simulated disk: the requests whose latencies are measured. Regions in a forebay.yaml
    /// are always of reads
    #[arg(long, value_enum, default_value_t = Timed::Reads, conflicts_with_all = ["from", "place"],
          value_name = "REQUESTS")]
    latency_of: Timed,
    /// On a simulated disk: the two quantities to combine. Only regions of rates go into a
    /// forebay.yaml
    #[arg(long, value_enum, default_value_t = Combined::Rates, conflicts_with_all = ["from", "place"],
          value_name = "WHAT")]
    combine: Combined,
    /// For --combine sizes: reads and writes per second, such as 10000,2000
    #[arg(long, value_delimiter = ',', value_name = "READS,WRITES",
          value_parser = whole_number::within::<u32>(1..=10_000_000))]
    at_rates: Vec<u32>,
    /// DIR is a block device, and its data may be destroyed
    #[arg(long, alias = "device", conflicts_with_all = ["from", "simulate"])]
    overwrite_device: bool,
    /// The properties of the disk, which set the highest rates: an io-properties file, or a
    /// forebay.yaml [default: the disk is probed for some seconds]
    #[arg(long, conflicts_with_all = ["from", "simulate"], value_name = "FILE")]
    properties: Option<PathBuf>,
}

/// Of which requests the latencies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Timed {
    /// Reads
    Reads,
    /// Writes
    Writes,
}

/// What the loads of a surface combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Combined {
    /// Rates of writes and of reads
    Rates,
    /// Rates of large reads, of --write-size, and of reads
    Reads,
    /// Sizes of writes and of reads up to --write-size and --read-size, at --at-rates
    Sizes,
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let is_json = options.json || options.format == Format::Json;
    if let Some(path) = &options.what_if.what_if {
        return options.what_if.answer(path, &options.goal, options.simulate.as_deref(), is_json);
    }
    let goals = fits::goals(&options.goal)?;
    options.check_outputs()?;
    let measured = measured::surface(options, &goals)?;
    if let Some(path) = options.save_path() {
        if options.save.is_none() {
            output::set_aside(&path)?;
        }
        measured.save(&path)?;
    }
    let (name, surface) = (&measured.name, &measured.surface);
    let found = fits::of(surface, &goals);
    print(&if is_json {
        json(&Report::new(name, surface, &found.fits, &found.unmet))?
    } else {
        text(name, surface, &found.fits, &found.remarks())
    })?;
    options.pictures.write((name, surface), &found.fits)?;
    if let Some(path) = &options.output {
        if surface.is_of_writes() || surface.axes() != Axes::Rates {
            return Err(Failure::Input(format!(
                "`{}` is not changed: regions are of the latencies of reads, over rates of writes and \
                 reads. Run `explore` without --latency-of and --combine for it",
                path.display()
            )));
        }
        let fits = if found.is_offer { &[] } else { &found.fits[..] };
        output::regions(path, fits, options.other_disk)?;
    }
    found.check(name, options.goal.is_empty(), options.from.is_some())
}

impl LoadOptions {
    /// How long each load is measured below a directory.
    fn duration(&self) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(2))
    }

    /// Bytes of data below a directory.
    fn data_bytes(&self) -> u64 {
        self.data_size.map_or(DATA_BYTES, |size| size.0)
    }
}

impl Options {
    /// Whether all files can be written: better known before minutes of measuring.
    fn check_outputs(&self) -> Result<(), Failure> {
        self.save_path().as_deref().map(whole_file::check).transpose()?;
        self.pictures.check()?;
        self.output.as_deref().map_or(Ok(()), output::check_regions)
    }

    /// Where the surface goes, if anywhere.
    fn save_path(&self) -> Option<PathBuf> {
        self.save.clone().or_else(|| self.place.as_ref().map(|_| PathBuf::from("explore.csv")))
    }

    /// Rates of each direction.
    fn rates(&self) -> u32 {
        self.grid.unwrap_or(RATES)
    }

    /// Whether every combination of them is measured.
    fn is_full(&self) -> bool {
        self.full || self.grid.is_some()
    }
}
