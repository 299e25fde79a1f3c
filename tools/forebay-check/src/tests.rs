//! The probes on machines that are directories: what `/sys` and `/proc` of each showed, and what
//! system calls said.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_block::Machine;

use crate::environment::Environment;
use crate::finding::{Finding, Level};
use crate::report::{DirectoryReport, Report};
use crate::subject::Subject;

/// The folder of all machines.
fn machines() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    dir.canonicalize().unwrap()
}

/// Checks the machine of this name after a change to what system calls say.
fn report_of(name: &str, change: impl FnOnce(&mut Environment)) -> (Report, Vec<Finding>) {
    let root = machines().join(name);
    let mut environment: Environment =
        serde_json::from_str(&fs::read_to_string(root.join("calls.json")).unwrap()).unwrap();
    change(&mut environment);
    let machine = Machine::new(root);
    let subject = Subject::new(&machine, &environment);
    let findings = super::probes::all(&subject);
    (Report::new(vec![DirectoryReport::of(&subject)]), findings)
}

/// Compares with what is recorded alongside the machine; `FOREBAY_BLESS=1` records it.
fn recorded(name: &str) -> Level {
    let (report, _) = report_of(name, |_| {});
    let text = report.text(true);
    let path = machines().join(name).join("expected.txt");
    if std::env::var_os("FOREBAY_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
    report.level
}

/// What one probe says of a machine.
fn of(name: &str, probe: &str, change: impl FnOnce(&mut Environment)) -> Vec<Finding> {
    let (_, findings) = report_of(name, change);
    findings.into_iter().filter(|finding| finding.probe == probe).collect()
}

#[test]
fn a_plain_nvme_disk_is_fine() {
    assert!(recorded("nvme") <= Level::Note);
}

#[test]
fn an_nvme_disk_that_misreports_its_sectors_under_blocks_of_1_kib() {
    assert_eq!(recorded("nvme-misreporting"), Level::Warning);
    let said = &of("nvme-misreporting", "block-size", |_| {})[0];
    assert!(said.what.contains("1024") && said.fix.as_ref().unwrap().contains("mkfs.xfs"));
    let said = &of("nvme-misreporting", "sectors", |_| {})[0];
    assert_eq!(said.level, Level::Note);
}

#[test]
fn a_raid0_of_four_under_xfs_with_blocks_of_1_kib() {
    assert_eq!(recorded("md-raid0"), Level::Warning);
    let said = &of("md-raid0", "stripe", |_| {})[0];
    assert_eq!(said.level, Level::Fine);
    assert!(said.what.contains("1024 KiB over 4 disks"), "{}", said.what);
}

#[test]
fn logical_volumes_over_two_disks() {
    assert_eq!(recorded("lvm"), Level::Warning);
    let said = &of("lvm", "stripe", |_| {})[0];
    assert!(said.fix.as_ref().unwrap().contains("stride=16,stripe_width=32"));
    // the command counts in blocks of the filesystem
    let smaller = |environment: &mut Environment| environment.space.as_mut().unwrap().block = 1024;
    let said = &of("lvm", "stripe", smaller)[0];
    assert!(said.fix.as_ref().unwrap().contains("stride=64,stripe_width=128"));
}

#[test]
fn a_cloud_volume_in_a_container() {
    assert_eq!(recorded("cloud"), Level::Warning);
    let said = of("cloud", "limits", |_| {});
    // of its own group and of the one around it, and not of the other disk
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn a_hard_disk() {
    assert!(recorded("hdd") <= Level::Note);
}

#[test]
fn a_loop_device_with_blocks_of_1_kib() {
    assert_eq!(recorded("loop"), Level::Warning);
    assert_eq!(of("loop", "block-size", |_| {})[0].level, Level::Warning);
}

#[test]
fn directories_without_a_disk() {
    for (dir, level, words) in [
        ("/dev/shm", Level::Error, "memory"),
        ("/net/home", Level::Error, "another machine (nas:/export/home)"),
        ("/mnt/remote", Level::Error, "another machine (me@host:)"),
        ("/mnt/mirror", Level::Warning, "a program answers"),
        ("/merged", Level::Warning, "an overlay"),
    ] {
        let change = |environment: &mut Environment| {
            environment.dir = dir.into();
            (environment.device.major, environment.device.minor) = (0, 99);
        };
        let said = &of("hdd", "filesystem", change)[0];
        assert_eq!(said.level, level, "{dir}");
        assert!(said.what.contains(words), "{}", said.what);
        assert!(said.fix.is_some());
    }
}

#[test]
fn the_directory_beneath_a_program_is_named() {
    let change = |environment: &mut Environment| environment.dir = "/mnt/mirror/data".into();
    let said = &of("hdd", "filesystem", change)[0];
    assert!(said.why.as_ref().unwrap().contains("may end in its cache"));
    assert!(said.fix.as_ref().unwrap().starts_with("forebay check '/srv/a b'"), "{said:?}");
    let direct = &of("hdd", "direct-io", change)[0];
    assert_eq!(direct.level, Level::Unknown, "{direct:?}");
}

#[test]
fn invisible_settings_are_reported_as_unknown() {
    let change = |environment: &mut Environment| {
        environment.io = Err("this user may not write there".into());
        environment.space = Err("no answer".into());
    };
    let (report, findings) = report_of("nvme", change);
    assert!(report.level <= Level::Note);
    let unknown: Vec<_> =
        findings.iter().filter(|finding| finding.level == Level::Unknown).collect();
    let probes: Vec<_> = unknown.iter().map(|finding| finding.probe).collect();
    assert_eq!(probes, ["free-space", "direct-io", "nowait"]);
    assert!(unknown[1].what.contains("may not write"));
}

/// A copy of the machine of this name in which directories stand in place of these files, so that
/// not even root can read them.
fn with_hidden(name: &str, files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = machines().join(name).join(".");
    let copied = Command::new("cp").arg("-a").args([from.as_path(), dir.path()]).status().unwrap();
    assert!(copied.success());
    for file in files {
        let file = dir.path().join(file).canonicalize().unwrap();
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
    dir
}

#[test]
fn every_file_that_cannot_be_read_is_named_once() {
    let files = [
        "proc/self/cgroup",
        "proc/sys/fs/aio-max-nr",
        "proc/sys/fs/xfs/xfssyncd_centisecs",
        "sys/dev/block/259:0/queue/discard_max_bytes",
        "sys/dev/block/259:0/queue/nr_requests",
        "sys/dev/block/259:0/queue/rotational",
        "sys/dev/block/259:0/queue/scheduler",
    ];
    let root = with_hidden("nvme", &files);
    let machine = Machine::new(root.path().canonicalize().unwrap());
    let text = fs::read_to_string(root.path().join("calls.json")).unwrap();
    let environment: Environment = serde_json::from_str(&text).unwrap();
    let report = Report::new(vec![DirectoryReport::of(&Subject::new(&machine, &environment))]);
    assert!(report.level <= Level::Note, "{}", report.text(true));
    let json: serde_json::Value = serde_json::to_value(&report).unwrap();
    let findings = json["directories"][0]["findings"].as_array().unwrap();
    let unknown = findings.iter().filter(|finding| finding["level"] == "unknown");
    let mut fine = findings.iter().filter(|finding| finding["level"] == "fine");
    assert!(fine.all(|finding| finding["probe"] != "discard"), "{findings:#?}");
    let said: Vec<&str> = unknown.map(|finding| finding["what"].as_str().unwrap()).collect();
    assert_eq!(said.len(), files.len(), "{said:#?}");
    for file in files {
        let name = file.rsplit('/').next().unwrap();
        let named = said.iter().filter(|what| what.contains(name)).count();
        assert_eq!(named, 1, "{name}: {said:#?}");
    }
}

#[test]
fn a_directory_behind_a_locked_one_is_checked_as_far_as_the_user_sees() {
    let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                  2 1 8:2 / /srv/locked/mount rw - xfs /dev/sda2 rw\n";
    let seen = |path: &Path| match path.strip_prefix("/srv/locked") {
        Ok(inside) if inside != Path::new("") => Err(Error::from(ErrorKind::PermissionDenied)),
        _ => Ok(path.to_owned()),
    };
    let reach = |dir: &str| crate::directory::reach(mounts, Path::new(dir), seen);
    let (above, said) = reach("/srv/locked/a/b").unwrap();
    assert_eq!(above, Path::new("/srv/locked"));
    let said = said.unwrap();
    assert!(said.level == Level::Warning && said.what.contains("`/srv/locked/a/b`"), "{said:?}");
    assert_eq!(said.fix.unwrap(), "sudo forebay check /srv/locked/a/b");
    // what holds it is not what holds the locked one
    assert_eq!(reach("/srv/locked/mount/a").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(reach("/srv/open").unwrap(), (PathBuf::from("/srv/open"), None));
}

#[test]
fn a_machine_that_shows_nothing_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::new(dir.path().canonicalize().unwrap());
    let environment: Environment =
        serde_json::from_str(&fs::read_to_string(machines().join("nvme/calls.json")).unwrap())
            .unwrap();
    let report = Report::new(vec![DirectoryReport::of(&Subject::new(&machine, &environment))]);
    assert_eq!(report.level, Level::Unknown, "{}", report.text(true));
}

#[test]
fn space_direct_io_and_io_uring_are_judged() {
    let full = |environment: &mut Environment| {
        let space = environment.space.as_mut().unwrap();
        space.blocks_free = space.blocks / 20;
    };
    assert_eq!(of("nvme", "free-space", full)[0].level, Level::Warning);
    let none = |environment: &mut Environment| environment.space.as_mut().unwrap().blocks_free = 0;
    assert_eq!(of("nvme", "free-space", none)[0].level, Level::Error);
    let refused = |environment: &mut Environment| {
        environment.io.as_mut().unwrap().direct = super::environment::Direct::Refused;
    };
    assert_eq!(of("nvme", "direct-io", refused)[0].level, Level::Error);
    let forbidden =
        |environment: &mut Environment| environment.io_uring_refused = Some("forbidden".into());
    assert_eq!(of("nvme", "io-uring", forbidden)[0].level, Level::Warning);
}

#[test]
fn findings_are_json_for_programs() {
    let (report, findings) = report_of("md-raid0", |_| {});
    let json: serde_json::Value = serde_json::to_value(&report).unwrap();
    assert_eq!(json["level"], "warning");
    let checked = &json["directories"][0];
    assert_eq!(checked["device"], "md0");
    assert_eq!(checked["disks"].as_array().unwrap().len(), 4);
    assert_eq!(checked["findings"].as_array().unwrap().len(), findings.len());
    for finding in checked["findings"].as_array().unwrap() {
        assert!(finding["probe"].is_string() && finding["what"].is_string());
    }
}
