//! The probes on machines that are directories: what `/sys` and `/proc` of each showed, and what
//! system calls said.

use std::fs;
use std::path::{Path, PathBuf};

use super::calls::Calls;
use super::finding::{Finding, Level};
use super::machine::Machine;
use super::report::{Checked, Report};
use super::subject::Subject;

/// The folder of all machines.
fn machines() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/machines");
    dir.canonicalize().unwrap()
}

/// Checks the machine of this name after a change to what system calls say.
fn report_of(name: &str, change: impl FnOnce(&mut Calls)) -> (Report, Vec<Finding>) {
    let root = machines().join(name);
    let mut calls: Calls =
        serde_json::from_str(&fs::read_to_string(root.join("calls.json")).unwrap()).unwrap();
    change(&mut calls);
    let machine = Machine::new(root);
    let subject = Subject::new(&machine, &calls);
    let findings = super::probes::all(&subject);
    (Report::new(vec![Checked::of(&subject)]), findings)
}

/// Compares with what is recorded beside the machine; `FOREBAY_BLESS=1` records it.
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
fn of(name: &str, probe: &str, change: impl FnOnce(&mut Calls)) -> Vec<Finding> {
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
    assert!(said.what.contains("1024") && said.mend.as_ref().unwrap().contains("mkfs.xfs"));
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
    assert!(said.mend.as_ref().unwrap().contains("stride=16,stripe_width=32"));
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
        let change = |calls: &mut Calls| {
            calls.dir = dir.into();
            (calls.device.major, calls.device.minor) = (0, 99);
        };
        let said = &of("hdd", "filesystem", change)[0];
        assert_eq!(said.level, level, "{dir}");
        assert!(said.what.contains(words), "{}", said.what);
        assert!(said.mend.is_some());
    }
}

#[test]
fn the_directory_beneath_a_program_is_named() {
    let change = |calls: &mut Calls| calls.dir = "/mnt/mirror/data".into();
    let said = &of("hdd", "filesystem", change)[0];
    assert!(said.why.as_ref().unwrap().contains("may end in its cache"));
    assert!(said.mend.as_ref().unwrap().starts_with("forebay check '/srv/a b'"), "{said:?}");
    let direct = &of("hdd", "direct-io", change)[0];
    assert_eq!(direct.level, Level::Unseen, "{direct:?}");
}

#[test]
fn what_cannot_be_seen_is_said_and_no_fault() {
    let change = |calls: &mut Calls| {
        calls.io = Err("this user may not write there".into());
        calls.space = Err("no answer".into());
    };
    let (report, findings) = report_of("nvme", change);
    assert!(report.level <= Level::Note);
    let unseen: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Unseen).collect();
    let probes: Vec<_> = unseen.iter().map(|finding| finding.probe).collect();
    assert_eq!(probes, ["free-space", "direct-io", "nowait"]);
    assert!(unseen[1].what.contains("may not write"));
}

#[test]
fn a_machine_that_shows_nothing_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let machine = Machine::new(dir.path().canonicalize().unwrap());
    let calls: Calls =
        serde_json::from_str(&fs::read_to_string(machines().join("nvme/calls.json")).unwrap())
            .unwrap();
    let report = Report::new(vec![Checked::of(&Subject::new(&machine, &calls))]);
    assert_eq!(report.level, Level::Unseen, "{}", report.text(true));
}

#[test]
fn space_direct_io_and_io_uring_are_judged() {
    let full = |calls: &mut Calls| {
        let space = calls.space.as_mut().unwrap();
        space.blocks_free = space.blocks / 20;
    };
    assert_eq!(of("nvme", "free-space", full)[0].level, Level::Warning);
    let none = |calls: &mut Calls| calls.space.as_mut().unwrap().blocks_free = 0;
    assert_eq!(of("nvme", "free-space", none)[0].level, Level::Error);
    let refused = |calls: &mut Calls| {
        calls.io.as_mut().unwrap().direct = super::calls::Direct::Refused;
    };
    assert_eq!(of("nvme", "direct-io", refused)[0].level, Level::Error);
    let forbidden = |calls: &mut Calls| calls.io_uring_refused = Some("forbidden".into());
    assert_eq!(of("nvme", "io-uring", forbidden)[0].level, Level::Warning);
}

#[test]
fn findings_are_json_for_programs() {
    let (report, findings) = report_of("md-raid0", |_| {});
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["level"], "warning");
    let checked = &json["directories"][0];
    assert_eq!(checked["device"], "md0");
    assert_eq!(checked["disks"].as_array().unwrap().len(), 4);
    assert_eq!(checked["findings"].as_array().unwrap().len(), findings.len());
    for finding in checked["findings"].as_array().unwrap() {
        assert!(finding["probe"].is_string() && finding["what"].is_string());
    }
}
