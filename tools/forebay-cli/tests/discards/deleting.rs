//! `forebay rm` where root and XFS are needed.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::fixture::{Bed, forebay, said, system, text, unmount};

pub(crate) fn without_discards() {
    let bed = Bed::on_a_file("nodiscard");
    let dir = bed.files("files", 3, 4);
    let output = forebay(&["rm", "-r", "--rate", "1kB", text(&dir)]).output().unwrap();
    let words = said(&output, 0);
    assert!(words.contains("mounted without `discard`"), "{words}");
    assert!(words.contains("deleting files there sends no discards"), "{words}");
    assert!(!dir.exists());
    assert_eq!(bed.point.read_dir().unwrap().count(), 0);
}

pub(crate) fn other_file_systems() {
    let bed = Bed::on_a_file("discard");
    let dir = bed.files("files", 2, 1);
    let other = dir.join("other");
    let bound = dir.join("bound");
    for path in [&other, &bound] {
        fs::create_dir(path).unwrap();
    }
    let kept = bed.files("kept", 1, 1);
    system("mount", &["-t", "tmpfs", "none", text(&other)]);
    system("mount", &["--bind", text(&kept), text(&bound)]);
    File::create_new(other.join("file")).unwrap();

    let output = forebay(&["rm", "-r", text(&dir), text(&other)]).output().unwrap();
    let words = said(&output, 3);
    assert!(words.contains("--cross-file-systems"), "{words}");
    assert!(words.contains("something is mounted there"), "{words}");
    assert!(other.join("file").exists() && kept.join("0").exists());
    assert!(!dir.join("0").exists());

    unmount(&bound);
    let output = forebay(&["rm", "-r", "--cross-file-systems", text(&dir)]).output().unwrap();
    // what is mounted stays mounted, with nothing in it
    assert!(said(&output, 1).contains("busy"));
    assert_eq!(other.read_dir().unwrap().count(), 0);
    unmount(&other);
    said(&forebay(&["rm", "-r", text(&dir)]).output().unwrap(), 0);
    assert_eq!(bed.point.read_dir().unwrap().count(), 1);
}

pub(crate) fn paths_that_may_not_be_deleted() {
    let bed = Bed::on_a_file("discard");
    let dir = bed.files("files", 4, 1);
    system("chattr", &["+i", text(&dir.join("1"))]);
    let output = forebay(&["rm", "-r", text(&dir)]).output().unwrap();
    let words = said(&output, 1);
    assert!(words.contains("files/1`: Operation not permitted"), "{words}");
    assert!(words.contains("lsattr"), "{words}");
    assert_eq!(dir.read_dir().unwrap().count(), 1);
    system("chattr", &["-i", text(&dir.join("1"))]);

    // nobody may, and the program may be where nobody may look
    match forebay(&["rm", "-r", text(&dir)]).uid(65_534).gid(65_534).output() {
        Ok(output) if output.status.code() != Some(0) => {
            // the file, and not the directories that it keeps from being removed
            let words = said(&output, 1);
            assert!(words.contains("Permission denied"), "{words}");
        }
        other => eprintln!("skipped as nobody: {other:?}"),
    }
    assert!(dir.join("1").exists());
    said(&forebay(&["rm", "-r", text(&dir)]).output().unwrap(), 0);
    assert_eq!(bed.point.read_dir().unwrap().count(), 0);
}

pub(crate) fn what_was_left() {
    let bed = Bed::on_a_file("discard");
    let empty = bed.held();
    let (dir, kept) = (bed.files("files", 6, 8), bed.files("kept", 1, 8));
    let before = fs::read(kept.join("0")).unwrap();
    let mut command = forebay(&["rm", "-r", "--rate", "4MB", text(&dir)]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    while dir.exists() {
        assert!(child.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(bed.point.join(".forebay-trash").exists());
    let empty_trash = ["rm", "--empty-trash", text(&bed.point)];
    said(&forebay(&empty_trash).output().unwrap(), 0);
    assert!(!bed.point.join(".forebay-trash").exists());
    assert_eq!(fs::read(kept.join("0")).unwrap(), before);
    said(&forebay(&["rm", "-r", text(&kept)]).output().unwrap(), 0);
    system("sync", &[]);
    while bed.held() > empty + (4 << 20) {
        thread::sleep(Duration::from_millis(20));
    }
}
