//! The classes of SQLite's I/O.

use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::time::Duration;

use crate::{Bed, check, fill, pragma};

const WRITE: usize = 1;
const FLUSH: usize = 3;

#[test]
fn reads_commits_checkpoints_and_vacuum_have_classes_in_every_journal_mode() {
    for mode in ["DELETE", "TRUNCATE", "PERSIST", "WAL", "MEMORY", "OFF"] {
        let bed = Bed::new();
        let connection = bed.open();
        assert_eq!(pragma(&connection, &format!("journal_mode = {mode}")), mode.to_lowercase());
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")
            .unwrap();
        fill(&connection, 2000);
        let committed = bed.operations("commits");
        assert!(committed[WRITE] > 0 && committed[FLUSH] > 0, "{mode}: {committed:?}");
        assert_eq!(bed.operations("checkpoint"), [0; 4], "{mode}");
        let count: u32 =
            bed.open().query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert!(count == 2000 && bed.reads("queries") > 100, "{mode}");
        if mode == "WAL" {
            let before = bed.operations("commits");
            pragma(&connection, "wal_checkpoint(TRUNCATE)");
            let checkpoint = bed.operations("checkpoint");
            assert!(checkpoint[WRITE] > 0 && checkpoint[FLUSH] > 0, "{checkpoint:?}");
            assert!(bed.reads("checkpoint") > 0);
            assert_eq!(bed.operations("commits")[WRITE], before[WRITE]);
        }
        let before = bed.operations("commits");
        connection.execute_batch("VACUUM").unwrap();
        assert!(bed.operations("vacuum")[WRITE] > 0, "{mode}");
        // SQLite begins the journal before it states that all is overwritten
        assert!(bed.operations("commits")[WRITE] <= before[WRITE] + 4, "{mode}");
        fill(&connection, 10);
        assert!(bed.operations("commits")[FLUSH] > before[FLUSH], "{mode}: it is over");
        drop(connection);
        check(&bed.dir.path().join("t.db"));
        assert_eq!(bed.vfs.counters(), forebay_sqlite::Counters::default(), "{mode}");
    }
}

#[test]
fn a_connection_has_the_class_of_its_pragma_uri_or_thread() {
    let bed = Bed::new();
    fill(&bed.open(), 500);
    let scan = |connection: &Connection| {
        let sum: i64 =
            connection.query_row("SELECT sum(length(v)) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 500_000);
    };
    let before = bed.reads("queries");
    let connection = bed.try_open("forebay_class=backup").unwrap();
    scan(&connection);
    let by_uri = bed.reads("backup");
    assert!(by_uri > 100 && bed.reads("queries") == before);
    assert_eq!(pragma(&connection, "forebay_class"), "backup");

    let connection = bed.open();
    assert_eq!(pragma(&connection, "forebay_class"), "");
    assert_eq!(pragma(&connection, "forebay_class = backup"), "backup");
    let queries = bed.reads("queries");
    scan(&connection);
    assert!(bed.reads("backup") > by_uri + 100 && bed.reads("queries") == queries);

    bed.scheduler.add_class("reports", 300).unwrap();
    let class = bed.scheduler.class("reports").unwrap();
    let entered = class.enter();
    let connection = bed.open();
    scan(&connection);
    drop(entered);
    assert!(bed.reads("reports") > 100 && bed.reads("queries") == queries);
}

#[test]
fn a_backup_and_a_copy_by_vacuum_are_in_the_class_of_their_connection() {
    let bed = Bed::new();
    fill(&bed.open(), 2000);
    let source = bed.try_open("forebay_class=backup").unwrap();
    let mut copy = bed.open_file("copy.db", "forebay_class=backup").unwrap();
    let (queries, commits) = (bed.reads("queries"), bed.operations("commits"));
    Backup::new(&source, &mut copy).unwrap().run_to_completion(100, Duration::ZERO, None).unwrap();
    assert!(bed.reads("backup") > 100 && bed.operations("backup")[WRITE] > 0);
    let into = bed.dir.path().join("into.db");
    // the copy has a connection of its own, with the class of the thread
    let backup = bed.scheduler.class("backup").unwrap();
    let entered = backup.enter();
    source.execute("VACUUM INTO ?", [into.to_str().unwrap()]).unwrap();
    drop(entered);
    assert_eq!((bed.reads("queries"), bed.operations("commits")), (queries, commits));
    check(&into);
}

#[test]
fn an_unknown_class_is_an_error() {
    let bed = Bed::new();
    fill(&bed.open(), 1);
    let error = bed.try_open("forebay_class=nonsense").unwrap_err();
    assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::CannotOpen));
    let connection = bed.open();
    let error = connection.execute_batch("PRAGMA forebay_class = nonsense").unwrap_err();
    let known = "queries, commits, checkpoint, vacuum, backup";
    assert!(error.to_string().contains(known), "{error}");
    assert_eq!(pragma(&connection, "forebay_class"), "");
}

#[test]
fn pages_of_a_mapping_are_counted() {
    let bed = Bed::new();
    fill(&bed.open(), 2000);
    let connection = bed.open();
    assert_eq!(pragma(&connection, "mmap_size = 100000000"), "100000000");
    let rows: u32 = connection.query_row("SELECT count(v) FROM t", [], |row| row.get(0)).unwrap();
    // a writer reads its pages into private memory
    connection.execute_batch("UPDATE t SET v = 1 WHERE id % 50 = 0").unwrap();
    let counters = bed.vfs.counters();
    assert!(rows == 2000 && counters.mapped > 100 && counters.unscheduled == 0, "{counters:?}");
}

#[test]
fn a_wal_is_as_long_as_without_the_vfs() {
    let bed = Bed::new();
    let plain = Connection::open(bed.dir.path().join("plain.db")).unwrap();
    let [without, with] =
        [(plain, "plain.db-wal"), (bed.open(), "t.db-wal")].map(|(connection, wal)| {
            pragma(&connection, "journal_mode = WAL");
            (0..50).for_each(|_| fill(&connection, 200));
            std::fs::metadata(bed.dir.path().join(wal)).unwrap().len()
        });
    assert!(without > 4_000_000 && with * 10 <= without * 11, "{with}, {without} without");
}

#[test]
fn a_vacuum_ends_with_an_exclusive_lock() {
    let bed = Bed::new();
    let connection = bed.open();
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE").unwrap();
    fill(&connection, 500);
    connection.execute_batch("VACUUM").unwrap();
    let (vacuum, commits) = (bed.operations("vacuum"), bed.operations("commits"));
    fill(&connection, 500);
    assert!(bed.operations("commits")[WRITE] > commits[WRITE]);
    assert_eq!(bed.operations("vacuum"), vacuum);
}

#[test]
fn a_journal_is_deleted_in_the_class_of_its_connection() {
    let bed = Bed::new();
    let connection = bed.try_open("forebay_class=backup").unwrap();
    connection.execute_batch("PRAGMA synchronous = EXTRA").unwrap();
    fill(&connection, 10);
    assert_eq!(bed.operations("commits"), [0; 4]);
    assert!(bed.operations("backup")[FLUSH] > 2);
}
