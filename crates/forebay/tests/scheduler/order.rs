//! The order in which classes are served.

use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::shard::Shard;
use forebay::{AlignedBuf, Class, DirectFile, Op, Scheduler, ServiceOrder};

use crate::disk;

const AN_HOUR_NANOS: u64 = 3_600_000_000_000;

fn submit(shard: &mut Shard, class: &Class) -> usize {
    let null = DirectFile::options().read(true).open("/dev/null").unwrap();
    let buffer = AlignedBuf::new(4096, 4096).unwrap();
    shard.submit(class, Operation::read(null, 0, buffer)).unwrap().index()
}

/// Of the next ten requests served, how many are of the class that has used
/// the disk all the time before.
fn of_the_busy_class(order: ServiceOrder) -> usize {
    let scheduler = Scheduler::builder().disk(disk("disk").order(order)).build().unwrap();
    let busy = scheduler.add_class("busy", 100).unwrap();
    let idle = scheduler.add_class("idle", 100).unwrap();
    let config = EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() };
    let mut shard = scheduler.disk("disk").unwrap().shard(&config).unwrap();
    for _ in 0..100 {
        submit(&mut shard, &busy);
        while shard.pop().is_none() {
            shard.run_once(None).unwrap();
        }
    }
    // Nothing goes until both wait.
    let other = scheduler.add_class("other", 100).unwrap();
    let large = other.admit(Op::Read, 16 << 20).unwrap().detach();
    let of_busy: Vec<usize> = (0..10).map(|_| submit(&mut shard, &busy)).collect();
    for _ in 0..10 {
        submit(&mut shard, &idle);
    }
    drop(large);
    let mut served = Vec::new();
    while served.len() < 10 {
        shard.run_once(Some(Duration::from_secs(60))).unwrap();
        served.extend(std::iter::from_fn(|| shard.pop()).map(|finished| finished.id.index()));
    }
    served.iter().take(10).filter(|index| of_busy.contains(index)).count()
}

#[test]
fn idleness_earns_no_credit_unless_the_order_remembers() {
    let by_start_time = of_the_busy_class(ServiceOrder::StartTime);
    assert!((4..=6).contains(&by_start_time), "{by_start_time}");
    let remembering = ServiceOrder::ExponentialDecay { tau_nanos: AN_HOUR_NANOS };
    assert_eq!(of_the_busy_class(remembering), 0);
}
