//! Disks whose directions do not disturb each other.

use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::properties::Properties;
use forebay::{AlignedBuf, BufResult, DirectFile, FileOptions, Op, Scheduler, SchedulerError};

use crate::{disk, properties};

/// More than the window.
const LARGE: u64 = 16 << 20;

fn scheduler(duplex: bool) -> Scheduler {
    let engine = EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() };
    let builder = Scheduler::builder().disk(disk("disk").duplex(duplex));
    builder.engine(engine).build().unwrap()
}

fn null() -> DirectFile {
    DirectFile::options().read(true).write(true).open("/dev/null").unwrap()
}

fn buffer() -> AlignedBuf {
    AlignedBuf::new(4096, 4096).unwrap()
}

#[test]
fn a_window_full_of_reads_lets_write_permits_through_where_the_disk_is_duplex() {
    for duplex in [false, true] {
        let scheduler = scheduler(duplex);
        let class = scheduler.add_class("class", 100).unwrap();
        let reading = class.admit(Op::Read, LARGE).unwrap().detach();
        for op in [Op::Write, Op::Discard, Op::Flush] {
            assert_eq!(class.try_admit(op, 4096).unwrap().is_some(), duplex, "{op:?}");
        }
        assert!(class.try_admit(Op::Read, 4096).unwrap().is_none());
        assert!(class.disk().in_flight() > Duration::ZERO);
        drop(reading);
        assert_eq!(class.disk().in_flight(), Duration::ZERO);
        let granted = 1 + if duplex { 3 } else { 0 };
        assert_eq!(class.permit_counters().operations.iter().sum::<u64>(), granted);
        assert_eq!(class.disk().permit_counters().completed, granted);
    }
}

#[test]
fn a_window_full_of_reads_lets_the_writes_of_a_shard_through_where_the_disk_is_duplex() {
    for duplex in [false, true] {
        let scheduler = scheduler(duplex);
        let class = scheduler.add_class("class", 100).unwrap();
        let config = EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() };
        let mut shard = scheduler.disk("disk").unwrap().shard(&config).unwrap();
        let reading = class.admit(Op::Read, LARGE).unwrap().detach();
        shard.submit(&class, Operation::read(null(), 0, buffer())).unwrap();
        let write = shard.submit(&class, Operation::write(null(), 0, buffer())).unwrap();
        shard.run_once(Some(Duration::ZERO)).unwrap();
        assert_eq!(shard.pop().map(|finished| finished.id), duplex.then_some(write));
        drop(reading);
        while !shard.is_empty() {
            shard.run_once(Some(Duration::from_secs(60))).unwrap();
            while let Some(finished) = shard.pop() {
                assert_eq!(finished.result.unwrap(), 4096);
            }
        }
        let dispatched = |op| shard.queue_of(op).counters().dispatched;
        let expected = if duplex { [1, 1] } else { [2, 2] };
        assert_eq!([Op::Read, Op::Write].map(dispatched), expected);
        shard.run_once(Some(Duration::ZERO)).unwrap();
        drop(shard);
        let disk = &scheduler.snapshot().disks[0];
        assert_eq!(disk.totals.dispatched, 3, "the large read, and one each");
        assert_eq!(disk.totals.in_disk, 0);
    }
}

#[test]
fn a_window_full_of_reads_lets_the_writes_of_a_file_through_where_the_disk_is_duplex() {
    let scheduler = scheduler(true);
    let class = scheduler.add_class("class", 100).unwrap();
    let options = FileOptions::new().read(true).write(true);
    let file = scheduler.disk("disk").unwrap().open("/dev/null", &options).unwrap();
    let reading = class.admit(Op::Read, LARGE).unwrap().detach();
    let read = file.read_at(&class, buffer(), 0);
    let BufResult(written, _) = file.write_at(&class, buffer(), 0).wait();
    assert_eq!(written.unwrap(), 4096);
    drop(reading);
    assert_eq!(read.wait().0.unwrap(), 4096);
}

#[test]
fn properties_say_whether_a_disk_is_duplex_and_a_reload_cannot_change_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = properties(dir.path().to_str().unwrap(), 100_000_000);
    let duplex = format!("{text}    duplex: true\n");
    let scheduler: Scheduler = duplex.parse().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let _reading = class.admit(Op::Read, LARGE).unwrap().detach();
    assert!(class.try_admit(Op::Write, 4096).unwrap().is_some());
    scheduler.reload(&Properties::parse("again", &duplex).unwrap()).unwrap();
    let error = scheduler.reload(&Properties::parse("changed", &text).unwrap()).unwrap_err();
    assert!(matches!(error, SchedulerError::Duplex { duplex: false, .. }));
    assert!(error.to_string().contains("made with `duplex: true`"), "{error}");
}

#[test]
fn classes_are_removed_from_both_directions() {
    let scheduler = scheduler(true);
    let class = scheduler.add_class("class", 100).unwrap();
    class.set_shares(200).unwrap();
    let config = EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() };
    let mut shard = scheduler.disk("disk").unwrap().shard(&config).unwrap();
    shard.submit(&class, Operation::write(null(), 0, buffer())).unwrap();
    assert!(scheduler.remove_class(&class).is_err(), "a write waits");
    shard.run_once(Some(Duration::ZERO)).unwrap();
    assert!(shard.pop().is_some());
    scheduler.remove_class(&class).unwrap();
    assert!(class.admit(Op::Read, 4096).is_err() && class.admit(Op::Write, 4096).is_err());
}
