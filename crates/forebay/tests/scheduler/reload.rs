//! Other figures, while everything goes on.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use forebay::properties::Properties;
use forebay::{Op, Scheduler};

use crate::{disk, properties};

/// The file's text, parsed.
fn parsed(mountpoint: &str, read_bandwidth: u64) -> Properties {
    Properties::parse("test", &properties(mountpoint, read_bandwidth)).unwrap()
}

#[test]
fn new_figures_hold_for_what_comes_and_classes_stay() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let scheduler = Scheduler::builder().properties(&parsed(at, 100_000_000)).build().unwrap();
    let class = scheduler.add_class("class", 300).unwrap();
    let disk = scheduler.disk(at).unwrap();
    let cost = |len| {
        let permit = class.admit(Op::Read, len).unwrap();
        let in_flight = disk.in_flight();
        drop(permit);
        in_flight
    };
    assert_eq!(cost(1_000_000), Duration::from_millis(10));
    let held = class.admit(Op::Read, 1_000_000).unwrap().detach();
    scheduler.reload(&parsed(at, 200_000_000)).unwrap();
    assert_eq!(disk.in_flight(), Duration::from_millis(10), "what was granted keeps its cost");
    drop(held);
    assert_eq!(cost(1_000_000), Duration::from_millis(5));
    assert_eq!(scheduler.class("class").unwrap().shares(), 300);
    assert_eq!(scheduler.disks().len(), 2);
}

#[test]
fn a_disk_is_known_by_its_device_whatever_its_mountpoint() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let scheduler = Scheduler::builder().disk(disk("data").mountpoint(dir.path())).build().unwrap();
    scheduler.reload(&parsed(below.to_str().unwrap(), 1_000_000)).unwrap();
    assert_eq!(scheduler.disks().len(), 2);
    let goal = scheduler.disk("data").unwrap().effective_goal().unwrap();
    // 128 KiB at 1 MB/s
    assert_eq!(goal, Duration::from_micros(131_072));
}

#[test]
fn a_new_entry_is_a_new_disk_with_all_classes() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let scheduler = Scheduler::builder().disk(disk("elsewhere")).build().unwrap();
    let group = scheduler.add_class_group("group", 10).unwrap();
    let class = group.add_class("class", 300).unwrap();
    assert_eq!(scheduler.disk_of(dir.path()).unwrap().name(), "default");
    scheduler.reload(&parsed(at, 1_000_000)).unwrap();
    let found = scheduler.disk_of(dir.path()).unwrap();
    assert_eq!(found.name(), at);
    drop(class.on(&found).unwrap().admit(Op::Read, 4096).unwrap());
    scheduler.remove_class(&class).unwrap();
    assert!(class.on(&found).unwrap().admit(Op::Read, 4096).is_err());
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let scheduler = Scheduler::builder().disk(disk("data")).build().unwrap();
    assert!(scheduler.reload(&parsed("/not/there", 1_000_000)).is_err());
    let names: Vec<_> = scheduler.disks().iter().map(|disk| disk.name().to_owned()).collect();
    assert_eq!(names, ["data", "default"]);
    // 128 KiB of writes
    let goal = Duration::from_nanos(262_144);
    assert_eq!(scheduler.disk("data").unwrap().effective_goal(), Some(goal));
}

#[test]
fn waiting_requests_use_the_reloaded_figures() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let scheduler = Scheduler::builder().properties(&parsed(at, 1)).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    // a byte per second: this is paid off for weeks
    drop(class.admit(Op::Read, 1_000_000).unwrap());
    let goal = || class.disk().effective_goal().unwrap();
    let before = goal();
    scheduler.reload(&parsed(at, 1_000_000_000)).unwrap();
    assert!(goal() < before);
}

#[test]
fn a_latency_target_follows_a_reload_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let with = |target: &str| {
        let text = properties(at, 100_000_000);
        Properties::parse("test", &format!("{text}    latency_target: {target}\n")).unwrap()
    };
    let scheduler = Scheduler::builder().properties(&parsed(at, 100_000_000)).build().unwrap();
    let class = scheduler.add_class("class", 300).unwrap();
    let disk = scheduler.disk(at).unwrap();
    let status = || disk.load_status().target;
    assert_eq!(status(), None, "nothing is promised unless stated");
    let held = class.admit(Op::Read, 1_000_000).unwrap().detach();
    for (target, latency) in [("p99=3ms", 3), ("writes:p95=7ms", 7)] {
        scheduler.reload(&with(target)).unwrap();
        let status = status().unwrap();
        assert_eq!(status.target.to_string(), target);
        assert_eq!(status.target.latency(), Duration::from_millis(latency));
        assert!(status.holds && status.attainable);
    }
    scheduler.reload(&with("off")).unwrap();
    assert_eq!(status(), None);
    drop(held);
}

#[test]
fn a_latency_target_below_the_base_latency_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let parsed = |text: &str| Properties::parse("test", text);
    let text = format!("{}    base_latency_us: 2000\n", properties(at, 100_000_000));
    let good = parsed(&text).unwrap();
    let scheduler = Scheduler::builder().properties(&good).build().unwrap();
    let error = parsed(&format!("{text}    latency_target: p95=1ms\n")).unwrap_err().to_string();
    assert!(error.contains("base latency of the disk, 2ms"), "{error}");
    assert!(error.contains("forebay explore"), "{error}");
    let mut below = good;
    below.disks[0].latency_target = Some("p95=1ms".parse().unwrap());
    let error = scheduler.reload(&below).unwrap_err().to_string();
    assert!(error.contains("base latency of the disk, 2ms"), "{error}");
    assert_eq!(scheduler.disk(at).unwrap().load_status().target, None);
    // the latency of a write in the idle disk may be shorter than that of a read
    below.disks[0].latency_target = Some("writes:p95=1ms".parse().unwrap());
    scheduler.reload(&below).unwrap();
}

#[test]
fn a_rate_factor_below_one_is_a_ceiling_and_one_above_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let with = |line: &str| {
        let text = properties(at, 1_000_000);
        Properties::parse("test", &format!("{text}    {line}\n")).unwrap()
    };
    let scheduler = Scheduler::builder().properties(&with("rate_factor: 1")).build().unwrap();
    let disk = scheduler.disk(at).unwrap();
    let class = scheduler.add_class("class", 100).unwrap().on(&disk).unwrap();
    // each takes more than a tenth of a second at these rates
    let at_once = || {
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting: Vec<_> =
            (0..6).map(|_| Box::pin(class.admit_async(Op::Read, 131_072))).collect();
        let ready = waiting.iter_mut().map(|task| task.as_mut().poll(&mut context).is_ready());
        ready.filter(|&ready| ready).count()
    };
    assert_eq!(at_once(), 6);
    for (line, least, most) in
        [("rate_factor: 0.5", 0, 3), ("rate_factor: 2", 6, 6), ("ceiling: true", 0, 3)]
    {
        scheduler.reload(&with(line)).unwrap();
        // what went before is not waited for any more
        std::thread::sleep(Duration::from_secs(2));
        let went = at_once();
        assert!((least..=most).contains(&went), "{line}: {went}");
    }
}
