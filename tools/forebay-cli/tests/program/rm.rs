//! `forebay rm` from outside, where no root is needed. What the disk gets of it is looked at in
//! `tests/discards`.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::process::{Ended, run};
use super::system::skipped;

/// Runs it in a directory.
fn rm(dir: &TempDir, arguments: &[&str]) -> Ended {
    run(&mut command(dir, arguments))
}

fn command(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("rm").args(arguments).current_dir(dir.path());
    command
}

fn file(path: impl AsRef<Path>, bytes: usize) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, vec![7; bytes]).unwrap();
}

/// All names below a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.display().to_string());
        if path.is_dir() && !path.is_symlink() {
            names.extend(self::names(&path));
        }
    }
    names.sort();
    names
}

#[test]
fn a_tree_is_deleted_and_what_its_links_lead_to_is_not() {
    let dir = TempDir::new().unwrap();
    let at = |path: &str| dir.path().join(path);
    file(at("kept/file"), 5_000);
    file(at("tree/a/b/large"), 3 << 20);
    for n in 0..50 {
        file(at(&format!("tree/a/{n}")), 100 * n);
    }
    fs::hard_link(at("tree/a/b/large"), at("other-name")).unwrap();
    symlink("../kept", at("tree/link")).unwrap();
    symlink("/", at("tree/a/root")).unwrap();
    symlink("missing", at("tree/a/dangling")).unwrap();
    let ended = rm(&dir, &["-r", "--rate", "1GB", "tree"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("deleted 54 files and 3 directories"), "{}", ended.stdout);
    let left = ["kept", "kept/file", "other-name"].map(|path| at(path).display().to_string());
    assert_eq!(names(dir.path()), left);
    assert_eq!(fs::metadata(at("other-name")).unwrap().len(), 3 << 20);
}

#[test]
fn each_path_that_is_refused_is_named_and_the_rest_goes_on() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join("directory/file"), 10);
    file(dir.path().join("file"), 10);
    symlink("directory", dir.path().join("link")).unwrap();
    let paths = ["/", "/../", ".", "..", "directory/.", "", "none", "directory", "link/", "file"];
    let ended = rm(&dir, &paths);
    ended.complains(
        9,
        &[
            "`/`: it is the root directory",
            "`.`: `.` and `..` are never",
            "`..`: `.` and `..` are never",
            "`directory/.`",
            "the path is empty",
            "`none`: No such file",
            "`directory`: it is a directory; -r",
            "`link/`: it is not a directory",
        ],
    );
    assert!(!dir.path().join("file").exists());
    assert!(dir.path().join("directory/file").exists() && dir.path().join("link").is_symlink());
    let ended = rm(&dir, &["-f", "none", "link"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(dir.path().join("directory/file").exists() && !dir.path().join("link").is_symlink());
}

#[test]
fn a_dry_run_deletes_nothing_and_says_how_each_would_be() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join("tree/file"), 8 << 20);
    File::create(dir.path().join("tree/empty")).unwrap();
    let before = names(dir.path());
    let ended = rm(&dir, &["-rnv", "--rate", "1MB", "tree"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("would delete 2 files and 1 directory"), "{}", ended.stdout);
    assert!(ended.stdout.contains("tree/empty: would be unlinked"), "{}", ended.stdout);
    assert_eq!(names(dir.path()), before);
}

#[test]
fn a_dry_run_says_what_cannot_be_deleted() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join("tree/file"), 100);
    let here = dir.path().to_str().unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["--map-root-user", "--mount", "sh", "-c"]);
    let read_only = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && cd \"$1\"";
    let mut tried = Command::new(inside.get_program());
    tried.args(inside.get_args()).args([read_only, "sh", here]);
    if run(&mut tried).code != Some(0) {
        return skipped("no mount namespace may be made here");
    }
    let forebay = env!("CARGO_BIN_EXE_forebay");
    let script = format!("{read_only} && exec {forebay} rm -rn tree");
    let ended = run(inside.args([&script, "sh", here]));
    ended.complains(1, &["cannot delete `tree/file`: Read-only file system"]);
    assert!(ended.stdout.contains("would delete 0 files"), "{}", ended.stdout);
}

#[test]
fn a_tree_two_thousand_levels_deep_is_deleted() {
    let dir = TempDir::new().unwrap();
    let mut here = openat(rustix::fs::CWD, dir.path(), READ, Mode::empty()).unwrap();
    for _ in 0..2_000 {
        mkdirat(&here, "deep", Mode::RWXU).unwrap();
        here = openat(&here, "deep", READ, Mode::empty()).unwrap();
    }
    let ended = rm(&dir, &["-r", "deep"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("and 2000 directories"), "{}", ended.stdout);
}

const READ: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

#[test]
fn options_that_are_no_use_delete_nothing() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join("file"), 10);
    fs::write(
        dir.path().join("io.yaml"),
        "disks:\n- {mountpoint: /, read_iops: 1k, write_iops: 1k, \
        read_bandwidth: 1M, write_bandwidth: 1M}\n",
    )
    .unwrap();
    for (options, words) in [
        (&["--rate", "0"][..], "--rate"),
        (&["--rate", "-1"], "--rate"),
        (&["--rate", "fast"], "--rate"),
        (&["--commands", "0"], "--commands"),
        (&["--disk-share", "20%"], "--properties"),
        (&["--disk-share", "0%", "--properties", "io.yaml"], "--disk-share"),
        (&["--disk-share", "20%", "--properties", "io.yaml"], "discard_us"),
        (&["--disk-share", "20%", "--properties", "none.yaml"], "none.yaml"),
        (&["--latency-goal", "1ms"], "--properties"),
    ] {
        let ended = rm(&dir, &[options, &["file"]].concat());
        ended.complains(2, &[words]);
        assert!(dir.path().join("file").exists(), "{options:?}");
    }
    rm(&dir, &[]).complains(2, &["PATH"]);
}

#[test]
fn properties_set_the_pace() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join("file"), 8 << 20);
    let properties = "disks:\n- {mountpoint: /, read_iops: 10k, write_iops: 10k, read_bandwidth: \
                      1G, write_bandwidth: 1G, discard_us: 100, discard_gib_us: 1000000}\n";
    fs::write(dir.path().join("io.yaml"), properties).unwrap();
    let share = ["--disk-share", "25%", "--latency-goal", "1ms", "--properties", "io.yaml"];
    let ended = rm(&dir, &[&share[..], &["-n", "file"]].concat());
    // of a directory on another disk than that of / the file says nothing
    if ended.code == Some(0) && !ended.stdout.contains("nothing is discarded") {
        assert!(ended.stdout.contains("256.0 MiB per second"), "{}", ended.stdout);
        assert!(ended.stdout.contains("2500 discards per second"), "{}", ended.stdout);
    }
}

#[test]
fn files_left_in_a_trash_are_freed() {
    let dir = TempDir::new().unwrap();
    file(dir.path().join(".forebay-trash/forebay-0000000000000abc-1"), 3 << 20);
    file(dir.path().join(".forebay-trash/of-somebody-else"), 10);
    let ended = rm(&dir, &["-r", ".forebay-trash"]);
    ended.complains(1, &["--empty-trash"]);
    let ended = rm(&dir, &["--empty-trash", "."]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let left = [".forebay-trash", ".forebay-trash/of-somebody-else"];
    assert_eq!(names(dir.path()), left.map(|path| dir.path().join(path).display().to_string()));
    rm(&dir, &["--empty-trash", "none"]).complains(1, &["cannot free the trash in `none`"]);
}

#[test]
fn a_signal_keeps_what_was_not_touched_and_says_how_to_go_on() {
    let dir = TempDir::new().unwrap();
    for n in 0..40 {
        file(dir.path().join(format!("tree/{n:02}")), 1 << 20);
    }
    let mut command = command(&dir, &["-r", "--rate", "1kB", "tree"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // where nothing is discarded it is over at once
    let trash = dir.path().join(".forebay-trash");
    while child.try_wait().unwrap().is_none() && !trash.exists() {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(0) {
        assert!(said.contains("unlinked at once"), "{said}");
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    for _ in 0..2 {
        let ended = rm(&dir, &["-rf", "--rate", "4GB", "--empty-trash", ".", "tree"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    assert_eq!(names(dir.path()), [""; 0]);
}
