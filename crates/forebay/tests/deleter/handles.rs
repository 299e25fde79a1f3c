//! Progress, cancellation, and handles that are dropped.

use std::time::Duration;

use forebay::{DeleteErrorCause, Deleter, DeleterError, DeleterOptions, DeletionState};

use crate::fixture::{Bed, MIB};

fn slow(rate: u64) -> DeleterOptions {
    DeleterOptions::new().always_in_steps(true).rate(rate)
}

#[test]
fn progress_goes_from_nothing_to_all() {
    let bed = Bed::new();
    let path = bed.file("file", 4 * MIB);
    let deletion = bed.deleter_with(slow(16 * MIB)).delete(&path);
    deletion.wait_removed().unwrap();
    assert!(!path.exists());
    let removed = deletion.progress();
    assert!(removed.state >= DeletionState::Removed && removed.bytes_total >= 4 * MIB);
    let deleted = deletion.wait().unwrap();
    let ended = deletion.progress();
    assert_eq!((ended.state, ended.bytes_freed), (DeletionState::Ended, deleted.bytes));
    assert_eq!(ended.steps, deleted.steps);
}

#[test]
fn tasks_wait_as_threads_do() {
    let bed = Bed::new();
    let path = bed.file("file", 2 * MIB);
    smol::block_on(async {
        let deletion = bed.deleter().delete(&path);
        deletion.removed().await.unwrap();
        deletion.await.unwrap();
        let missing = bed.deleter().delete(&path);
        missing.removed().await.unwrap_err();
        missing.await.unwrap_err();
    });
}

#[test]
fn deletes_cancelled_in_time_keep_the_file_and_later_ones_do_not() {
    let bed = Bed::new();
    let options = slow(64 * MIB).in_place(true);
    let deleter = bed.deleter_with(options);
    let paths: Vec<_> = (0..200).map(|n| bed.file(&format!("{n}"), 64 * 1024)).collect();
    let deletions = deleter.delete_all(&paths);
    let cancelled: Vec<bool> = deletions.iter().map(|deletion| deletion.cancel()).collect();
    for ((deletion, path), was_cancelled) in deletions.iter().zip(&paths).zip(cancelled) {
        match deletion.wait() {
            Err(error) => {
                assert!(was_cancelled && matches!(error.cause, DeleteErrorCause::Cancelled));
                assert_eq!(std::fs::read(path).unwrap(), vec![7; 64 * 1024]);
            }
            Ok(_) => assert!(!was_cancelled && !path.exists()),
        }
        assert!(!deletion.cancel());
    }
}

#[test]
fn dropped_handles_stop_nothing() {
    let bed = Bed::new();
    let path = bed.file("file", 4 * MIB);
    let deleter = bed.deleter();
    drop(deleter.delete(&path));
    let drained = deleter.drain();
    drop(deleter);
    drained.wait().unwrap();
    assert_eq!(bed.names(), [""; 0]);
}

#[test]
fn a_thread_that_has_ended_is_started_again() {
    let bed = Bed::new();
    let deleter = bed.deleter();
    for name in ["one", "two"] {
        deleter.delete(bed.file(name, MIB)).wait().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(bed.names(), [""; 0], "the trash is removed");
    }
}

#[test]
fn a_class_that_was_removed_stops_no_deletion() {
    let bed = Bed::new();
    let class = bed.scheduler.class("deletes").unwrap();
    let deleter = bed.deleter();
    bed.scheduler.remove_class(&class).unwrap();
    let deleted = deleter.delete(bed.file("file", 2 * MIB)).wait().unwrap();
    bed.assert_in_steps(deleted, 2 * MIB);
}

#[test]
fn no_more_wait_than_may() {
    let bed = Bed::new();
    let deleter = bed.deleter_with(slow(MIB).files_max(3));
    let paths = (0..5).map(|n| bed.file(&format!("{n}"), 300 * 1024));
    let deletions = deleter.delete_all(paths.collect::<Vec<_>>());
    let full: Vec<bool> = deletions
        .iter()
        .map(|deletion| {
            let result = deletion.wait_removed();
            result.is_err_and(|error| matches!(error.cause, DeleteErrorCause::Full { max: 3 }))
        })
        .collect();
    assert_eq!(full, [false, false, false, true, true]);
    deletions[..3].iter().for_each(|deletion| {
        deletion.wait().unwrap();
    });
    deleter.delete(bed.path("4")).wait().unwrap();
}

#[test]
fn options_out_of_range_are_refused() {
    let bed = Bed::new();
    let class = bed.scheduler.class("deletes").unwrap();
    let refused = |options| Deleter::new(&class, options).unwrap_err();
    let new = DeleterOptions::new;
    assert_eq!(refused(new().rate(0)), DeleterError::Zero { option: "rate" });
    assert!(matches!(refused(new().commands_per_second(0)), DeleterError::Zero { .. }));
    assert!(matches!(refused(new().files_max(0)), DeleterError::Zero { .. }));
    assert!(matches!(refused(new().backlog_bytes_max(Some(0))), DeleterError::Zero { .. }));
    assert!(matches!(refused(new().step(Duration::from_secs(11))), DeleterError::Step { .. }));
    for name in ["", ".", "..", "a/b", "/trash"] {
        assert!(
            matches!(refused(new().trash_name(name)), DeleterError::TrashName { .. }),
            "{name}"
        );
    }
}
