//! Tests that mount a disk. Where this system cannot they are shown as ignored, with the reason;
//! for root in CI they fail.

use std::path::Path;
use std::process::{Command, ExitCode};

use forebay_serve::{ServeConfig, Served};
use forebay_sim::spec::DiskSpec;
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

/// A test and its name.
pub(crate) type Named = (&'static str, fn());

/// Tests with the names of their functions.
macro_rules! named {
    ($($test:path),* $(,)?) => {
        [$((stringify!($test), $test as fn())),*]
    };
}
pub(crate) use named;

/// Runs tests that need nothing, tests that mount a disk, and tests that make a loop device of one.
pub(crate) fn run(anywhere: &[Named], mounting: &[Named], on_loop_device: &[Named]) -> ExitCode {
    let arguments = Arguments::from_args();
    let unmountable = if arguments.list { None } else { no_mount() };
    let is_asked = !(arguments.list || on_loop_device.is_empty());
    let unloopable = unmountable.clone().or_else(|| is_asked.then(no_loop_device).flatten());
    let anywhere = anywhere.iter().map(|&(name, test)| trial(name, test));
    let mounting = needing("cannot mount", unmountable.as_ref(), mounting);
    let on_loop_device = needing("no loop device", unloopable.as_ref(), on_loop_device);
    let trials = anywhere.chain(mounting).chain(on_loop_device);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Tests that cannot run for the `reason` given, if there is one, which is printed once.
fn needing(kind: &str, reason: Option<&String>, tests: &[Named]) -> Vec<Trial> {
    if let Some(reason) = reason.filter(|_| !tests.is_empty()) {
        eprintln!("the tests marked [{kind}] do not run: {reason}");
    }
    let tests = tests.iter().map(|&(name, test)| match reason.cloned() {
        None => trial(name, test),
        Some(reason) if must_run() => Trial::test(name, move || Err(Failed::from(reason))),
        Some(_) => trial(name, test).with_kind(kind).with_ignored_flag(true),
    });
    tests.collect()
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Why no disk can be mounted here, if none can.
fn no_mount() -> Option<String> {
    let mountpoint = TempDir::new().unwrap();
    let disk = DiskSpec::resolve("four-channels").unwrap().build(1);
    let config = ServeConfig { realtime: false, ..ServeConfig::new(1 << 20) };
    Served::mount(disk, &config, mountpoint.path()).err().map(|error| error.to_string())
}

/// Why no loop device can be made here, if none can.
fn no_loop_device() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make a loop device".to_owned());
    }
    match Command::new("losetup").arg("--find").output() {
        Ok(found) if found.status.success() => {
            let device = String::from_utf8_lossy(&found.stdout).trim().to_owned();
            (!Path::new(&device).exists()).then(|| format!("there is no {device}"))
        }
        Ok(found) => Some(String::from_utf8_lossy(&found.stderr).trim().to_owned()),
        Err(error) => Some(format!("losetup: {error}")),
    }
}

/// Whether a test that cannot run is a failure.
fn must_run() -> bool {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    in_ci && rustix::process::geteuid().is_root()
}
