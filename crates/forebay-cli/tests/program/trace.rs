//! `forebay trace` where it cannot trace. Where it can is tried in `tests/discards`.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::process::run;

fn trace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["trace", "discards"]).args(arguments);
    command
}

#[test]
fn what_cannot_be_traced_is_named() {
    run(&mut trace(&["--device", "/dev/none-such"])).complains(2, &["`/dev/none-such`"]);
    run(&mut trace(&["--device", "/"])).complains(2, &["`/` is no block device", "--dir"]);
    run(&mut trace(&["--dir", "/proc"])).complains(2, &["no disk of this machine"]);
    run(&mut trace(&["--dir", "/none-such"])).complains(2, &["`/none-such`"]);
    run(&mut trace(&["--output", "/none-such/file"])).complains(2, &["/none-such/file"]);
    run(&mut trace(&["--duration", "0s"])).complains(2, &["more than zero"]);
    run(&mut trace(&["--duration", "1s", "--", "true"])).complains(2, &["--duration"]);
    run(&mut trace(&["--after", "1s"])).complains(2, &["COMMAND"]);
    run(&mut trace(&["--device", "/dev/null", "--dir", "/"])).complains(2, &["--dir"]);
}

#[test]
fn only_root_can_trace() {
    let mut command = trace(&["--duration", "1s"]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534);
    }
    // where the program itself lies where nobody else may look it cannot be tried
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("only root can trace"), "{said}");
        }
        Err(error) => super::system::skipped(error),
    }
}
