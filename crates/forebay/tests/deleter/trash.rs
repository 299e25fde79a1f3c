//! What earlier processes left in the trash.

use std::fs;
use std::os::fd::AsRawFd;

use forebay::{DeletedHow, DeleterOptions, UnlinkReason};

use crate::fixture::{Bed, MIB};

/// As a process leaves it that is killed.
fn leave(bed: &Bed, names: &[&str]) {
    fs::create_dir_all(bed.path(".forebay-trash")).unwrap();
    for name in names {
        bed.file(&format!(".forebay-trash/{name}"), 2 * MIB);
    }
}

const LEFT: [&str; 3] =
    ["forebay-0123456789abcdef-1", "forebay-0123456789abcdef-2a", "forebay-00000000000000ff-7"];

#[test]
fn left_over_files_are_found_and_deleted() {
    let bed = Bed::new();
    leave(&bed, &LEFT);
    let deleter = bed.deleter();
    let deleted = deleter.empty_trash(bed.dir()).wait().unwrap();
    assert_eq!(deleted.files, 3);
    bed.assert_in_steps(deleted, 6 * MIB);
    deleter.drain().wait().unwrap();
    assert_eq!(bed.names(), [""; 0]);
    assert_eq!(deleter.empty_trash(bed.dir()).wait().unwrap().files, 0);
    deleter.empty_trash(bed.path("missing")).wait().unwrap_err();
}

/// To open and to close it would drop the record locks that the process has on it.
#[test]
fn a_left_over_file_with_another_name_is_not_opened() {
    let bed = Bed::new();
    leave(&bed, &LEFT[..1]);
    let kept = bed.path("kept");
    fs::hard_link(bed.path(".forebay-trash").join(LEFT[0]), &kept).unwrap();
    let open = || fs::File::options().read(true).write(true).open(&kept).unwrap();
    // Both stay open: to close either drops the lock, too.
    let (locked, other) = (open(), open());
    let lock = |file: &fs::File, command, kind| {
        let (l_type, l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
        let mut lock = libc::flock { l_type, l_whence, l_start: 0, l_len: 1, l_pid: 0 };
        // SAFETY: both commands take a `struct flock`, which lives during the call.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        assert_eq!(result, 0);
        libc::c_int::from(lock.l_type)
    };
    lock(&locked, libc::F_SETLK, libc::F_WRLCK);
    let is_locked = || lock(&other, libc::F_OFD_GETLK, libc::F_WRLCK) == libc::F_WRLCK;
    assert!(is_locked());
    let deleted = bed.deleter().empty_trash(bed.dir()).wait().unwrap();
    assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::HardLinked));
    assert!(is_locked());
}

#[test]
fn left_over_files_are_deleted_with_the_next_file() {
    let bed = Bed::new();
    leave(&bed, &LEFT);
    let deleter = bed.deleter();
    deleter.delete(bed.file("file", MIB)).wait().unwrap();
    deleter.drain().wait().unwrap();
    assert_eq!(bed.names(), [""; 0]);
}

#[test]
fn nothing_else_in_a_trash_is_touched() {
    let bed = Bed::new();
    let others =
        ["table", "forebay-1-1", "forebay-0123456789abcdef-", "forebay-0123456789ABCDEF-1"];
    leave(&bed, &others);
    fs::create_dir(bed.path(".forebay-trash/forebay-0123456789abcdef-9")).unwrap();
    let deleter = bed.deleter();
    assert_eq!(deleter.empty_trash(bed.dir()).wait().unwrap().files, 0);
    deleter.delete(bed.file("file", MIB)).wait().unwrap();
    deleter.drain().wait().unwrap();
    for name in others {
        let path = bed.path(&format!(".forebay-trash/{name}"));
        assert_eq!(fs::read(path).unwrap().len() as u64, 2 * MIB, "{name}");
    }
}

#[test]
fn one_trash_is_for_all_where_asked_for() {
    let bed = Bed::new();
    for dir in ["trash-in", "one", "two"] {
        fs::create_dir(bed.path(dir)).unwrap();
    }
    let options = DeleterOptions::new().always_in_steps(true).rate(64 * MIB);
    let options = options.trash_in(bed.path("trash-in")).trash_name("bin");
    let deleter = bed.deleter_with(options);
    let files = ["one/file", "two/file"].map(|name| bed.file(name, 4 * MIB));
    let deletions = deleter.delete_all(files);
    deletions.iter().for_each(|deletion| deletion.wait_removed().unwrap());
    // they can be removed now
    fs::remove_dir(bed.path("one")).unwrap();
    fs::remove_dir(bed.path("two")).unwrap();
    deletions.iter().for_each(|deletion| {
        deletion.wait().unwrap();
    });
    deleter.drain().wait().unwrap();
    fs::remove_dir(bed.path("trash-in")).unwrap();
}

#[test]
fn two_deleters_in_one_directory_delete_all() {
    let bed = Bed::new();
    let deleters = [bed.deleter(), bed.deleter()];
    let deletions: Vec<_> = (0..60)
        .map(|n| {
            let path = bed.file(&format!("{n}"), MIB + n * 50_000);
            deleters[n as usize % 2].delete(path)
        })
        .collect();
    deletions.iter().for_each(|deletion| {
        deletion.wait().unwrap();
    });
    deleters.iter().for_each(|deleter| {
        deleter.drain().wait().unwrap();
    });
    bed.deleter().drain().wait().unwrap();
    let left = bed.names();
    assert!(left.is_empty() || fs::read_dir(bed.path(&left[0])).unwrap().count() == 0, "{left:?}");
}
