//! The holder of a lock continues in the class of connections that wait for it.

use std::thread;
use std::time::Duration;

use forebay::Limits;

use crate::{Bed, check, fill};

const WRITE: usize = 1;

/// A writer of the lowest class, with hardly any bandwidth, has the lock; then another connection
/// requests it.
fn the_writer_inherits(mode: &str, asks: &str) {
    let bed = Bed::new();
    let writer = bed.try_open("forebay_class=backup").unwrap();
    writer.busy_timeout(Duration::from_secs(600)).unwrap();
    writer
        .execute_batch(&format!(
            "PRAGMA journal_mode = {mode}; PRAGMA synchronous = FULL; PRAGMA cache_size = -64;
             PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB)"
        ))
        .unwrap();
    let backup = bed.scheduler.class("backup").unwrap();
    // 8 MiB would take more than eight minutes
    let limits = Limits { bytes_per_second: Some(16 << 10), operations_per_second: None };
    backup.set_limits(&limits).unwrap();
    let before = (bed.operations("backup"), bed.operations("queries"));
    let other = bed.open();
    other.busy_timeout(Duration::from_secs(600)).unwrap();
    thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        let writer = scope.spawn(move || {
            writer.execute_batch("BEGIN IMMEDIATE").unwrap();
            begun.send(()).unwrap();
            fill(&writer, 8000);
            writer.execute_batch("COMMIT").unwrap();
        });
        begins.recv().unwrap();
        while !writer.is_finished() {
            other.execute_batch(asks).unwrap();
        }
    });
    let own = bed.operations("backup")[WRITE] - before.0[WRITE];
    let raised = bed.operations("queries")[WRITE] - before.1[WRITE];
    assert!(raised > own, "{mode}: {own} in its own class, {raised} raised");
    drop(other);
    check(&bed.dir.path().join("t.db"));
}

#[test]
fn a_writer_in_rollback_mode_continues_in_the_class_of_a_waiting_reader() {
    the_writer_inherits("DELETE", "PRAGMA forebay_class = queries; SELECT count(*) FROM t");
}

#[test]
fn a_writer_in_rollback_mode_continues_in_the_class_of_a_waiting_writer() {
    the_writer_inherits("DELETE", "PRAGMA forebay_class = queries; BEGIN IMMEDIATE; COMMIT");
}

#[test]
fn a_writer_of_a_wal_continues_in_the_class_of_a_waiting_writer() {
    the_writer_inherits("WAL", "PRAGMA forebay_class = queries; BEGIN IMMEDIATE; COMMIT");
}
