//! Descriptors of every kind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::{Bed, MIB, contents, pattern, until};

#[test]
fn unwritable_properties_are_refused_with_a_message() {
    let bed = Bed::new();
    bed.file("data");
    let path = bed.dir.path().join("data");
    for (what, refused) in [
        ("reading only", bed.class.buffered_writer(File::open(&path).unwrap()).map(drop)),
        ("for files", bed.class.buffered_writer(io::pipe().unwrap().1).map(drop)),
        ("for files", bed.class.buffered_writer(File::open(bed.dir.path()).unwrap()).map(drop)),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(what), "{refused}");
    }
}

#[test]
fn a_writer_of_a_leased_file_waits_for_no_lease_and_breaks_none() {
    let bed = Bed::new();
    let file = bed.file("leased");
    // SAFETY: the calls touch no memory, and the descriptor is open.
    let lease =
        |command, kind: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), command, kind) };
    if lease(libc::F_SETLEASE, libc::F_WRLCK) != 0 {
        return;
    }
    let begin = Instant::now();
    let mut writer = bed.class.buffered_writer(&file).unwrap();
    writer.write_all(&pattern(1 << 20)).unwrap();
    writer.sync_data().unwrap();
    drop(writer);
    // It takes less than 1 ms. Who breaks the lease waits for 45 s.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert_eq!(lease(libc::F_GETLEASE, 0), libc::F_WRLCK);
}

#[test]
fn a_file_that_may_not_be_opened_any_more_is_written_and_flushed() {
    let bed = Bed::new();
    let file = bed.file("private");
    let dropped = |file: File| {
        // SAFETY: the call touches no memory. It changes this thread alone, and those it starts.
        if unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) } != 0 {
            return;
        }
        let mut writer = bed.class.buffered_writer(file).unwrap();
        writer.write_all(&pattern(2 << 20)).unwrap();
        writer.sync_data().unwrap();
    };
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    thread::scope(|scope| scope.spawn(|| dropped(file)).join().unwrap());
}

#[test]
fn a_log_is_written_at_its_end() {
    let bed = Bed::new();
    let path = bed.dir.path().join("log");
    fs::write(&path, "begin ").unwrap();
    let log = OpenOptions::new().append(true).open(&path).unwrap();
    let mut writer = bed.class.buffered_writer(log).unwrap();
    let data = pattern(1 << 20);
    writer.write_all(&data).unwrap();
    assert_eq!(writer.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    writer.sync_data().unwrap();
    assert_eq!((writer.dirty(), bed.admitted()), (0, (1 << 20) + 4096));
    assert_eq!(contents(&path), [b"begin ", &data[..]].concat());
}

#[test]
fn concurrent_appends_are_all_in_the_file() {
    let bed = Bed::new();
    let path = bed.dir.path().join("log");
    let open = || OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let shared = open();
    let writers = [bed.class.buffered_writer(open()), bed.class.buffered_writer(open())];
    let of_shared = bed.class.buffered_writer(shared.try_clone().unwrap());
    let record = |who: u8, len: usize| vec![who; len];
    thread::scope(|scope| {
        for (who, writer) in (1..).zip(writers.into_iter().chain([of_shared])) {
            scope.spawn(move || {
                let mut writer = writer.unwrap().with_dirty_max(MIB);
                for len in 1..300 {
                    // no longer than a part, so it is one write
                    assert_eq!(writer.write(&record(who, len * 100)).unwrap(), len * 100);
                    if len % 50 == 0 {
                        writer.sync_data().unwrap();
                    }
                }
                writer.sync_all().unwrap();
                assert_eq!(writer.dirty(), 0);
            });
        }
        // the engine itself, by the description of one of them
        scope
            .spawn(|| (1..300).for_each(|len| (&shared).write_all(&record(4, len * 100)).unwrap()));
    });
    let log = contents(&path);
    for who in 1..=4 {
        let bytes = log.iter().filter(|byte| **byte == who).count();
        assert_eq!(bytes, 100 * 299 * 300 / 2, "{who}");
    }
}

#[test]
fn a_write_that_is_at_the_disk_when_it_returns_has_its_permit_first() {
    let bed = Bed::new();
    let flags = OFlags::DSYNC.bits().cast_signed();
    let path = bed.dir.path().join("data");
    let file = OpenOptions::new().write(true).create(true).custom_flags(flags).open(&path);
    let writer = bed.class.buffered_writer(file.unwrap()).unwrap();
    writer.write_all_at(&[7; 10_000], 0).unwrap();
    assert_eq!((bed.admitted(), writer.dirty()), (10_000, 0));
    writer.sync_data().unwrap();
    assert_eq!(contents(&path), [7; 10_000]);
}

#[test]
fn a_file_that_is_cut_or_has_no_name_loses_nothing_else() {
    let bed = Bed::new();
    let path = bed.dir.path().join("data");
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    let data = pattern(3 << 20);
    writer.write_all_at(&data, 0).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
    writer.sync_data().unwrap();
    assert_eq!(contents(&path), data[..5000]);
    fs::remove_file(&path).unwrap();
    writer.write_all_at(&data, 5000).unwrap();
    writer.sync_all().unwrap();
    let file = writer.into_inner().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5000 + (3 << 20));
}

#[test]
fn the_last_page_that_a_file_can_have_is_written_back() {
    // a file system in memory has files of any length
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    let bed = Bed::new();
    for offset in [1, 2, 4095, 4096, 4097, 8192].map(|before| i64::MAX as u64 - before) {
        let file = File::create_new(dir.path().join(offset.to_string())).unwrap();
        let writer = bed.class.buffered_writer(file).unwrap();
        if writer.write_all_at(&[7], offset).is_err() {
            continue;
        }
        writer.sync_data().unwrap();
        bed.class.sync_all(writer.get_ref()).unwrap();
    }
}

#[test]
fn a_file_of_others_is_written_back_with_them() {
    let bed = Bed::new();
    let file = bed.file("data");
    let mut engine = file.try_clone().unwrap();
    // borrowed, as an engine does that keeps its file
    let writer = bed.class.buffered_writer(&file).unwrap();
    engine.write_all(&pattern(2 << 20)).unwrap();
    writer.write_all_at(&[9; 4096], 2 << 20).unwrap();
    writer.sync_data().unwrap();
    // what the engine wrote by itself is seen where the kernel says what is dirty
    assert!([4096, 4096 + (2 << 20)].contains(&bed.admitted()), "{}", bed.admitted());
    drop(writer);
    until("nothing more", || bed.class.permit_counters().queued == 0);
}
