//! From files, text and values; and what is refused.

use std::fs::File;
use std::path::Path;

use forebay::{DEFAULT_DISK, DiskRates, Op, Scheduler, SchedulerError};

use crate::{RATES, disk, properties, two_disks};

fn refusal(result: Result<Scheduler, SchedulerError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn each_disk_has_a_budget_of_its_own() {
    let scheduler = two_disks().build().unwrap();
    let names: Vec<_> = scheduler.disks().iter().map(|disk| disk.name().to_owned()).collect();
    assert_eq!(names, ["data", "log", DEFAULT_DISK]);
    let class = scheduler.add_class("class", 100).unwrap();
    assert_eq!(class.disk().name(), "data");
    let log = class.on(&scheduler.disk("log").unwrap()).unwrap();
    let permit = log.admit(Op::Write, 4096).unwrap();
    let in_flight = |name| scheduler.disk(name).unwrap().in_flight().as_nanos();
    assert_eq!((in_flight("data"), in_flight("log")), (0, 20_000));
    drop(permit);
    assert_eq!(in_flight("log"), 0);
    assert_eq!(scheduler.disk("absent").map(|disk| disk.name().to_owned()), None);
}

#[test]
fn a_file_and_its_text_make_the_same_scheduler() {
    let dir = tempfile::tempdir().unwrap();
    let text = properties(dir.path().to_str().unwrap(), 100_000_000);
    let path = dir.path().join("io_properties.yaml");
    std::fs::write(&path, &text).unwrap();
    for scheduler in [Scheduler::from_file(&path).unwrap(), text.parse().unwrap()] {
        let found = scheduler.disk_of(&path).unwrap();
        assert_eq!(found.name(), dir.path().to_str().unwrap());
        let found = scheduler.disk_of_file(File::open(&path).unwrap()).unwrap();
        assert_eq!(found.name(), dir.path().to_str().unwrap());
    }
    assert!(refusal(Scheduler::from_file(&dir.path().join("absent"))).contains("absent"));
}

#[test]
fn an_unlisted_device_has_the_default_disk() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = Scheduler::builder().disk(disk("d").mountpoint(dir.path())).build().unwrap();
    let found = scheduler.disk_of(Path::new("/proc/self/status")).unwrap();
    assert_eq!(found.name(), DEFAULT_DISK);
    assert_eq!(found.effective_goal(), None);
    assert_eq!(scheduler.disk_of(dir.path()).unwrap().name(), "d");
    assert!(scheduler.disk_of(Path::new("/absent")).is_err());
    // not a free pass: it is counted, by class
    let class = scheduler.default_class().on(&found).unwrap();
    drop(class.admit(Op::Read, 4096).unwrap());
    assert_eq!(class.permit_counters().operations[0], 1);
}

#[test]
fn without_disks_there_is_the_default_one() {
    let scheduler = Scheduler::builder().build().unwrap();
    assert_eq!(scheduler.default_class().disk().name(), DEFAULT_DISK);
    drop(scheduler.admit(Op::Read, 4096).unwrap());
}

#[test]
fn a_mountpoint_that_is_not_there_is_named() {
    let built = Scheduler::builder().disk(disk("data").mountpoint("/not/there")).build();
    let message = refusal(built);
    assert!(message.contains("`/not/there` of the disk `data`"), "{message}");
    let parsed = properties("/not/there", 1_000).parse::<Scheduler>();
    assert!(matches!(parsed, Err(SchedulerError::Mountpoint { .. })));
}

#[test]
fn a_device_belongs_to_one_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&other).unwrap();
    let twice = Scheduler::builder()
        .disk(disk("a").mountpoint(&one))
        .disk(disk("b").mountpoint(&other))
        .build();
    let message = refusal(twice);
    assert!(message.contains("the disks `a` and `b` are on the same device ("), "{message}");
    let once = Scheduler::builder().disk(disk("a").mountpoint(&one).mountpoint(&other)).build();
    assert_eq!(once.unwrap().disk_of(&other).unwrap().name(), "a");
}

#[test]
fn names_figures_and_numbers_are_checked() {
    let twice = Scheduler::builder().disk(disk("a")).disk(disk("a")).build();
    assert!(refusal(twice).contains("two disks named `a`"));
    let reserved = Scheduler::builder().disk(disk(DEFAULT_DISK)).build();
    assert!(refusal(reserved).contains("two disks named `default`"));
    let rates = DiskRates { read_iops: 0, ..RATES };
    let message = refusal(Scheduler::builder().disk(forebay::DiskConfig::new("z", rates)).build());
    assert!(message.contains("the rates of the disk `z`"), "{message}");
    let many = |count: usize| {
        (0..count).fold(Scheduler::builder(), |builder, n| builder.disk(disk(&n.to_string())))
    };
    assert!(many(64).build().is_ok());
    assert!(matches!(many(65).build(), Err(SchedulerError::DisksMax { count: 65 })));
    assert!(refusal(two_disks().io_groups(0).build()).contains("give 1 to 16"));
    assert!(refusal(two_disks().io_groups(17).build()).contains("give 1 to 16"));
    assert!(refusal(two_disks().shards_max(257).build()).contains("give 1 to 256"));
}

#[test]
fn io_groups_divide_the_capacity() {
    let goal = |builder: forebay::SchedulerBuilder| {
        let scheduler = builder.build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        drop(class.admit(Op::Read, 4096).unwrap());
        assert_eq!(class.permit_counters().operations[0], 1);
        let permit = class.admit(Op::Read, 4096).unwrap();
        let in_flight = class.disk().in_flight();
        drop(permit);
        in_flight.as_nanos()
    };
    let one = || Scheduler::builder().disk(disk("data"));
    assert_eq!(goal(one()), 10_000);
    // not among more groups than there are NUMA nodes to use them
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let has_cpus = |node: &std::fs::DirEntry| {
        let list = std::fs::read_to_string(node.path().join("cpulist"));
        list.is_ok_and(|list| !list.trim().is_empty())
    };
    let groups = nodes.filter(has_cpus).count().clamp(1, 4);
    assert_eq!(goal(one().io_groups(4)), 10_000 * groups as u128);
}

/// What a `main` that returns it prints of an error.
#[test]
fn an_error_from_main_reads_as_a_sentence() {
    let shown = |error: Box<dyn std::error::Error>| format!("Error: {error:?}");
    let missing = Scheduler::from_file(Path::new("/nowhere/forebay.yaml")).unwrap_err();
    assert_eq!(
        shown(missing.into()),
        "Error: /nowhere/forebay.yaml: cannot be read: No such file or directory (os error 2); \
         check the path"
    );
    let scheduler = Scheduler::builder().disk(disk("data")).build().unwrap();
    let class = scheduler.add_class("queries", 100).unwrap();
    let taken = scheduler.add_class("queries", 100).unwrap_err();
    assert_eq!(
        shown(taken.into()),
        "Error: there is a class or group named `queries` already; choose another name"
    );
    let nothing = class.admit(Op::Read, 0).unwrap_err();
    let said = nothing.to_string();
    assert_eq!(shown(nothing.into()), format!("Error: {said}"));
}
