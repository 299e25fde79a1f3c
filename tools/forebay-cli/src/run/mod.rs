//! `forebay run`: a command in a class of I/O, by a cgroup of its own.

mod cgroups;
mod command;
mod obeyed;

use std::ffi::OsString;
use std::fmt::Write;
use std::process::{self, ExitCode};
use std::slice;
use std::time::Duration;

use clap::Args;
use forebay_block::Machine;
use forebay_govern::class_name;
use indicatif::HumanBytes;

use crate::console::{note, print};
use crate::failure::Failure;
use crate::whole_number;
use cgroups::{Cgroups, Class, Group, Usage};
use command::Ended;

/// As of programs that run others, when they do not.
const REFUSED: u8 = 125;
/// From these weights on a priority is that of most commands, and one above it.
const WEIGHT_USUAL: u32 = 101;
const WEIGHT_URGENT: u32 = 1000;

/// Run a command in a cgroup with an I/O weight for io.cost or BFQ.
///
/// It is for unmodified programs. The command starts in a cgroup of its own; its standard streams,
/// terminal and arguments are not changed. Weights have an effect on disks with io.cost or BFQ; if
/// something is missing, that is printed first. At the end it prints what the command has read and
/// written, and for how long it waited.
///
/// The exit code is that of the command, or 128 plus the number of the signal that ended it; 127 if
/// there is no such command, 126 if it cannot be executed, 125 if it was not run because of
/// --require.
#[derive(Args)]
pub(crate) struct Options {
    /// The class: up to 64 letters, digits, and characters of `_.-`
    #[arg(long, value_name = "NAME", value_parser = class_name, required_unless_present = "list")]
    class: Option<String>,
    /// The weight of the class, compared with other cgroups of the same level
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole_number::within::<u32>(1..=10_000))]
    weight: u32,
    /// Set an I/O priority too, for BFQ and mq-deadline: idle up to a weight of 100, best effort 4
    /// below 1000, else best effort 0
    #[arg(long)]
    ionice: bool,
    /// Do not run the command if the weight has no effect on a disk: exit code 125
    #[arg(long)]
    require: bool,
    /// A disk to check, such as sda [default: all disks]
    #[arg(long, alias = "disk", value_name = "DEV")]
    device: Vec<String>,
    /// List the classes with their weights, processes, and bytes read and written
    #[arg(long, conflicts_with_all = ["class", "command"])]
    list: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "list")]
    command: Vec<OsString>,
}

/// Where the command runs.
enum Place {
    /// In the cgroup of this process.
    Here,
    /// In one of its own.
    Group(Group),
    /// In a scope of systemd, which this command makes.
    Scope(Vec<OsString>),
}

/// The command.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let machine = Machine::this();
    match &options.class {
        Some(class) => options.run_in(class, &machine),
        None => list(&machine).map(|()| ExitCode::SUCCESS),
    }
}

fn list(machine: &Machine) -> Result<(), Failure> {
    let cgroups = Cgroups::find(machine).map_err(Failure::Input)?;
    cgroups.prune(machine);
    let mut text = String::new();
    for Class { name, weight, processes, usage } in cgroups.list(machine) {
        let _ = writeln!(text, "{name}  weight {weight}, {}", said(usage));
        for process in processes {
            let _ = writeln!(text, "  {process}");
        }
    }
    if text.is_empty() {
        text.push_str("no classes; `forebay run --class NAME -- COMMAND` makes one\n");
    }
    print(&text)
}

impl Options {
    fn run_in(&self, class: &str, machine: &Machine) -> Result<ExitCode, Failure> {
        let (cgroups, mut missing) = match Cgroups::find(machine) {
            Ok(cgroups) => (Some(cgroups), Vec::new()),
            Err(missing) => (None, vec![missing]),
        };
        let root = cgroups.as_ref().map(|cgroups| cgroups.root.as_path());
        missing.extend(obeyed::unobeyed(machine, root, &self.device, self.ionice));
        if self.is_refused(&missing) {
            return Ok(ExitCode::from(REFUSED));
        }
        let pid = process::id();
        let place = cgroups.map_or(Ok(Place::Here), |cgroups| {
            if machine.has("run/systemd/system") {
                let command = cgroups.scope(machine, class, self.weight, &self.command);
                return command.map(Place::Scope);
            }
            cgroups.prune(machine);
            cgroups.enter(class, self.weight, pid).map(Place::Group)
        });
        let place = match place {
            Ok(place) => place,
            Err(missing) if self.is_refused(slice::from_ref(&missing)) => {
                return Ok(ExitCode::from(REFUSED));
            }
            Err(_) => Place::Here,
        };
        let ended = match self.set_priority(pid) {
            Err(missing) if self.is_refused(slice::from_ref(&missing)) => Ok(Ended::Code(REFUSED)),
            _ => {
                let status = machine.text("proc/self/status").unwrap_or_default();
                let command = match &place {
                    Place::Scope(command) => command,
                    Place::Here | Place::Group(_) => &self.command,
                };
                command::run(command, command::ignored(&status))
            }
        };
        if let Place::Group(group) = place {
            finish(class, group, machine, pid);
        }
        Ok(ExitCode::from(match ended? {
            Ended::Code(code) => code,
            Ended::Never(code, why) => {
                note(format_args!("error: {why}"));
                code
            }
        }))
    }

    /// Says what is missing, and whether that is a reason not to run the command.
    fn is_refused(&self, missing: &[String]) -> bool {
        let kind = if self.require { "error" } else { "warning" };
        missing.iter().for_each(|missing| note(format_args!("{kind}: {missing}")));
        self.require && !missing.is_empty()
    }

    /// Gives this process a priority, which the command inherits.
    fn set_priority(&self, pid: u32) -> Result<(), String> {
        if !self.ionice {
            return Ok(());
        }
        let priority: &[&str] = match self.weight {
            ..WEIGHT_USUAL => &["-c3"],
            WEIGHT_USUAL..WEIGHT_URGENT => &["-c2", "-n4"],
            _ => &["-c2", "-n0"],
        };
        let pid = pid.to_string();
        let done = process::Command::new("ionice").args(priority).args(["-p", &pid]).output();
        let failed = match done {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("{error}; install util-linux"),
        };
        Err(format!("the I/O priority was not set: ionice: {failed}"))
    }
}

/// Leaves the cgroup of a command that has ended, and says what it got.
fn finish(class: &str, group: Group, machine: &Machine, pid: u32) {
    note(format_args!("{class}: {}", said(Usage::of(machine, &group.path))));
    let path = group.path.clone();
    let left = group.leave(machine, pid);
    if !left.is_empty() {
        let (left, path) = (left.join(", "), path.display());
        note(format_args!(
            "still running in {path}: {left}; `forebay run --list` removes the cgroup after they \
             have ended"
        ));
    }
}

fn said(usage: Usage) -> String {
    let Usage { read, written, waited_us } = usage;
    let mut text = format!("read {}, written {}", HumanBytes(read), HumanBytes(written));
    if let Some(us) = waited_us {
        let _ = write!(text, ", waited {:.1?} for disks", Duration::from_micros(us));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_in_units_that_people_read() {
        let usage = Usage { read: 3 << 20, written: 512, waited_us: Some(1_500_000) };
        assert_eq!(said(usage), "read 3.00 MiB, written 512 B, waited 1.5s for disks");
        let usage = Usage { waited_us: None, ..usage };
        assert_eq!(said(usage), "read 3.00 MiB, written 512 B");
    }
}
