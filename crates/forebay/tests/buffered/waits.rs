//! Writes and flushes that could wait for ever.

use std::fs::File;
use std::thread;

use forebay::{AlignedBuf, DiskConfig, FileOptions, Op, Scheduler};

use crate::{Bed, FAST, MIB, pattern};

/// A disk on which there are no permits: the only queue that it may have is that of an I/O thread.
fn without_permits() -> (tempfile::TempDir, Scheduler) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).shards_max(1).build().unwrap();
    let options = FileOptions::new().write(true).create(true);
    let file = scheduler.open(dir.path().join("other"), &options).unwrap();
    let class = scheduler.untagged();
    file.write_at(&class, AlignedBuf::new(4096, 4096).unwrap(), 0).wait().0.unwrap();
    (dir, scheduler)
}

#[test]
fn a_write_where_there_are_no_permits_goes_on_or_fails_and_does_not_wait() {
    let (dir, scheduler) = without_permits();
    let class = scheduler.add_class("class", 100).unwrap();
    let new = |name: &str| class.buffered_writer(File::create(dir.path().join(name)).unwrap());
    // The class is full of what makes no part of this file.
    let pending = new("pending").unwrap().with_dirty_max(128 * MIB);
    let piece = pattern((1 << 20) - 4096);
    for n in 0..63 {
        pending.write_all_at(&piece, n * MIB).unwrap();
    }
    for bound in [4096, MIB, 16 * MIB] {
        let writer = new("data").unwrap().with_dirty_max(bound);
        let failed = (0..32).filter(|n| writer.write_all_at(&piece, n * MIB).is_err()).count();
        assert!(failed > 0, "nobody was told");
        let refused = writer.sync_data().unwrap_err();
        assert!(refused.to_string().contains("SchedulerBuilder::shards_max"), "{refused}");
    }
}

#[test]
fn a_flush_of_a_holder_waits_for_no_part_that_waits_for_the_holder() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    for parts in [1, 17, 40] {
        // More than the window.
        let held = bed.class.admit(Op::Read, 512 << 20).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for part in 0..parts {
                    writer.write_all_at(&[7; 4096], part * 2 * MIB).unwrap();
                }
                writer.write_back().unwrap();
            });
        });
        assert!(writer.dirty() > 0, "its parts wait for the holder");
        writer.sync_data().unwrap();
        drop(held);
        // A permit that is waited for by its holder is given up after a while.
        assert_eq!(bed.class.permit_counters().overdue, 0, "{parts} parts");
    }
}
