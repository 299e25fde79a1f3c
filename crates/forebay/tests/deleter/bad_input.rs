//! Paths that cannot be deleted: each has its error, and the rest goes on.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use forebay::{DeleteOperation, DeleterOptions};

use crate::fixture::{Bed, MIB};

#[test]
fn paths_that_name_no_file_are_refused_and_the_rest_goes_on() {
    let bed = Bed::new();
    fs::create_dir(bed.path("dir")).unwrap();
    let file = bed.file("file", MIB);
    let bad: [(PathBuf, i32); 10] = [
        (bed.path("missing"), libc::ENOENT),
        (bed.path("missing/file"), libc::ENOENT),
        (bed.path("file/file"), libc::ENOTDIR),
        (bed.path("file/"), libc::ENOTDIR),
        (bed.path("dir"), libc::EISDIR),
        (bed.path("dir/"), libc::EISDIR),
        (bed.path("dir/."), libc::EISDIR),
        (PathBuf::new(), libc::ENOENT),
        (PathBuf::from(OsStr::from_bytes(b"a\0b")), libc::EINVAL),
        (bed.path(&"x".repeat(300)), libc::ENAMETOOLONG),
    ];
    let deleter = bed.deleter();
    let good = bed.file("good", MIB);
    let mut paths: Vec<PathBuf> = bad.iter().map(|(path, _)| path.clone()).collect();
    paths.push(good.clone());
    let mut deletions = deleter.delete_all(paths);
    deletions.pop().unwrap().wait().unwrap();
    for ((path, errno), deletion) in bad.iter().zip(deletions) {
        let error = deletion.wait().unwrap_err();
        assert_eq!((error.errno(), &error.path), (Some(*errno), path), "{error}");
        assert_eq!(
            std::io::Error::from(error).kind(),
            std::io::Error::from_raw_os_error(*errno).kind()
        );
    }
    assert!(file.exists() && !good.exists());
    assert_eq!(deleter.snapshot().errors, 10);
}

#[test]
fn odd_names_are_names_like_others() {
    let bed = Bed::new();
    let names: [&[u8]; 6] = [b" ", b"-rf", b"...", b"a\nb", b"\xff\xfe", &[b'n'; 255]];
    let deleter = bed.deleter();
    for name in names {
        let path = bed.dir().join(OsStr::from_bytes(name));
        fs::write(&path, vec![7; 2 * MIB as usize]).unwrap();
        deleter.delete(&path).wait().unwrap();
        assert!(!path.exists());
    }
}

/// All had one message before, which named the owner.
#[test]
fn faults_of_a_trash_are_reported_with_advice() {
    let bed = Bed::new();
    let file = bed.file("file", 2 * MIB);
    let trash = bed.path(".forebay-trash");
    let refused = |errno: i32, cause: &str, remedy: &str| {
        let error = bed.deleter().delete(&file).wait().unwrap_err();
        let said = error.to_string();
        assert_eq!(error.errno(), Some(errno), "{said}");
        assert!(said.contains(cause) && said.contains(remedy), "{said}");
        assert!(said.contains(trash.to_str().unwrap()), "{said}");
        assert_eq!(fs::read(&file).unwrap().len() as u64, 2 * MIB);
    };
    fs::create_dir(bed.path("elsewhere")).unwrap();
    symlink(bed.path("elsewhere"), &trash).unwrap();
    refused(libc::ELOOP, "is a symbolic link", "remove the link");
    fs::remove_file(&trash).unwrap();
    fs::write(&trash, "").unwrap();
    refused(libc::ENOTDIR, "is no directory", "rename or remove what is there");
    fs::remove_file(&trash).unwrap();
    fs::create_dir(&trash).unwrap();
    for mode in [0o777, 0o770, 0o702] {
        fs::set_permissions(&trash, Permissions::from_mode(mode)).unwrap();
        refused(libc::EPERM, &format!("(mode {mode:o})"), "`chmod go-w`");
    }
}

/// Threads have the rights of who started them, so the deleter's has these.
#[test]
fn a_trash_of_another_user_and_one_that_may_not_be_read_are_told_apart() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let bed = Bed::new();
    fs::set_permissions(bed.dir(), Permissions::from_mode(0o777)).unwrap();
    let (file, trash) = (bed.file("file", 2 * MIB), bed.path(".forebay-trash"));
    fs::create_dir(&trash).unwrap();
    let refused = |mode: u32, owner: u32, errno: i32, said: &str| {
        fs::set_permissions(&trash, Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&trash, Some(owner), None).unwrap();
        let deleter = bed.deleter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
                let error = deleter.delete(&file).wait().unwrap_err();
                assert_eq!(error.errno(), Some(errno), "{error}");
                assert!(error.to_string().contains(said), "{error}");
            });
        });
    };
    refused(0o755, 0, libc::EPERM, "belongs to user 0, and this process is user 65534");
    refused(0o300, 65534, libc::EACCES, "may not be read by user 65534");
    refused(0o700, 0, libc::EPERM, "belongs to user 0, and this process is user 65534");
}

/// No file can be opened in the threads of this test, as at these limits.
#[test]
fn without_descriptors_in_the_process_or_on_the_machine_it_is_said_which_limit_to_raise() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    for (errno, remedy) in [(libc::EMFILE, "`ulimit -n`"), (libc::ENFILE, "`fs.file-max`")] {
        let bed = Bed::new();
        let file = bed.file("file", 2 * MIB);
        let deleter = bed.deleter();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let refused = SeccompFilter::new(
                    [(libc::SYS_openat, Vec::new())].into(),
                    SeccompAction::Allow,
                    SeccompAction::Errno(errno.cast_unsigned()),
                    std::env::consts::ARCH.try_into().unwrap(),
                );
                let refused = BpfProgram::try_from(refused.unwrap()).unwrap();
                seccompiler::apply_filter(&refused).unwrap();
                for deletion in [deleter.delete(&file), deleter.empty_trash(bed.dir())] {
                    let error = deletion.wait().unwrap_err();
                    let said = error.to_string();
                    assert_eq!(error.errno(), Some(errno), "{said}");
                    assert!(said.contains("open its directory") && said.contains(remedy), "{said}");
                }
            });
        });
        assert_eq!(fs::read(&file).unwrap().len() as u64, 2 * MIB);
    }
}

#[test]
fn a_trash_on_another_file_system_is_refused() {
    let bed = Bed::new();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return eprintln!("skipped") };
    let file = bed.file("file", 2 * MIB);
    let same = fs::metadata(other.path()).unwrap();
    let here = fs::metadata(bed.dir()).unwrap();
    if std::os::unix::fs::MetadataExt::dev(&same) == std::os::unix::fs::MetadataExt::dev(&here) {
        return eprintln!("skipped: needs two file systems");
    }
    let options = DeleterOptions::new().always_in_steps(true).trash_in(other.path());
    let error = bed.deleter_with(options).delete(&file).wait().unwrap_err();
    assert_eq!(error.errno(), Some(libc::EXDEV), "{error}");
    assert_eq!(fs::read(&file).unwrap().len() as u64, 2 * MIB);
    let operation = matches!(
        error.cause,
        forebay::DeleteErrorCause::System { operation: DeleteOperation::Rename, .. }
    );
    assert!(operation, "{error}");
}

/// Threads have the rights of who started them, so the deleter's has these.
#[test]
fn without_permission_each_file_fails_alone() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let bed = Bed::new();
    fs::set_permissions(bed.dir(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(bed.path("open")).unwrap();
    fs::set_permissions(bed.path("open"), Permissions::from_mode(0o777)).unwrap();
    let (refused, allowed) = (bed.file("refused", 2 * MIB), bed.file("open/allowed", 2 * MIB));
    let deleter = bed.deleter();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).unwrap();
            let error = deleter.delete(&refused).wait().unwrap_err();
            assert_eq!(error.errno(), Some(libc::EACCES), "{error}");
            // It may be moved away, and nobody can tell who has it open.
            let deleted = deleter.delete(&allowed).wait().unwrap();
            let reason = forebay::UnlinkReason::OpenElsewhere;
            assert_eq!(deleted.how, forebay::DeletedHow::Unlinked(reason));
        });
    });
    assert_eq!(fs::read(refused).unwrap().len() as u64, 2 * MIB);
    assert!(!allowed.exists());
}
