//! What the kernel sends to disks, by its tracepoints, when files are deleted and when they grow: XFS
//! on a loop device over a file and over a served simulated disk. Where this system cannot have these
//! the tests are listed as skipped, with the reason; for root in CI they fail.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod deleting;
mod fixture;
mod heartbeat;
mod pacing;
mod requests;
#[expect(dead_code, reason = "tests of served disks use more of it")]
#[path = "../served/serving.rs"]
mod serving;
mod spread;
mod tracing;

use std::fs;
use std::process::{Command, ExitCode};

use forebay_trace::{Recording, Tracepoint};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // each looks at what the machine does
    arguments.test_threads = Some(1);
    // before there is any other thread
    let missing = if arguments.list { None } else { missing() };
    let tests: [(&str, fn()); 18] = [
        ("a_paced_delete_is_spread_over_time_on_a_file", spread::paced_on_a_file),
        ("a_paced_delete_is_spread_over_time_on_a_served_disk", spread::paced_on_a_served_disk),
        ("a_plain_delete_is_a_burst_on_a_file", spread::plain_on_a_file),
        ("a_plain_delete_is_a_burst_on_a_served_disk", spread::plain_on_a_served_disk),
        ("a_command_is_traced_and_its_exit_code_returned", tracing::a_command),
        ("a_signal_ends_tracing_with_what_was_counted", tracing::a_signal),
        ("what_a_killed_process_left_is_removed", tracing::what_was_left),
        (
            "requests_that_the_disk_takes_in_parts_are_counted",
            requests::splits_by_the_longest_request,
        ),
        (
            "blocks_that_are_read_to_be_written_are_counted",
            requests::reads_before_misaligned_writes,
        ),
        ("files_that_grow_in_small_blocks_are_misaligned", requests::small_blocks_are_misaligned),
        ("all_disks_are_traced_if_none_is_named", tracing::all_disks),
        ("rates_of_bytes_and_of_commands_are_held", pacing::rates_are_held),
        ("a_share_of_the_disk_is_so_many_discards", pacing::disk_share),
        ("no_step_takes_longer_than_the_latency_goal", pacing::latency_goal),
        ("without_discards_files_are_unlinked_at_once", deleting::without_discards),
        ("other_file_systems_need_a_flag", deleting::other_file_systems),
        ("what_may_not_be_deleted_fails_alone", deleting::paths_that_may_not_be_deleted),
        ("what_a_killed_delete_left_is_freed", deleting::what_was_left),
    ];
    let tests = tests.map(|(name, test)| trial(name, test, missing.as_ref()));
    libtest_mimic::run(&arguments, tests.into()).exit_code()
}

fn trial(name: &str, test: fn(), missing: Option<&String>) -> Trial {
    let Some(reason) = missing.cloned() else {
        return Trial::test(name, move || {
            test();
            Ok(())
        });
    };
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    if in_ci && rustix::process::geteuid().is_root() {
        return Trial::test(name, move || Err(Failed::from(reason)));
    }
    Trial::test(name, || Ok(())).with_kind(format!("skipped: {reason}")).with_ignored_flag(true)
}

/// What this system lacks, if anything. Takes this process out of the mount namespace of others.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".into());
    }
    for command in ["mkfs.xfs", "losetup"] {
        if Command::new(command).arg("-V").output().is_err() {
            return Some(format!("needs {command}"));
        }
    }
    // SAFETY: no descriptors are unshared, and there is no other thread yet.
    let own = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if let Err(error) = own.and_then(|()| mount_change("/", flags)) {
        return Some(format!("needs a mount namespace of its own: {error}"));
    }
    // where it is a module, mkfs and mount load it
    let _ = Command::new("modprobe").arg("xfs").output();
    if !fs::read_to_string("/proc/filesystems").is_ok_and(|kinds| kinds.contains("\txfs\n")) {
        return Some("needs a kernel with XFS".into());
    }
    let recording = Recording::discards(&[], Tracepoint::RequestIssue);
    recording.err().map(|error| format!("needs tracefs: {error}"))
}
