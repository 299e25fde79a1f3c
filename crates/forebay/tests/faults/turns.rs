//! Shards of several threads take turns in the order of 2016.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use forebay::engine::{BackendChoice, Operation};
use forebay::{Class, DiskConfig, Policy, ServiceOrder};

use crate::bench::{BLOCK, Bench, filled};
use crate::disk::{Disk, RATES};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    eight_threads_have_equal_parts_of_the_disk_in_the_order_of_2016,
}

const THREADS: usize = 8;
/// Requests that a thread has waiting or in the disk.
const BACKLOG: u64 = 16;
/// Requests of all threads together.
const ENOUGH: u64 = 8_000;

fn bench(backend: BackendChoice) -> Option<Bench> {
    let disk = DiskConfig::new("served", RATES)
        .policy(Policy::Concurrency { requests: 8 })
        .order(ServiceOrder::ExponentialDecay { tau_nanos: 100_000_000 });
    Bench::with(backend, Disk::default(), disk)
}

/// Keeps a shard busy until all threads have done enough.
fn work(bench: &Bench, class: &Class, done: &[AtomicU64; THREADS], own: usize, over: &AtomicBool) {
    let file = bench.direct_file();
    let mut shard = bench.shard();
    for n in 0..BACKLOG {
        let read = Operation::read(file.clone(), n * BLOCK as u64, filled(0));
        shard.submit(class, read).map_err(|(error, _)| error).unwrap();
    }
    while !over.load(Ordering::Relaxed) {
        shard.run_once(Some(Duration::from_millis(10))).unwrap();
        while let Some(finished) = shard.pop() {
            assert_eq!(finished.result.unwrap(), BLOCK);
            shard.submit(class, finished.operation).map_err(|(error, _)| error).unwrap();
            done[own].fetch_add(1, Ordering::Relaxed);
        }
        let total: u64 = done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
        over.fetch_or(total >= ENOUGH, Ordering::Relaxed);
    }
}

/// One thread had nearly all of it. A thread that the machine does not let run asks for less than
/// its part, so the bound is generous; exactness is shown under virtual time.
fn eight_threads_have_equal_parts_of_the_disk_in_the_order_of_2016(backend: BackendChoice) {
    let Some(bench) = bench(backend) else { return };
    let (done, over) = (<[AtomicU64; THREADS]>::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for own in 0..THREADS {
            let class = bench.scheduler.add_class(&format!("class {own}"), 100).unwrap();
            let (bench, done, over) = (&bench, &done, &over);
            scope.spawn(move || work(bench, &class, done, own, over));
        }
    });
    let done = done.map(AtomicU64::into_inner);
    let (least, most) = (done.iter().min().unwrap(), done.iter().max().unwrap());
    println!("{done:?}");
    assert!(least * 2 >= *most, "{done:?}");
}
