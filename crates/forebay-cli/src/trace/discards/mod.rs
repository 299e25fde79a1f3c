//! `forebay trace discards`.

mod report;
mod text;

use std::process::ExitCode;

use clap::Args;
use forebay_trace::{Direction, KernelEvent, Lost, Recording, SlotCounts, Summary};

use super::output::OutputOptions;
use super::subject::Subject;
use super::watch::{WatchOptions, watch};
use crate::console::note;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
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
    #[command(flatten)]
    output: OutputOptions,
}

/// The command.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    options.output.check()?;
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
    options.output.put(&report, || text(&report, &subject.name()))?;
    Ok(code)
}
