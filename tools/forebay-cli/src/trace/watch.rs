//! For how long is traced, and alongside what.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use forebay_trace::{KernelEvent, Recording};
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Failure, exit_code};
use crate::interrupt::Interrupt;
use crate::span;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// What is traced, and for how long.
#[derive(Args)]
pub(super) struct WatchOptions {
    /// A block device; the disks below a partition, dm or md device are traced too [default,
    /// without --dir: all disks]
    #[arg(long, value_name = "DEV", conflicts_with = "dir")]
    pub(super) device: Option<PathBuf>,
    /// A directory: the disks below its file system are traced
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
    /// The duration of the trace, without a command
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span::parse_positive)]
    #[arg(conflicts_with = "command")]
    duration: Duration,
    /// The time to continue after the command has ended
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::parse)]
    #[arg(requires = "command")]
    after: Duration,
    /// A command and its arguments; the trace lasts while it runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Gives all that is recorded to `see` until the end, with the time since the beginning; the exit
/// code.
pub(super) fn watch(
    options: &WatchOptions,
    recording: &mut Recording,
    interrupt: &Interrupt,
    mut see: impl FnMut(Duration, &KernelEvent),
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
                ended = program.ended()?.map(|status| (now, ExitCode::from(exit_code(status))));
                if interrupt.is_raised() {
                    program.end();
                }
                false
            }
        };
        let is_raised = interrupt.is_raised() && (program.is_none() || ended.is_some());
        recording.read(&mut see).map_err(|error| Failure::Run(error.to_string()))?;
        if is_over || is_raised {
            let code = ended.map(|(_, code)| code);
            let without =
                if is_raised { Failure::Interrupted.exit_code() } else { ExitCode::SUCCESS };
            return Ok(code.unwrap_or(without));
        }
        thread::sleep(LOOK);
    }
}

/// The time that the command has to end after Ctrl-C, which a terminal sends to it too.
const GRACE: Duration = Duration::from_secs(1);

/// A program that runs.
#[derive(Debug)]
struct Program {
    child: Child,
    asked_to_end: Option<Instant>,
}

impl Program {
    /// Starts it; the first word is its name.
    fn start(words: &[OsString]) -> Result<Self, Failure> {
        let (name, arguments) =
            words.split_first().ok_or_else(|| Failure::Input("the command is missing".into()))?;
        let child = Command::new(name).args(arguments).spawn().map_err(|error| {
            let name = name.display();
            Failure::Input(match error.kind() {
                ErrorKind::NotFound => format!("unknown command `{name}`"),
                _ => format!("cannot run `{name}`: {error}"),
            })
        })?;
        Ok(Self { child, asked_to_end: None })
    }

    /// How it ended, once it has.
    fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child
            .try_wait()
            .map_err(|error| Failure::Run(format!("cannot wait for the command: {error}")))
    }

    /// Terminates the command unless it ends within the grace period.
    fn end(&mut self) {
        let asked = *self.asked_to_end.get_or_insert_with(Instant::now);
        if asked.elapsed() > GRACE {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            self.asked_to_end = Some(Instant::now());
        }
    }
}
