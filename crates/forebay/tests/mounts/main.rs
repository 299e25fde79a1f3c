//! File systems that are mounted for real: which disk a file is on with overlays, subvolumes, bind
//! mounts, partitions and a network mount that answers nothing; how what is dirty gets there, and
//! what of it is there after a power cut. Where this system cannot mount these they are listed as
//! ignored, with the reason; for root in CI they fail.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod dead;
mod deletes;
mod direct;
mod discards;
mod escapes;
mod failing;
mod failures;
mod log_engine;
mod loop_mount;
mod noisy_host;
mod places;
mod power_cut;
mod reads;
mod served;
mod shares;
mod write_back;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

/// Runs a test that needs these commands of the system.
fn trial(name: &str, can_mount: &Result<(), String>, needs: &[&str], test: fn()) -> Trial {
    let is_missing = |command: &&&str| Command::new(command).arg("-V").output().is_err();
    let reason = match (can_mount, needs.iter().find(is_missing)) {
        (Err(reason), _) => reason.clone(),
        (Ok(()), Some(command)) => format!("needs {command}"),
        (Ok(()), None) => {
            return Trial::test(name, move || {
                test();
                Ok(())
            });
        }
    };
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    if in_ci && rustix::process::geteuid().is_root() {
        return Trial::test(name, move || Err(Failed::from(reason)));
    }
    Trial::test(name, || Ok(())).with_kind(format!("skipped: {reason}")).with_ignored_flag(true)
}

fn main() -> ExitCode {
    if power_cut::is_engine() {
        return power_cut::run_engine();
    }
    if deletes::is_deleter() {
        return deletes::run_deleter();
    }
    let arguments = Arguments::from_args();
    // before there is any other thread
    let can_mount = if arguments.list { Ok(()) } else { loop_mount::own_namespace() };
    let mut tests = on_file_systems(&can_mount);
    tests.extend(of_failures(&can_mount));
    tests.extend(of_deletes(&can_mount));
    tests.extend(of_classes_and_past_them(&can_mount));
    libtest_mimic::run(&arguments, tests).exit_code()
}

macro_rules! named {
    ($can_mount:expr; $($test:path: $needs:expr),* $(,)?) => {
        vec![$(trial(stringify!($test), $can_mount, &$needs, $test)),*]
    };
}

/// How files are found, written and read.
fn on_file_systems(can_mount: &Result<(), String>) -> Vec<Trial> {
    named![can_mount;
        places::a_file_of_an_overlay_is_on_the_disk_of_the_upper_directory: ["mkfs.ext4"],
        places::a_reload_has_the_files_of_an_overlay_that_were_looked_up_before: ["mkfs.ext4"],
        places::an_overlay_whose_upper_directory_is_hidden_is_unlisted: ["mkfs.ext4"],
        places::a_listed_overlay_has_the_files_of_all_its_layers: ["mkfs.ext4"],
        places::a_btrfs_subvolume_is_on_the_disk_of_its_device: ["mkfs.btrfs", "btrfs"],
        places::a_bind_mount_is_on_the_disk_of_what_it_shows: ["mkfs.ext4"],
        places::partitions_are_on_their_disk_and_share_its_budget: ["mkfs.ext4", "addpart"],
        write_back::the_probe_says_what_works_by_what_it_does: ["mkfs.ext4", "mkfs.btrfs"],
        write_back::a_part_is_clean_before_its_permit_ends:
            ["mkfs.ext4", "mkfs.btrfs"],
        write_back::flushes_and_cuts_by_others_change_neither_the_dirty_bound_nor_the_flushes:
            ["mkfs.ext4"],
        write_back::a_write_that_fuse_cuts_within_a_sector_goes_in_shorter_ones: [],
        write_back::a_file_of_an_overlay_is_written_back_with_flushes: ["mkfs.ext4"],
        write_back::a_file_in_memory_is_written_as_it_always_was: [],
        direct::writes_that_a_thread_of_the_kernel_does_are_counted: ["mkfs.ext4", "mkfs.xfs"],
        power_cut::synced_writes_survive_power_cuts: ["mkfs.ext4"],
        power_cut::an_engine_that_leaves_out_its_syncs_loses_records: ["mkfs.ext4"],
        power_cut::a_file_system_that_leaves_out_its_flushes_loses_records: ["mkfs.ext4"],
        power_cut::a_killed_engine_has_what_it_synced: ["mkfs.ext4"],
        reads::reads_of_the_disk_in_a_cold_run_are_charged: ["mkfs.ext4", "mkfs.btrfs"],
        reads::a_read_within_pages_has_one_permit_for_all_of_them: ["mkfs.ext4"],
        reads::a_read_from_memory_costs_nothing: ["mkfs.ext4"],
        reads::a_miss_among_hits_is_charged_with_whole_pages: ["mkfs.ext4"],
        reads::a_cold_file_under_the_number_of_a_warm_one_is_charged: ["mkfs.ext4"],
        reads::each_read_of_an_overlay_has_a_permit: ["mkfs.ext4"],
        noisy_host::a_disk_that_holds_less_than_it_says_fails_what_is_not_on_it:
            ["mkfs.ext4", "mkfs.btrfs"],
        noisy_host::a_full_file_system_refuses_the_write_and_has_what_it_took:
            ["mkfs.ext4", "mkfs.btrfs"],
        noisy_host::written_bytes_are_there_whatever_other_programs_do:
            ["mkfs.ext4", "mkfs.btrfs"],
        noisy_host::a_file_that_was_cut_while_it_was_written_is_written_as_before:
            ["mkfs.ext4", "mkfs.btrfs"],
        noisy_host::a_log_that_may_only_be_appended_to_is_written: ["mkfs.ext4", "chattr"],
    ]
}

/// Reports of bytes that cannot be written back.
fn of_failures(can_mount: &Result<(), String>) -> Vec<Trial> {
    named![can_mount;
        failures::every_flush_fails_until_what_failed_is_rewritten: ["mkfs.ext4"],
        failures::a_writer_that_is_made_after_a_failure_reports_it: ["mkfs.ext4"],
        failures::truncated_bytes_are_no_longer_failed: ["mkfs.ext4"],
        failures::of_threads_that_share_a_file_each_is_told_and_no_acknowledged_block_is_missing:
            [],
        failures::half_of_an_engines_own_writes_rewritten_leaves_the_other_failed: [],
        failures::an_error_of_writeback_reaches_the_engine_and_all_writers: ["mkfs.ext4"],
        failures::an_error_already_reported_to_others_is_reported_by_each_flush: ["mkfs.ext4"],
        failures::an_error_of_a_dropped_flush_is_reported_by_the_next: ["mkfs.ext4"],
    ]
}

/// How files are deleted.
fn of_deletes(can_mount: &Result<(), String>) -> Vec<Trial> {
    named![can_mount;
        deletes::removed_files_stay_removed_after_power_cuts: ["mkfs.ext4", "mkfs.xfs"],
        deletes::files_removed_by_a_killed_process_are_deleted_by_the_next:
            ["mkfs.ext4", "mkfs.xfs"],
        discards::the_image_shrinks_as_a_file_is_freed: ["mkfs.ext4", "mkfs.xfs"],
        discards::dirty_pages_are_not_written_only_to_be_deleted: ["mkfs.ext4", "mkfs.xfs"],
        discards::without_discards_files_are_unlinked: ["mkfs.xfs"],
        discards::a_full_file_system_is_no_reason_not_to_delete: ["mkfs.ext4", "mkfs.xfs"],
        discards::files_that_cannot_be_deleted_fail_alone: ["mkfs.ext4", "chattr"],
        discards::a_trash_that_is_a_mount_is_refused: ["mkfs.ext4"],
    ]
}

/// The parts of classes, unscheduled I/O, and harmless conditions.
fn of_classes_and_past_them(can_mount: &Result<(), String>) -> Vec<Trial> {
    named![can_mount;
        shares::two_classes_of_buffered_writers_share_as_asked: ["mkfs.ext4"],
        shares::a_buffered_and_a_direct_class_share_as_asked: ["mkfs.ext4"],
        shares::reads_are_faster_during_buffered_and_direct_writes: ["mkfs.ext4"],
        escapes::unscheduled_io_is_measured_in_a_known_mixture: ["mkfs.ext4"],
        escapes::dirty_bytes_are_shown_until_they_are_written: ["mkfs.ext4"],
        escapes::permits_that_end_before_the_disk_works_cover_nothing: ["mkfs.ext4"],
        escapes::reads_that_pass_no_class_are_counted_with_whose_they_are: ["mkfs.ext4"],
        escapes::two_schedulers_and_a_reload_under_load_lose_nothing_of_a_disk: ["mkfs.ext4"],
        escapes::a_disk_whose_counters_are_switched_off_is_told_apart: ["mkfs.ext4"],
        escapes::discards_are_counted_apart: ["mkfs.ext4", "fstrim"],
        escapes::of_two_disks_each_has_its_own: ["mkfs.ext4"],
        escapes::where_nothing_is_counted_the_reason_is_said: ["mkfs.ext4"],
        dead::a_network_mount_that_answers_nothing_stops_nobody: [],
    ]
}
