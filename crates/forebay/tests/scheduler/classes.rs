//! Classes and groups at run time.

use forebay::{ClassError, Limits, Op, Policy, Scheduler};

use crate::{disk, two_disks};

#[test]
fn a_class_is_on_every_disk() {
    let scheduler = two_disks().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    for disk in scheduler.disks() {
        drop(class.on(&disk).unwrap().admit(Op::Read, 4096).unwrap());
        assert_eq!(disk.permit_counters().completed, 1);
    }
    let other = two_disks().build().unwrap();
    let foreign = class.on(&other.default_disk()).unwrap_err();
    assert!(matches!(foreign, ClassError::OtherScheduler { .. }));
}

#[test]
fn classes_and_groups_come_and_go() {
    let scheduler = two_disks().build().unwrap();
    let group = scheduler.add_class_group("background", 50).unwrap();
    let class = group.add_class("compaction", 100).unwrap();
    let inner = group.add_class_group("repairs", 10).unwrap();
    drop(class.admit(Op::Write, 4096).unwrap());
    assert_eq!(scheduler.class("compaction"), Some(class.clone()));
    let names: Vec<_> = scheduler.classes().iter().map(|class| class.name().to_owned()).collect();
    assert_eq!(names, ["untagged", "compaction"]);
    let refused = scheduler.remove_class_group(&group).unwrap_err();
    assert!(refused.to_string().contains("`background`"), "{refused}");
    scheduler.remove_class(&class).unwrap();
    scheduler.remove_class_group(&inner).unwrap();
    scheduler.remove_class_group(&group).unwrap();
    assert!(scheduler.class("compaction").is_none());
    assert!(group.add_class("late", 100).is_err());
    assert!(scheduler.class("late").is_none());
    assert!(scheduler.remove_class(&class).is_err(), "removed twice");
    scheduler.add_class("compaction", 100).unwrap();
}

#[test]
fn shares_and_limits_change_on_all_disks() {
    let scheduler = two_disks().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    class.set_shares(700).unwrap();
    let limits = Limits { operations_per_second: Some(10), ..Limits::default() };
    class.set_limits(&limits).unwrap();
    assert_eq!((class.shares(), class.limits()), (700, limits));
    for name in ["data", "log"] {
        let class = class.on(&scheduler.disk(name).unwrap()).unwrap();
        let granted = || class.try_admit(Op::Read, 1).unwrap().is_some();
        let at_once = (0..100).take_while(|_| granted()).count();
        assert!(at_once < 100, "the limit is not in force on `{name}`");
    }
}

#[test]
fn values_out_of_range_are_refused_and_change_nothing() {
    let scheduler = two_disks().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    for shares in [0, 10_001] {
        for refused in [class.set_shares(shares), scheduler.add_class("x", shares).map(drop)] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(&format!("{shares} shares: give 1 to 10000")), "{message}");
        }
    }
    let zero = Limits { bytes_per_second: Some(0), ..Limits::default() };
    assert!(class.set_limits(&zero).is_err());
    assert_eq!((class.shares(), class.limits()), (100, Limits::default()));
    let taken = scheduler.add_class("class", 100).unwrap_err();
    assert_eq!(taken, ClassError::NameTaken { name: String::from("class") });
    assert!(scheduler.class("x").is_none());
    assert_eq!(scheduler.remove_class(&scheduler.default_class()), Err(ClassError::DefaultClass));
}

#[test]
fn a_class_with_work_queued_on_any_disk_stays_on_all() {
    let full = |name| disk(name).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(full("data")).disk(full("log")).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let log = class.on(&scheduler.disk("log").unwrap()).unwrap();
    let held = log.admit(Op::Write, 4096).unwrap().detach();
    let mut waiting = Box::pin(log.admit_async(Op::Write, 4096));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    let refused = scheduler.remove_class(&class).unwrap_err();
    assert!(refused.to_string().contains("still has work queued"), "{refused}");
    class.set_shares(900).unwrap();
    drop(class.admit(Op::Read, 4096).unwrap());
    drop(held);
    assert!(waiting.as_mut().poll(&mut context).is_ready());
    scheduler.remove_class(&class).unwrap();
    assert!(class.admit(Op::Read, 4096).is_err());
}

#[test]
fn a_refused_removal_forgets_nothing_that_was_counted() {
    let full = |name| disk(name).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(full("data")).disk(full("log")).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    drop(class.admit(Op::Read, 4096).unwrap());
    let log = class.on(&scheduler.disk("log").unwrap()).unwrap();
    let held = log.admit(Op::Write, 4096).unwrap().detach();
    let mut waiting = Box::pin(log.admit_async(Op::Write, 4096));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    scheduler.remove_class(&class).unwrap_err();
    assert_eq!(class.permit_counters().operations[Op::Read.index()], 1);
    let on_data = &scheduler.snapshot().disks[0].classes[1];
    assert_eq!((on_data.name.as_str(), on_data.total.count()), ("class", 1));
    drop(held);
}
