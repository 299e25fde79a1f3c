//! The shares of the class, which follow what waits.

use std::thread;
use std::time::Duration;

use forebay::DeleterOptions;

use crate::fixture::{Bed, MIB};

fn options(rate: u64) -> DeleterOptions {
    DeleterOptions::new().always_in_steps(true).rate(rate)
}

/// They were set back within a tenth of a second, for as long as files were deleted.
#[test]
fn shares_that_are_set_while_files_are_deleted_stay() {
    let bed = Bed::new();
    let class = bed.scheduler.class("deletes").unwrap();
    let deleter = bed.deleter_with(options(8 * MIB).backlog_age_max(None));
    let deletion = deleter.delete(bed.file("file", 8 * MIB));
    deletion.wait_removed().unwrap();
    class.set_shares(400).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(class.shares(), 400);
    deletion.wait().unwrap();
    deleter.drain().wait().unwrap();
    assert_eq!(class.shares(), 400);
}

/// Each deleter that was made while another was urgent took its shares for calm ones, and rose
/// from there.
#[test]
fn deleters_of_a_class_raise_its_shares_once() {
    let bed = Bed::new();
    let class = bed.scheduler.class("deletes").unwrap();
    let mut others = Vec::new();
    for n in 0..3 {
        // far above its ceiling
        let deleter = bed.deleter_with(options(1024 * MIB).backlog_bytes_max(Some(MIB)));
        let deletions: Vec<_> =
            (0..4).map(|file| deleter.delete(bed.file(&format!("{n}-{file}"), 4 * MIB))).collect();
        for deletion in deletions {
            deletion.wait().unwrap();
            assert!([100, 1000].contains(&class.shares()) || class.shares() < 1000);
        }
        others.push(deleter);
    }
    for deleter in &others {
        deleter.drain().wait().unwrap();
    }
    while class.shares() != 100 {
        thread::sleep(Duration::from_millis(10));
    }
    // and none of them raises them again
    thread::sleep(Duration::from_millis(300));
    assert_eq!(class.shares(), 100);
}
