//! Tests that mount a disk. Where this system cannot they are shown as ignored, with the reason;
//! for root in CI they fail.

use std::process::ExitCode;

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

/// Runs tests that need nothing, tests that mount a disk, and tests that mount one as root.
pub(crate) fn run(anywhere: &[Named], mounting: &[Named], as_root: &[Named]) -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = if arguments.list { None } else { missing() };
    if let Some(reason) = &missing {
        eprintln!("the tests marked [cannot mount] do not run: {reason}");
    }
    let anywhere = anywhere.iter().map(|&(name, test)| trial(name, test));
    let is_root = rustix::process::geteuid().is_root();
    let mounted = |&(name, test): &Named| match missing.clone() {
        None => trial(name, test),
        Some(reason) if must_run() => Trial::test(name, move || Err(Failed::from(reason))),
        Some(_) => ignored("cannot mount", name, test),
    };
    let as_root = as_root.iter().map(|named| match is_root {
        true => mounted(named),
        false => ignored("root only", named.0, named.1),
    });
    let trials = anywhere.chain(mounting.iter().map(mounted)).chain(as_root);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn ignored(why: &str, name: &str, test: fn()) -> Trial {
    trial(name, test).with_kind(why).with_ignored_flag(true)
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Why no disk can be mounted here, if none can.
fn missing() -> Option<String> {
    let mountpoint = TempDir::new().unwrap();
    let disk = DiskSpec::resolve("four-channels").unwrap().build(1);
    let config = ServeConfig { realtime: false, ..ServeConfig::new(1 << 20) };
    Served::mount(disk, &config, mountpoint.path()).err().map(|error| error.to_string())
}

/// Whether a test that cannot run is a failure.
fn must_run() -> bool {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    in_ci && rustix::process::geteuid().is_root()
}
