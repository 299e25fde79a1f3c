//! Reports of requests that took long in the disk.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use forebay::engine::{EngineConfig, Operation};
use forebay::{
    AlignedBuf, DirectFile, DiskConfig, DiskRates, Event, FileOptions, Op, Policy, Scheduler,
    SchedulerBuilder, SlowRequest,
};

const RATES: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

/// No event takes so long to be told.
const LONG: Duration = Duration::from_secs(60);
/// Every request is slow.
const AT_ONCE: Option<Duration> = Some(Duration::from_nanos(1));

fn builder() -> SchedulerBuilder {
    Scheduler::builder().disk(DiskConfig::new("disk", RATES).policy(Policy::Unlimited))
}

fn listened(builder: SchedulerBuilder) -> (Scheduler, Receiver<SlowRequest>) {
    let (tell, told) = channel();
    let hook = move |event: &Event| {
        if let Event::Slow(request) = event {
            drop(tell.send(request.clone()));
        }
    };
    (builder.on_event(hook).build().unwrap(), told)
}

#[test]
fn a_permit_that_was_held_long_is_reported_with_concurrent_requests() {
    let from = Duration::from_millis(10);
    let (scheduler, told) = listened(builder().slow_requests(Some(from)));
    let queries = scheduler.add_class("queries", 100).unwrap();
    let compaction = scheduler.add_class("compaction", 100).unwrap();
    let concurrent: Vec<_> =
        (0..3).map(|_| compaction.admit(Op::Write, 1 << 17).unwrap().detach()).collect();
    let permit = queries.admit(Op::Read, 8192).unwrap();
    thread::sleep(2 * from);
    drop(permit);
    let slow = told.recv_timeout(LONG).unwrap();
    assert_eq!((slow.disk.as_str(), slow.class.as_str()), ("disk", "queries"));
    assert_eq!((slow.op, slow.len, slow.unreported), (Op::Read, 8192, 0));
    assert!(slow.in_disk >= 2 * from, "{slow}");
    assert_eq!(slow.concurrent, [("compaction".to_owned(), 3)]);
    assert!(slow.inflight_disk_time > Duration::ZERO);
    assert_eq!(slow.next_from, 2 * from);
    drop(concurrent);
}

#[test]
fn requests_of_a_batch_count_each_for_itself() {
    let (scheduler, told) = listened(builder().slow_requests(AT_ONCE));
    let class = scheduler.add_class("batches", 100).unwrap();
    let requests = [(Op::Write, 4096), (Op::Write, 4096)];
    drop(class.admit_many(&requests).wait().unwrap());
    let slow = told.recv_timeout(LONG).unwrap();
    assert_eq!((slow.class.as_str(), slow.len), ("batches", 4096));
}

#[test]
fn a_request_of_a_shard_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (scheduler, told) = listened(builder().slow_requests(AT_ONCE));
    let class = scheduler.add_class("shards", 100).unwrap();
    let mut shard = scheduler.disk("disk").unwrap().shard(&EngineConfig::default()).unwrap();
    let file = DirectFile::options().read(true).write(true).create_new(true);
    let file = file.open(dir.path().join("data")).unwrap();
    let buffer = AlignedBuf::new(4096, 4096).unwrap();
    shard.submit(&class, Operation::write(file, 0, buffer)).map_err(|(error, _)| error).unwrap();
    while shard.pop().is_none() {
        shard.run_once(Some(LONG)).unwrap();
    }
    let slow = told.recv_timeout(LONG).unwrap();
    assert_eq!((slow.class.as_str(), slow.op, slow.len), ("shards", Op::Write, 4096));
    assert!(slow.in_disk > Duration::ZERO);
}

#[test]
fn a_request_of_a_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let disk = DiskConfig::new("disk", RATES).mountpoint(dir.path());
    let builder = Scheduler::builder().disk(disk).slow_requests(AT_ONCE);
    let (scheduler, told) = listened(builder);
    let class = scheduler.add_class("files", 100).unwrap();
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = scheduler.open(dir.path().join("data"), &options).unwrap();
    let buffer = AlignedBuf::new(8192, 4096).unwrap();
    file.write_at(&class, buffer, 0).wait().into_result().unwrap();
    let slow = told.recv_timeout(LONG).unwrap();
    assert_eq!((slow.class.as_str(), slow.op, slow.len), ("files", Op::Write, 8192));
}

#[test]
fn without_an_event_hook_no_events_are_reported() {
    let (scheduler, told) = listened(builder().slow_requests(None));
    drop(scheduler.default_class().admit(Op::Read, 4096).unwrap());
    drop(scheduler);
    assert!(told.try_recv().is_err());
}
