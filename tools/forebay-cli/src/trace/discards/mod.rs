//! `forebay trace discards`.

mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use forebay_trace::{
    Action, Direction, KernelEvent, Lost, Recorded, Recording, SlotCounts, Summary,
};

use super::output::OutputOptions;
use super::recorded_text;
use super::subject::Subject;
use super::watch::{WatchOptions, watch};
use crate::console::note;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use text::{Report, text};

/// Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and report
/// their bursts and the period of the bursts.
///
/// Counts for a given time, while a command runs, or in a recorded trace (--from, without root).
/// File systems send discards when they flush their log, which for XFS may be half a minute after
/// files were deleted: see --after. Nothing has to be mounted or installed. Ctrl-C ends the
/// counting and shows the counts. The exit code is that of the command, if one was run; otherwise
/// 130 after Ctrl-C.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    watch: WatchOptions,
    /// A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the
    /// kernel's trace_pipe; - for stdin
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["device", "dir", "duration", "after", "command"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

/// The command.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    options.output.check(options.from.as_deref())?;
    let (name, report, code) = match &options.from {
        Some(path) => recorded(path)?,
        None => live(&options.watch)?,
    };
    options.output.put(&report, || text(&report, &name))?;
    Ok(code)
}

/// Counts in a recorded trace: what was issued to disks, or without any of that, what was queued.
fn recorded(path: &Path) -> Result<(String, Report, ExitCode), Failure> {
    let (name, text) = recorded_text::open(path)?;
    let (mut queued, mut issued) = (SlotCounts::default(), SlotCounts::default());
    let read = Recorded::read(text, |since, event| {
        let KernelEvent::Block(event) = event else { return };
        match (event.direction, event.action) {
            (Direction::Discard, Action::Queue) => queued.add(since, event.bytes),
            (Direction::Discard, Action::Issue) => issued.add(since, event.bytes),
            _ => {}
        }
    });
    let read = read.map_err(|error| Failure::Input(format!("`{name}`: {error}")))?;
    let of_issued = Summary::new(&issued, read.length);
    let (summary, counts) = match of_issued.requests {
        0 => (Summary::new(&queued, read.length), queued),
        _ => (of_issued, issued),
    };
    let report = Report {
        version: 1,
        devices: Vec::new(),
        summary,
        lost_requests: read.lost + counts.uncounted(),
        unknown_lines: read.unknown_lines,
    };
    Ok((name, report, ExitCode::SUCCESS))
}

/// Counts what happens.
fn live(options: &WatchOptions) -> Result<(String, Report, ExitCode), Failure> {
    let subject = Subject::find(options.device.as_ref(), options.dir.as_ref())?;
    let interrupt = Interrupt::on_signals()?;
    let recording = Recording::discards(&subject.numbers, subject.tracepoint);
    let mut recording = recording.map_err(|error| Failure::Run(error.to_string()))?;
    note(format_args!("counting discards of {}", subject.name()));
    let mut counts = SlotCounts::default();
    let code = watch(options, &mut recording, &interrupt, |since, event| {
        if let KernelEvent::Block(event) = event
            && event.direction == Direction::Discard
        {
            counts.add(since, event.bytes);
        }
    })?;
    let length = recording.elapsed();
    let Lost { events, lines } = recording.lost();
    drop(recording);
    let name = subject.name();
    let report = Report {
        version: 1,
        devices: subject.names,
        summary: Summary::new(&counts, length),
        lost_requests: events + counts.uncounted(),
        unknown_lines: lines,
    };
    Ok((name, report, code))
}
