//! `forebay trace discards`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay_trace::{Lost, Recording, SlotCounts, Summary};

use super::program::{Program, exit_code};
use super::report::Report;
use super::subject::Subject;
use super::text::text;
use crate::console::{json, note, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{span, whole_file};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and name
/// their bursts and the period of these.
///
/// Counts for a time, or while a command runs. File systems send discards when they flush their
/// log, which for XFS may be half a minute after files were deleted: see --after. Needs root;
/// nothing has to be mounted or installed. Ctrl-C ends the counting and shows what was counted.
/// The exit code is that of the command, if one was run; 130 after Ctrl-C otherwise.
#[derive(Args)]
pub(crate) struct Options {
    /// A block device; of one made of others, the disks below it are traced. Unless this or --dir
    /// is given, all disks are traced
    #[arg(long, value_name = "DEV", conflicts_with = "dir")]
    device: Option<PathBuf>,
    /// A directory: the disks below its file system are traced
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How long to count, without a command
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::parse_positive)]
    #[arg(conflicts_with = "command")]
    duration: Duration,
    /// How long to go on counting after the command has ended
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::parse)]
    #[arg(requires = "command")]
    after: Duration,
    /// A file for what was counted, instead of stdout, which the command writes to as well
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How to print what was counted
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// A command, and what it takes: counts while it runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How counts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// JSON
    Json,
}

/// The command.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if let Some(output) = &options.output {
        whole_file::check(output)?;
    }
    let subject = Subject::find(options.device.as_ref(), options.dir.as_ref())?;
    let interrupt = Interrupt::on_signals()?;
    let recording = Recording::discards(&subject.numbers, subject.tracepoint);
    let mut recording = recording.map_err(|error| Failure::Run(error.to_string()))?;
    note(format_args!("counting discards of {}", subject.name()));
    let mut counts = SlotCounts::default();
    let code = watch(options, &mut recording, &mut counts, &interrupt)?;
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

/// Counts until the end; the exit code.
fn watch(
    options: &Options,
    recording: &mut Recording,
    counts: &mut SlotCounts,
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let mut program = match options.command.is_empty() {
        true => None,
        false => Some(Program::start(&options.command)?),
    };
    let mut ended = None;
    loop {
        let now = recording.elapsed();
        let is_over = match (&mut program, ended) {
            (None, _) => now >= options.duration,
            (Some(_), Some((at, _))) => now >= at + options.after,
            (Some(program), None) => {
                ended = program.ended()?.map(|status| (now, exit_code(status)));
                if interrupt.is_raised() {
                    program.end();
                }
                false
            }
        };
        let is_raised = interrupt.is_raised() && (program.is_none() || ended.is_some());
        let read = recording.read(|since, event| {
            if event.is_discard {
                counts.add(since, event.bytes);
            }
        });
        read.map_err(|error| Failure::Run(error.to_string()))?;
        if is_over || is_raised {
            let code = ended.map(|(_, code)| code);
            let without =
                if is_raised { Failure::Interrupted.exit_code() } else { ExitCode::SUCCESS };
            return Ok(code.unwrap_or(without));
        }
        thread::sleep(LOOK);
    }
}
