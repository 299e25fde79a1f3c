//! Deleting on file systems that discard, and where that goes wrong.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{DeletedHow, Deleter, DeleterOptions, Scheduler, UnlinkReason};

use crate::loop_mount::{Lab, listing, mount, system, unmount};

const MIB: u64 = 1 << 20;

/// A disk with a file system that is mounted with these options.
struct Bed {
    point: PathBuf,
    _scheduler: Scheduler,
    deleter: Deleter,
    lab: Lab,
}

impl Bed {
    fn new(kind: &str, size: u64, mount_options: &str, options: DeleterOptions) -> Self {
        let lab = Lab::in_memory(size);
        // so that nothing is written later that files have no part in
        let at_once: &[&str] = match kind {
            "ext4" => &["-J", "size=4", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            _ => &[],
        };
        system(&format!("mkfs.{kind}"), &[at_once, &["-q", &lab.device]].concat());
        let point = lab.dir("point");
        mount(&["-t", kind, "-o", mount_options, &lab.device], &point);
        let scheduler = listing(&point).build().unwrap();
        let class = scheduler.add_class("deletes", 100).unwrap();
        let options = options.free_bytes_min(Some(0));
        let deleter = Deleter::new(&class, options).unwrap();
        Self { point, _scheduler: scheduler, deleter, lab }
    }

    fn file(&self, name: &str, len: u64) -> PathBuf {
        let path = self.point.join(name);
        write(&path, len);
        path
    }

    /// What was written to the device so far.
    fn written(&self) -> u64 {
        let name = self.lab.device.trim_start_matches("/dev/");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        stat.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
    }

    /// What the image takes.
    fn held(&self) -> u64 {
        fs::metadata(self.lab.dir("").join("image")).unwrap().blocks() * 512
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        drop(self.deleter.drain().wait());
        unmount(&self.point);
    }
}

fn write(path: &Path, len: u64) {
    let file = File::create_new(path).unwrap();
    for at in (0..len).step_by(MIB as usize) {
        file.write_all_at(&vec![7; (len - at).min(MIB) as usize], at).unwrap();
    }
    file.sync_all().unwrap();
}

pub(crate) fn the_image_shrinks_as_a_file_is_freed() {
    for kind in ["ext4", "xfs"] {
        let options = DeleterOptions::new().rate(400 * MIB);
        let bed = Bed::new(kind, 400 * MIB, "discard", options);
        let mut paths = vec![bed.file("large", 80 * MIB)];
        paths.extend((0..100).map(|n| bed.file(&format!("{n}"), 100_000 + n * 300)));
        let on_disk = |path: &PathBuf| fs::metadata(path).unwrap().blocks() * 512;
        let (full, files) = (bed.held(), paths.iter().map(on_disk).sum::<u64>());
        assert!(full > files && files > 85 * MIB, "{kind}: {full}, {files}");
        for deletion in bed.deleter.delete_all(paths) {
            let deleted = deletion.wait().unwrap();
            assert!(!matches!(deleted.how, DeletedHow::Unlinked(_)), "{kind}: {deleted:?}");
            assert!(deleted.bytes < 80 * MIB || deleted.steps >= 3, "{kind}: {deleted:?}");
        }
        let begin = Instant::now();
        while (full - bed.held().min(full)) * 20 < files * 19 {
            let left = bed.held();
            assert!(
                begin.elapsed() < Duration::from_secs(100),
                "{kind}: {full} to {left}, {files} freed"
            );
            thread::sleep(Duration::from_millis(20));
        }
        let counted = bed.deleter.snapshot();
        eprintln!("{kind}: {} to {} bytes, {counted:?}", full, bed.held());
    }
}

/// What waits in memory to be written, to files that are deleted, was written first: a delete of
/// fresh files made reads wait behind all that they had.
pub(crate) fn dirty_pages_are_not_written_only_to_be_deleted() {
    const LEN: u64 = 64 * MIB;
    for kind in ["ext4", "xfs"] {
        for in_place in [false, true] {
            let options = DeleterOptions::new().rate(200 * MIB).in_place(in_place);
            let bed = Bed::new(kind, 400 * MIB, "discard", options);
            // one has no blocks yet, the other has its blocks and newer data in memory
            let paths = [bed.point.join("fresh"), bed.file("written", LEN)];
            let before = bed.written();
            for path in &paths {
                let file =
                    File::options().write(true).create(true).truncate(false).open(path).unwrap();
                for at in (0..LEN).step_by(MIB as usize) {
                    file.write_all_at(&[8; MIB as usize], at).unwrap();
                }
            }
            for deletion in bed.deleter.delete_all(&paths) {
                let deleted = deletion.wait().unwrap();
                eprintln!("{kind}, in place: {in_place}: {deleted:?}");
                assert_eq!(deleted.how, DeletedHow::Truncated, "{kind}");
            }
            let written = bed.written() - before;
            assert!(written < LEN / 2, "{kind}, in place {in_place}: {written} bytes were written");
        }
    }
}

pub(crate) fn without_discards_files_are_unlinked() {
    let bed = Bed::new("xfs", 320 * MIB, "nodiscard", DeleterOptions::new());
    let deleted = bed.deleter.delete(bed.file("file", 8 * MIB)).wait().unwrap();
    assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::NoDiscards));
    assert!(!bed.point.join(".forebay-trash").exists());
}

pub(crate) fn a_full_file_system_is_no_reason_not_to_delete() {
    for kind in ["ext4", "xfs"] {
        let bed = Bed::new(kind, 320 * MIB, "discard", DeleterOptions::new());
        let paths: Vec<_> = (0..4).map(|n| bed.file(&format!("{n}"), 8 * MIB)).collect();
        let fill = File::create_new(bed.point.join("fill")).unwrap();
        for len in [MIB, 4096, 512] {
            let mut at = fill.metadata().unwrap().len();
            while fill.write_all_at(&vec![1; len as usize], at).is_ok() {
                at += len;
            }
        }
        // so that a directory has no room, either
        let mut more = 0;
        while File::create(bed.point.join(format!("more-{more}")))
            .and_then(|file| file.write_all_at(&[1; 4096], 0))
            .is_ok()
        {
            more += 1;
        }
        for deletion in bed.deleter.delete_all(&paths) {
            let deleted = deletion.wait().unwrap();
            eprintln!("{kind}: {deleted:?}");
        }
        assert!(paths.iter().all(|path| !path.exists()));
    }
}

pub(crate) fn files_that_cannot_be_deleted_fail_alone() {
    let bed = Bed::new("ext4", 64 * MIB, "discard", DeleterOptions::new());
    let paths: Vec<_> = (0..4).map(|n| bed.file(&format!("{n}"), 2 * MIB)).collect();
    let (immutable, append_only) = (&paths[1], &paths[2]);
    system("chattr", &["+i", immutable.to_str().unwrap()]);
    system("chattr", &["+a", append_only.to_str().unwrap()]);
    for (n, deletion) in bed.deleter.delete_all(&paths).iter().enumerate() {
        match deletion.wait() {
            Ok(_) => assert!([0, 3].contains(&n), "{n}"),
            Err(error) => {
                assert_eq!(error.errno(), Some(libc::EPERM), "{error}");
                assert_eq!(fs::read(&paths[n]).unwrap(), vec![7; 2 * MIB as usize]);
            }
        }
    }
    assert_eq!(bed.deleter.snapshot().errors, 2);
    system("chattr", &["-i", immutable.to_str().unwrap()]);
    system("chattr", &["-a", append_only.to_str().unwrap()]);
    bed.deleter.delete_all([immutable, append_only]).iter().for_each(|deletion| {
        deletion.wait().unwrap();
    });
}

pub(crate) fn a_trash_that_is_a_mount_is_refused() {
    let bed = Bed::new("ext4", 64 * MIB, "discard", DeleterOptions::new());
    let (file, trash) = (bed.file("file", 2 * MIB), bed.point.join(".forebay-trash"));
    fs::create_dir(&trash).unwrap();
    let same = bed.point.join("same");
    fs::create_dir(&same).unwrap();
    for arguments in [&["-t", "tmpfs", "none"][..], &["--bind", same.to_str().unwrap()]] {
        mount(arguments, &trash);
        let error = bed.deleter.delete(&file).wait().unwrap_err();
        assert_eq!(error.errno(), Some(libc::EXDEV), "{error}");
        assert_eq!(fs::read(&file).unwrap().len() as u64, 2 * MIB);
        bed.deleter.drain().wait().unwrap();
        assert!(unmount(&trash));
    }
    bed.deleter.delete(&file).wait().unwrap();
}
