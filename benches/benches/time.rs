//! Time per request: `cargo bench --manifest-path benches/Cargo.toml --bench time`.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod path;
mod program;
mod turns;

use std::time::Instant;

use divan::{Bencher, counter::ItemsCount};
use forebay_core::Time;
use forebay_core::internals::FairQueueAlone;

use crate::path::{Path, classes, group};
use crate::program::Program;
use crate::turns::Turns;

const REQUESTS: usize = 1_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn fair_queue_alone(bencher: Bencher<'_, '_>) {
    let mut queue = FairQueueAlone::new().unwrap();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| queue.queue_and_drain(REQUESTS));
}

#[divan::bench(args = [1, 8, 100, 1000])]
fn whole_path(bencher: Bencher<'_, '_>, count: usize) {
    let group = group(1).unwrap();
    let mut path = Path::new(&group, classes(&group, count)).unwrap();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| path.run(REQUESTS));
}

/// On one thread: what the scheduler itself does for several shards.
#[divan::bench(args = [1, 2, 8, 64, 256])]
fn shards_in_turns(bencher: Bencher<'_, '_>, shards: usize) {
    let mut turns = Turns::new(shards, 8).unwrap();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| turns.run(REQUESTS));
}

/// `count` requests on the clock that started at `start`, polling again where
/// other shards go first. Returns how many times that was.
fn run_beside_others(path: &mut Path, start: Instant, count: usize) -> usize {
    let (mut done, mut waits) = (0, 0);
    while done < count {
        let now = Time::from_nanos(1_000_000 + start.elapsed().as_nanos() as u64);
        if path.turn(now) {
            done += 1;
        } else {
            waits += 1;
        }
    }
    waits
}

/// All shards run at once, on a real clock; the rate is each shard's own.
#[divan::bench(args = [1, 2])]
fn shards_of_one_group(bencher: Bencher<'_, '_>, shards: usize) {
    let group = group(2).unwrap();
    let classes = classes(&group, 8);
    let mut paths: Vec<_> =
        (0..shards).map(|_| Path::new(&group, classes.clone()).unwrap()).collect();
    let requests = 50 * REQUESTS;
    let start = Instant::now();
    bencher.counter(ItemsCount::new(requests)).bench_local(|| {
        std::thread::scope(|scope| {
            for path in &mut paths {
                scope.spawn(move || run_beside_others(path, start, requests));
            }
        });
    });
}

/// A shard's submit, turn and pop, this many requests at a time, with an engine
/// that does nothing.
#[divan::bench(args = [1, 32])]
fn shard_of_a_program(bencher: Bencher<'_, '_>, depth: usize) {
    let mut program = Program::new(depth);
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| program.run(REQUESTS, || ()));
}
