//! The program alongside which is traced.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// How long it may take to end by itself once the user wants the end: Ctrl-C in a terminal
/// reaches it too.
const GRACE: Duration = Duration::from_secs(1);

/// A program that runs.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    asked_to_end: Option<Instant>,
}

impl Program {
    /// Starts it; the first word is its name.
    pub(super) fn start(words: &[OsString]) -> Result<Self, Failure> {
        let (name, arguments) =
            words.split_first().ok_or_else(|| Failure::Input("no command is named".into()))?;
        let child = Command::new(name).args(arguments).spawn().map_err(|error| {
            let name = name.display();
            Failure::Input(match error.kind() {
                ErrorKind::NotFound => format!("there is no command `{name}`"),
                _ => format!("cannot run `{name}`: {error}"),
            })
        })?;
        Ok(Self { child, asked_to_end: None })
    }

    /// How it ended, once it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child
            .try_wait()
            .map_err(|error| Failure::Run(format!("cannot wait for the command: {error}")))
    }

    /// Asks it to end, if it does not by itself.
    pub(super) fn end(&mut self) {
        let asked = *self.asked_to_end.get_or_insert_with(Instant::now);
        if asked.elapsed() > GRACE {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            self.asked_to_end = Some(Instant::now());
        }
    }
}

/// As a shell has it: 128 and the number of the signal that ended it.
pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
