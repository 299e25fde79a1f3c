//! What was counted of permits, files and shards, added up.

use forebay::engine::{BackendChoice, EngineConfig};
use forebay::metrics::{ClassSnapshot, DiskSnapshot, Engines};
use forebay::{AlignedBuf, DiskConfig, DiskRates, FileOptions, Op, Scheduler};

const RATES: DiskRates = DiskRates {
    read_iops: 100_000,
    write_iops: 50_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 500_000_000,
};

fn scheduler(dir: &tempfile::TempDir) -> Scheduler {
    let disk = DiskConfig::new("data", RATES).mountpoint(dir.path());
    Scheduler::builder().disk(disk).build().unwrap()
}

fn disk(scheduler: &Scheduler) -> DiskSnapshot {
    let snapshot = scheduler.snapshot();
    snapshot.disks.into_iter().find(|disk| disk.name == "data").unwrap()
}

fn class(scheduler: &Scheduler, name: &str) -> ClassSnapshot {
    disk(scheduler).classes.into_iter().find(|class| class.name == name).unwrap()
}

#[test]
fn permits_are_counted_with_their_latencies() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&dir);
    let queries = scheduler.add_class("queries", 200).unwrap();
    for _ in 0..10 {
        drop(queries.admit(Op::Read, 4096).unwrap());
    }
    queries.admit(Op::Write, 8192).unwrap().fail();
    let class = class(&scheduler, "queries");
    assert_eq!(class.shares, 200);
    assert_eq!(class.counters.operations, [10, 0, 0, 0]);
    assert_eq!(class.counters.bytes[Op::Read.index()], 40_960);
    assert_eq!(class.counters.errors, 1);
    for latencies in [&class.in_queue, &class.in_disk, &class.total] {
        assert_eq!(latencies.count(), 11);
    }
    assert!(class.total.sum_nanos() >= class.in_disk.sum_nanos());
    let disk = disk(&scheduler);
    assert_eq!(disk.rates, Some(RATES));
    assert_eq!((disk.totals.dispatched, disk.totals.completed), (11, 11));
    assert_eq!(disk.effective_goal_nanos, Some(262_144));
    assert_eq!(disk.in_flight_nanos, 0);
}

#[test]
fn files_and_permits_add_up_in_one_class() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&dir);
    let bulk = scheduler.add_class("bulk", 100).unwrap();
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = scheduler.open(dir.path().join("data"), &options).unwrap();
    let mut buffer = AlignedBuf::new(4096, 4096).unwrap();
    for block in 0..5 {
        let (written, returned) =
            file.write_at(&bulk, buffer, block * 4096).wait().into_result().unwrap();
        assert_eq!(written, 4096);
        buffer = returned;
    }
    drop(bulk.admit(Op::Write, 4096).unwrap());
    // the last handle of the disk ends the I/O thread, which then tells all
    drop(file);
    let is_counted = |class: &ClassSnapshot| class.counters.operations[Op::Write.index()] == 6;
    let counted = (0..10_000).map(|_| {
        std::thread::yield_now();
        class(&scheduler, "bulk")
    });
    let class = counted.into_iter().find(is_counted).unwrap();
    assert_eq!(class.total.count(), 6);
}

#[test]
fn figures_outlive_the_queues_that_counted_them() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&dir);
    let bulk = scheduler.add_class("bulk", 100).unwrap();
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = options.open(dir.path().join("data")).unwrap();
    for round in 1..=3 {
        let disk_of_shard = scheduler.disk("data").unwrap();
        let mut shard = disk_of_shard.shard(&EngineConfig::default()).unwrap();
        let buffer = AlignedBuf::new(4096, 4096).unwrap();
        let write = forebay::engine::Operation::write(file.clone(), 0, buffer);
        shard.submit(&bulk, write).map_err(|(error, _)| error).unwrap();
        while shard.pop().is_none() {
            shard.run_once(None).unwrap();
        }
        drop(shard);
        let class = class(&scheduler, "bulk");
        assert_eq!(class.counters.operations[Op::Write.index()], round);
        assert_eq!((class.counters.queued, class.counters.in_disk), (0, 0));
        assert_eq!(disk(&scheduler).totals.completed, round);
    }
}

#[test]
fn a_class_in_the_place_of_a_removed_one_starts_from_zero() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&dir);
    let first = scheduler.add_class("first", 100).unwrap();
    drop(first.admit(Op::Read, 4096).unwrap());
    scheduler.remove_class(&first).unwrap();
    let second = scheduler.add_class("second", 100).unwrap();
    assert_eq!(class(&scheduler, "second").total.count(), 0);
    drop(second.admit(Op::Read, 512).unwrap());
    let class = class(&scheduler, "second");
    assert_eq!((class.total.count(), class.counters.bytes[Op::Read.index()]), (1, 512));
    assert!(disk(&scheduler).classes.iter().all(|class| class.name != "first"));
}

#[test]
fn backends_are_counted_while_they_run() {
    let dir = tempfile::tempdir().unwrap();
    for duplex in [false, true] {
        let engine = |backend| EngineConfig { backend, ..EngineConfig::default() };
        let disk_config = DiskConfig::new("data", RATES).mountpoint(dir.path()).duplex(duplex);
        let builder = Scheduler::builder().disk(disk_config).engine(engine(BackendChoice::Threads));
        let scheduler = builder.build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        drop(class.admit(Op::Read, 4096).unwrap());
        assert_eq!(disk(&scheduler).engines, Engines::default(), "permits have none");
        let options = FileOptions::new().write(true).create(true);
        let file = scheduler.open(dir.path().join("file"), &options).unwrap();
        file.sync_all(&class).wait().unwrap();
        let streams = if duplex { 2 } else { 1 };
        let threads = Engines { threads: streams, ..Engines::default() };
        assert_eq!(disk(&scheduler).engines, threads);
        let shard = file.disk().shard(&engine(BackendChoice::Null)).unwrap();
        assert_eq!(disk(&scheduler).engines, Engines { null: streams, ..threads });
        drop(shard);
        assert_eq!(disk(&scheduler).engines, threads);
    }
}
