//! Which files are freed in steps, and how.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;

use forebay::{DeletedHow, DeleterOptions, Limits, Op, UnlinkReason};

use crate::fixture::{Bed, MIB};
use crate::record_lock;

#[test]
fn a_large_file_is_freed_from_its_end_in_steps_of_the_rate() {
    let bed = Bed::new();
    let path = bed.file("large", 8 * MIB);
    let options = DeleterOptions::new().always_in_steps(true).rate(25 * MIB);
    let deleted = bed.deleter_with(options).delete(&path).wait().unwrap();
    bed.assert_in_steps(deleted, 8 * MIB);
    if bed.has_leases() {
        // 2 MiB each
        assert!((4..=6).contains(&deleted.steps), "{deleted:?}");
    }
    assert!(!path.exists());
}

/// The library had it open still, so it was only unlinked.
#[test]
fn a_file_whose_writer_was_dropped_while_parts_wait_is_freed_in_steps() {
    let bed = Bed::new();
    if !bed.has_leases() {
        return eprintln!("skipped: nobody can tell who has a file open");
    }
    // It may do nothing for a minute.
    let class = bed.scheduler.add_class("writes", 100).unwrap();
    let limits = Limits { bytes_per_second: Some(MIB / 64), ..Limits::default() };
    class.set_limits(&limits).unwrap();
    class.admit(Op::Write, MIB).unwrap().complete(&Ok(()));
    for in_place in [false, true] {
        // What is written for the first time has no blocks yet.
        let path = bed.file("dirty", 4 * MIB);
        let file = File::options().write(true).open(&path).unwrap();
        class.buffered_writer(file).unwrap().write_all_at(&[8; 4 << 20], 0).unwrap();
        let options = DeleterOptions::new().always_in_steps(true).in_place(in_place);
        let deleted = bed.deleter_with(options).delete(&path).wait().unwrap();
        bed.assert_in_steps(deleted, 4 * MIB);
        assert!(!path.exists());
    }
    assert_eq!(class.permit_counters().queued, 0);
    // Nothing is left to write.
    assert_eq!(class.page_cache_counters().left_to_kernel, 0);
}

#[test]
fn a_file_whose_writer_is_there_is_unlinked_and_written_back() {
    let bed = Bed::new();
    let class = bed.scheduler.add_class("writes", 100).unwrap();
    let path = bed.path("dirty");
    let writer = class.buffered_writer(File::create_new(&path).unwrap()).unwrap();
    writer.write_all_at(&[7; 4 << 20], 0).unwrap();
    let deleted = bed.deleter().delete(&path).wait().unwrap();
    assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::OpenElsewhere));
    writer.sync_all().unwrap();
    assert_eq!(class.permit_counters().bytes[Op::Write.index()], 4 * MIB);
}

/// Whether another process sees a record lock on an open file.
fn is_locked(file: &File) -> bool {
    record_lock::is_locked(|| file.as_raw_fd())
}

/// The deleter opened and closed it to see whether anybody has it open.
#[test]
fn a_file_that_the_engine_has_open_keeps_its_record_lock() {
    let bed = Bed::new();
    for in_place in [false, true] {
        let path = bed.file("locked", 4 * MIB);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        assert!(!is_locked(&file));
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::fcntl_lock(&file, lock).unwrap();
        assert!(is_locked(&file));
        let options = DeleterOptions::new().always_in_steps(true).in_place(in_place);
        let deleter = bed.deleter_with(options);
        let deleted = deleter.delete(&path).wait().unwrap();
        assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::OpenElsewhere));
        deleter.drain().wait().unwrap();
        assert!(is_locked(&file), "lost");
    }
}

#[test]
fn small_files_share_steps() {
    let bed = Bed::new();
    let paths: Vec<_> = (0..200).map(|n| bed.file(&format!("small-{n}"), 5000)).collect();
    let deleter = bed.deleter();
    for deletion in deleter.delete_all(paths) {
        let deleted = deletion.wait().unwrap();
        if bed.has_leases() {
            assert_eq!((deleted.how, deleted.steps), (DeletedHow::Truncated, 1));
        }
    }
    let counted = deleter.snapshot();
    assert_eq!((counted.files, counted.errors, counted.backlog_files), (200, 0, 0));
    assert_eq!(counted.backlog_bytes, 0);
    assert!(counted.steps < 50, "{counted:?}");
    deleter.drain().wait().unwrap();
    assert_eq!(bed.names(), [""; 0]);
}

#[test]
fn a_sparse_terabyte_is_deleted_soon() {
    let bed = Bed::new();
    let path = bed.path("sparse");
    let file = File::create_new(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    for at in [5, 1 << 30, (1 << 40) - 4096] {
        file.write_all_at(&[1; 4096], at).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let options = DeleterOptions::new().always_in_steps(true).rate(MIB);
    let deleted = bed.deleter_with(options).delete(&path).wait().unwrap();
    assert!(deleted.steps < 20, "{deleted:?}");
}

#[test]
fn a_file_with_another_name_keeps_its_data() {
    let bed = Bed::new();
    let path = bed.file("one", 2 * MIB);
    fs::hard_link(&path, bed.path("other")).unwrap();
    let deleted = bed.deleter().delete(&path).wait().unwrap();
    assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::HardLinked));
    assert_eq!(fs::read(bed.path("other")).unwrap(), vec![7; 2 * MIB as usize]);
}

#[test]
fn a_file_that_somebody_has_open_keeps_its_data() {
    let bed = Bed::new();
    for in_place in [false, true] {
        let path = bed.file("open", 2 * MIB);
        let reader = File::open(&path).unwrap();
        let options = DeleterOptions::new().always_in_steps(true).in_place(in_place);
        let deleted = bed.deleter_with(options).delete(&path).wait().unwrap();
        assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::OpenElsewhere));
        let mut data = vec![0; 2 * MIB as usize];
        reader.read_exact_at(&mut data, 0).unwrap();
        assert!(data.iter().all(|byte| *byte == 7) && !path.exists());
    }
}

#[test]
fn a_link_is_unlinked_and_what_it_leads_to_stays() {
    let bed = Bed::new();
    let path = bed.file("file", MIB);
    symlink(&path, bed.path("link")).unwrap();
    symlink("nowhere", bed.path("dangling")).unwrap();
    for name in ["link", "dangling"] {
        let deleted = bed.deleter().delete(bed.path(name)).wait().unwrap();
        assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::NothingToFree));
    }
    assert_eq!(fs::read(path).unwrap().len(), MIB as usize);
    assert_eq!(bed.names(), ["file"]);
}

#[test]
fn special_files_are_unlinked() {
    let bed = Bed::new();
    let _socket = UnixListener::bind(bed.path("socket")).unwrap();
    let fifo = rustix::fs::mknodat(
        rustix::fs::CWD,
        bed.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    fifo.unwrap();
    bed.file("empty", 0);
    let deleter = bed.deleter();
    for name in ["socket", "fifo", "empty"] {
        let deleted = deleter.delete(bed.path(name)).wait().unwrap();
        assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::NothingToFree), "{name}");
    }
    assert_eq!(bed.names(), [""; 0]);
}

#[test]
fn where_nothing_is_discarded_files_are_unlinked_unless_asked_for() {
    let bed = Bed::new();
    let path = bed.file("file", 2 * MIB);
    let deleted = bed.deleter_with(DeleterOptions::new()).delete(&path).wait().unwrap();
    // on what the machine has here
    let unlinked = deleted.how == DeletedHow::Unlinked(UnlinkReason::NoDiscards);
    assert!(unlinked || deleted.steps > 0 || !bed.has_leases(), "{deleted:?}");
    assert!(!path.exists());
}

#[test]
fn a_file_is_unlinked_at_once_and_freed_in_place() {
    let bed = Bed::new();
    let paths: Vec<_> =
        (0..150).map(|n| bed.file(&format!("{n}"), 2 * MIB / (1 + n % 3))).collect();
    let options = DeleterOptions::new().always_in_steps(true).in_place(true);
    let deleter = bed.deleter_with(options);
    for deletion in deleter.delete_all(paths) {
        bed.assert_in_steps(deletion.wait().unwrap(), 2 * MIB / 3);
    }
    assert_eq!(bed.names(), [""; 0]);
}

/// More than are asked for at a time, and in offsets that no file of the file system can have.
#[test]
fn a_file_of_many_extents_is_freed_in_steps() {
    let bed = Bed::new();
    for (extents, gap) in [(63u64, 8192u64), (64, 8192), (65, 8192), (300, 65_536)] {
        let path = bed.dir().join("many");
        let file = File::create(&path).unwrap();
        (0..extents).for_each(|n| file.write_all_at(&[7; 4096], n * gap).unwrap());
        file.sync_all().unwrap();
        drop(file);
        let deleted = bed.deleter().delete(&path).wait();
        assert!(deleted.is_ok(), "{extents} extents: {deleted:?}");
        assert!(!path.exists());
    }
}
