//! Runs a command for this process, with its signals and its exit code.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, exit_code};

/// Sent by somebody to this process alone, and so passed on.
const PASSED_ON: [i32; 4] = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2];
/// The terminal sends these to the command too.
const OF_TERMINAL: [i32; 2] = [SIGINT, SIGQUIT];
/// As a shell says that a command was found and cannot be executed, and that there is none.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How a command ended.
pub(super) enum Ended {
    /// With this exit code, as a shell has it.
    Code(u8),
    /// It did not begin: the exit code, and why.
    Never(u8, String),
}

/// Runs `command` to its end, with the standard streams and the terminal of this process.
pub(super) fn run(command: &[OsString], ignored: u64) -> Result<Ended, Failure> {
    let [program, arguments @ ..] = command else {
        return Err(Failure::Input("the command is missing; write it after --".into()));
    };
    // what was ignored at the start stays so, as with nohup
    let is_heard = |signal: &i32| *signal == SIGCHLD || ignored & (1 << (signal - 1)) == 0;
    let heard = [&[SIGCHLD], &PASSED_ON[..], &OF_TERMINAL].concat();
    let mut signals = Signals::new(heard.iter().filter(|signal| is_heard(signal)))
        .map_err(|error| Failure::Run(format!("cannot listen for signals: {error}")))?;
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let found = error.kind() != ErrorKind::NotFound;
            let code = if found { NOT_EXECUTABLE } else { NOT_FOUND };
            let what = program.to_string_lossy();
            return Ok(Ended::Never(code, format!("cannot run `{what}`: {error}; check its path")));
        }
    };
    let failed = |error| Failure::Run(format!("cannot wait for the command: {error}"));
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Ended::Code(exit_code(status)));
        }
        for signal in signals.wait() {
            if PASSED_ON.contains(&signal) {
                pass_on(&child, signal);
            }
        }
    }
}

fn pass_on(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some((pid, signal)) = pid.zip(Signal::from_named_raw(signal)) {
        // it may have ended meanwhile
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The signals that are ignored, as a set of bits, by the text of `/proc/self/status`.
pub(super) fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let hup = ignored("Name:\tforebay\nSigBlk:\t00\nSigIgn:\t0000000000001001\n");
        assert_eq!(hup, 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!(ignored(""), 0);
    }
}
