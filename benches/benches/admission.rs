//! Permits: `cargo bench --manifest-path benches/Cargo.toml --bench admission`.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use divan::{Bencher, counter::ItemsCount};
use forebay::{Class, DiskConfig, DiskRates, Op, Policy, Scheduler};

/// Permits per thread in one iteration of the shared queue.
const PERMITS: usize = 100_000;

fn main() {
    divan::main();
}

fn class(policy: Policy, shards_max: usize) -> Class {
    // Too fast to ever be the bottleneck.
    let rates = DiskRates {
        read_iops: 100_000_000,
        write_iops: 100_000_000,
        read_bandwidth: 1_000_000_000_000,
        write_bandwidth: 1_000_000_000_000,
    };
    let disk = DiskConfig::new("disk", rates).policy(policy);
    let builder = Scheduler::builder().disk(disk).shards_max(shards_max);
    builder.build().unwrap().add_class("class", 100).unwrap()
}

/// A thousand at a time, or the clock would be what is measured.
fn uncontended(bencher: Bencher<'_, '_>, mut one: impl FnMut()) {
    bencher.counter(ItemsCount::new(1_000_usize)).bench_local(|| (0..1_000).for_each(|_| one()));
}

#[divan::bench]
fn clock(bencher: Bencher<'_, '_>) {
    bencher.bench_local(std::time::Instant::now);
}

#[divan::bench]
fn admit_and_drop_open(bencher: Bencher<'_, '_>) {
    let class = class(Policy::Unlimited, 64);
    uncontended(bencher, || drop(class.admit(Op::Read, 4096).unwrap()));
}

#[divan::bench]
fn admit_and_drop_pace_window(bencher: Bencher<'_, '_>) {
    let class = class(Policy::pace_window(), 64);
    uncontended(bencher, || drop(class.admit(Op::Read, 4096).unwrap()));
}

/// As a lookup of many keys asks for them: per request, a batch and single permits.
const BATCH: [(Op, u64); 32] = [(Op::Read, 16_384); 32];

#[divan::bench]
fn batch_of_32(bencher: Bencher<'_, '_>) {
    let class = class(Policy::pace_window(), 64);
    let counted = bencher.counter(ItemsCount::new(BATCH.len()));
    counted.bench_local(|| drop(class.admit_many(&BATCH).wait().unwrap()));
}

#[divan::bench]
fn singles_32(bencher: Bencher<'_, '_>) {
    let class = class(Policy::pace_window(), 64);
    let counted = bencher.counter(ItemsCount::new(BATCH.len()));
    counted.bench_local(|| BATCH.map(|(op, len)| class.admit(op, len).unwrap()).map(drop));
}

/// With room for no other queue in the I/O group.
#[divan::bench]
fn admit_and_drop_sole_queue(bencher: Bencher<'_, '_>) {
    let class = class(Policy::pace_window(), 1);
    uncontended(bencher, || drop(class.admit(Op::Read, 4096).unwrap()));
}

#[divan::bench]
fn admit_async_and_drop(bencher: Bencher<'_, '_>) {
    let class = class(Policy::pace_window(), 64);
    let mut context = Context::from_waker(Waker::noop());
    uncontended(bencher, || {
        let admit = pin!(class.admit_async(Op::Read, 4096));
        assert!(admit.poll(&mut context).is_ready());
    });
}

#[divan::bench(args = [1, 2, 8])]
fn threads_on_one_queue(bencher: Bencher<'_, '_>, threads: usize) {
    on_one_queue(bencher, threads, Policy::Unlimited);
}

#[divan::bench(args = [1, 2, 8])]
fn threads_on_one_queue_pace_window(bencher: Bencher<'_, '_>, threads: usize) {
    on_one_queue(bencher, threads, Policy::pace_window());
}

/// All threads use one queue; the rate is of all together.
fn on_one_queue(bencher: Bencher<'_, '_>, threads: usize, policy: Policy) {
    let class = class(policy, 64);
    bencher.counter(ItemsCount::new(threads * PERMITS)).bench_local(|| {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..PERMITS {
                        drop(class.admit(Op::Read, 4096).unwrap());
                    }
                });
            }
        });
    });
}
