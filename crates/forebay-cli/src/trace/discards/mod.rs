//! `forebay trace discards`.

mod report;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use forebay_trace::{Direction, KernelEvent, Lost, Recording, SlotCounts, Summary};

use super::Format;
use super::subject::Subject;
use super::watch::{WatchOptions, watch};
use crate::console::{json, note, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::whole_file;
use report::Report;
use text::text;

/// Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and name
/// their bursts and the period of these.
///
/// Counts for a time, or while a command runs. File systems send discards when they flush their
/// log, which for XFS may be half a minute after files were deleted: see --after. Needs root;
/// nothing has to be mounted or installed. Ctrl-C ends the counting and shows what was counted.
/// The exit code is that of the command, if one was run; 130 after Ctrl-C otherwise.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    watch: WatchOptions,
    /// A file for what was counted, instead of stdout, which the command writes to as well
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to print what was counted
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// The command.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if let Some(output) = &options.output {
        whole_file::check(output)?;
    }
    let subject = Subject::find(options.watch.device.as_ref(), options.watch.dir.as_ref())?;
    let interrupt = Interrupt::on_signals()?;
    let recording = Recording::discards(&subject.numbers, subject.tracepoint);
    let mut recording = recording.map_err(|error| Failure::Run(error.to_string()))?;
    note(format_args!("counting discards of {}", subject.name()));
    let mut counts = SlotCounts::default();
    let code = watch(&options.watch, &mut recording, &interrupt, |since, event| {
        if let KernelEvent::Block(event) = event
            && event.direction == Direction::Discard
        {
            counts.add(since, event.bytes);
        }
    })?;
    let length = recording.elapsed();
    let Lost { events, lines } = recording.lost();
    drop(recording);
    let report = Report {
        version: 1,
        devices: subject.names.clone(),
        summary: Summary::new(&counts, length),
        lost_requests: events + counts.uncounted(),
        unknown_lines: lines,
    };
    let results = match options.json || options.format == Format::Json {
        true => json(&report)?,
        false => text(&report, &subject.name()),
    };
    match &options.output {
        Some(output) => whole_file::put(output, &results)?,
        None => print(&results)?,
    }
    Ok(code)
}
