//! Names of VFSs, and unusual ways to open databases.

use std::cell::RefCell;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use forebay::{Scheduler, Unlisted};
use forebay_sqlite::{Options, RegisterError, register_with};
use rusqlite::{Connection, OpenFlags};

use crate::{Bed, check, fill, pragma};

#[test]
fn a_used_name_and_a_missing_base_are_errors() {
    let bed = Bed::new();
    let options = Options { name: bed.name.clone(), ..Options::default() };
    let error = register_with(&bed.scheduler, &options).unwrap_err();
    assert!(matches!(error, RegisterError::NameTaken(_)), "{error}");
    let options =
        Options { name: "other".to_owned(), base: Some("nonsense".to_owned()), is_default: false };
    let error = register_with(&bed.scheduler, &options).unwrap_err();
    assert_eq!(error.to_string(), "SQLite has no VFS `nonsense` to wrap");
}

#[test]
fn other_kinds_of_locks_and_nested_vfs_work() {
    let first = Bed::new();
    for base in ["unix-none", "unix-dotfile", "unix-excl", first.name.as_str()] {
        let bed = Bed::around(Some(base));
        let connection = bed.open();
        fill(&connection, 300);
        let rows: u32 =
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 300, "{base}");
        drop(connection);
        check(&bed.dir.path().join("t.db"));
    }
}

#[test]
fn nolock_immutable_temporary_attached_and_memory_databases_are_unchanged() {
    let bed = Bed::new();
    fill(&bed.open(), 300);
    for parameters in ["nolock=1", "immutable=1", "mode=ro", "cache=shared", "psow=0"] {
        let connection = bed.try_open(parameters).unwrap();
        let rows: u32 =
            connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 300, "{parameters}");
    }
    let connection = bed.open();
    let other = bed.dir.path().join("other.db");
    connection.execute("ATTACH ? AS other", [other.to_str().unwrap()]).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE other.u AS SELECT * FROM t; CREATE TEMP TABLE v AS SELECT * FROM t;
             ATTACH ':memory:' AS memory; CREATE TABLE memory.w AS SELECT * FROM t;
             BEGIN; DELETE FROM t WHERE id = 1; DELETE FROM other.u WHERE id = 2; COMMIT;
             SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; RELEASE s",
        )
        .unwrap();
    drop(connection);
    check(&other);
    for name in ["", ":memory:"] {
        let nameless =
            Connection::open_with_flags_and_vfs(name, OpenFlags::default(), bed.name.as_str());
        fill(&nameless.unwrap(), 3000);
    }
}

#[test]
fn a_disk_without_an_entry_is_refused_if_the_scheduler_refuses_it() {
    let scheduler = Scheduler::builder().unlisted(Unlisted::Error).build().unwrap();
    let options = Options { name: "listed".to_owned(), base: None, is_default: false };
    register_with(&scheduler, &options).unwrap();
    let bed = Bed::new();
    let path = bed.dir.path().join("t.db");
    let open = || Connection::open_with_flags_and_vfs(&path, OpenFlags::default(), "listed");
    let refused = open().unwrap_err();
    assert_eq!(refused.sqlite_error_code(), Some(rusqlite::ErrorCode::CannotOpen));
    assert!(!path.exists());
    fill(&bed.open(), 1);
    assert!(open().is_err());
}

#[test]
fn a_connection_that_ends_with_its_thread_is_closed() {
    thread_local!(static KEPT: RefCell<Option<Connection>> = const { RefCell::new(None) });
    let bed = Arc::new(Bed::new());
    // this decides whether the connection or the library's data of the thread ends first
    for is_known_first in [true, false] {
        let bed_there = Arc::clone(&bed);
        let thread = thread::spawn(move || {
            if is_known_first {
                KEPT.set(None);
            }
            let connection = bed_there.open();
            pragma(&connection, "journal_mode = WAL");
            fill(&connection, 300);
            KEPT.set(Some(connection));
        });
        thread.join().unwrap();
        assert!(!bed.dir.path().join("t.db-wal").exists(), "{is_known_first}");
    }
    check(&bed.dir.path().join("t.db"));
}

#[test]
fn another_process_sees_the_locks() {
    let bed = Bed::new();
    let connection = bed.open();
    fill(&connection, 3000);
    let path = bed.dir.path().join("t.db");
    let shell = |sql: &str| {
        let output = Command::new("sqlite3").arg(&path).arg(sql).output().unwrap();
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
    };
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    fill(&connection, 10);
    pragma(&bed.open(), "integrity_check");
    assert!(shell("INSERT INTO t(v) VALUES(1)").contains("database is locked"));
    connection.execute_batch("COMMIT; BEGIN EXCLUSIVE").unwrap();
    assert!(shell("SELECT count(*) FROM t").contains("database is locked"));
    connection.execute_batch("COMMIT").unwrap();
    assert_eq!(shell("SELECT count(*) FROM t").trim(), "3010");
}
