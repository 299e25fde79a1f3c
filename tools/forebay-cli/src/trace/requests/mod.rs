//! `forebay trace requests`.

mod page;
mod report;
mod text;
mod watched;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use forebay_config::ByteSize;
use forebay_trace::{KernelEvent, Lost, Recorded, Recording, Requests};

use super::output::{self, OutputOptions};
use super::recorded_text;
use super::watch::{WatchOptions, watch};
use crate::console::note;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::whole_file;
use crate::whole_number;
use report::Report;
use watched::Stated;

/// Show how requests are aligned, where the kernel splits them and what that costs.
///
/// Traces for a given time, while a command runs, or reads a recorded trace (--from, without root).
/// For reads and writes it shows the alignment of requests, the latency of whole and of split
/// requests, requests across the chunks of an array, reads just before misaligned writes, discards,
/// and requests of io_uring that the kernel passed to threads; and it says what to do. Nothing has
/// to be mounted or installed. Ctrl-C ends the tracing and shows the results. The exit code is that
/// of the command, if one was run; otherwise 130 after Ctrl-C.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    watch: WatchOptions,
    /// A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the
    /// kernel's trace_pipe; - for stdin
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["device", "dir", "duration", "after", "command"])]
    from: Option<PathBuf>,
    /// The chunk size of the array, at whose borders requests are split [default: as the kernel
    /// states it, or as derived from the splits]
    #[arg(long, value_name = "SIZE", value_parser = chunk)]
    chunk: Option<u64>,
    /// The number of disks of a RAID0, to report disks with more than 1.5 times their part of the
    /// requests in flight [default: as the kernel states it]
    #[arg(long, value_name = "COUNT", requires = "chunk", value_parser = whole_number::within::<u32>(2..=1024))]
    members: Option<u32>,
    /// The block size of the disk: requests that begin or end within a block are misaligned
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block)]
    block: u64,
    /// Write a page with tables and charts too
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

const SECTOR_BYTES: u64 = 512;

fn chunk(text: &str) -> Result<u64, String> {
    let ByteSize(bytes) = text.parse().map_err(|error| format!("{error}"))?;
    match bytes {
        0 => Err("expected more than zero".into()),
        bytes if bytes.is_multiple_of(SECTOR_BYTES) => Ok(bytes),
        _ => Err("expected a multiple of 512 bytes".into()),
    }
}

fn block(text: &str) -> Result<u64, String> {
    let bytes = chunk(text)?;
    if bytes.is_power_of_two() { Ok(bytes) } else { Err("expected a power of two".into()) }
}

/// The command.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let from = options.from.as_deref();
    options.output.check(from)?;
    options.report.as_deref().map_or(Ok(()), |page| output::check(page, from))?;
    let stated =
        Stated { block_bytes: options.block, chunk: options.chunk, members: options.members };
    let (report, code) = match &options.from {
        Some(path) => (recorded(path, stated)?, ExitCode::SUCCESS),
        None => live(&options.watch, stated)?,
    };
    options.output.put(&report, || text::text(&report))?;
    if let Some(path) = &options.report {
        whole_file::put(path, &page::html(&report)?)?;
    }
    Ok(code)
}

/// Reads a recorded trace.
fn recorded(path: &Path, stated: Stated) -> Result<Report, Failure> {
    let (name, text) = recorded_text::open(path)?;
    let mut requests = Requests::new(&[], stated.unnamed());
    let read = Recorded::read(text, |since, event| see(&mut requests, since, event));
    let read = read.map_err(|error| Failure::Input(format!("`{name}`: {error}")))?;
    let summary = requests.summary();
    Ok(Report {
        version: 1,
        source: name,
        seconds: read.length.as_secs_f64(),
        findings: summary.findings(),
        lost_events: read.lost + summary.uncounted,
        unknown_lines: read.unknown_lines,
        unknown_first: (read.unknown_lines > 0).then_some(read.unknown_first),
        not_read: read.not_read,
        summary,
    })
}

/// Traces what happens.
fn live(options: &WatchOptions, stated: Stated) -> Result<(Report, ExitCode), Failure> {
    let watched = stated.watched(options.device.as_ref(), options.dir.as_ref())?;
    let is_all = options.device.is_none() && options.dir.is_none();
    let names: Vec<&str> = watched.iter().map(|device| device.name.as_str()).collect();
    let source = if is_all { "all disks".to_owned() } else { names.join(" and ") };
    let numbers = watched.iter().flat_map(|device| device.numbers.clone());
    let numbers = if is_all { Vec::new() } else { numbers.collect() };
    let interrupt = Interrupt::on_signals()?;
    let recording = Recording::requests(&numbers);
    let mut recording = recording.map_err(|error| Failure::Run(error.to_string()))?;
    note(format_args!("tracing requests of {source}"));
    let mut requests = Requests::new(&watched, stated.unnamed());
    let code = watch(options, &mut recording, &interrupt, |since, event| {
        see(&mut requests, since, event);
    })?;
    let seconds = recording.elapsed().as_secs_f64();
    let Lost { events, lines } = recording.lost();
    drop(recording);
    let summary = requests.summary();
    let report = Report {
        version: 1,
        source,
        seconds,
        findings: summary.findings(),
        lost_events: events + summary.uncounted,
        unknown_lines: lines,
        unknown_first: None,
        not_read: Vec::new(),
        summary,
    };
    Ok((report, code))
}

fn see(requests: &mut Requests, since: Duration, event: &KernelEvent) {
    match event {
        KernelEvent::Block(event) => requests.see(since, event),
        KernelEvent::AsyncWork { operation, .. } => requests.see_async_work(operation),
    }
}
