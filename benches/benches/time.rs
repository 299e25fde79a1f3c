//! Time per request: `cargo bench --manifest-path benches/Cargo.toml --bench time`.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod path;

use std::time::Instant;

use divan::{Bencher, counter::ItemsCount};
use forebay_core::internals::FairQueueAlone;
use forebay_core::{Op, Outcome, Time};

use crate::path::{Path, classes, group};

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

impl Path {
    /// `count` requests on the clock that started at `start`, polling again
    /// where other shards go first. Returns how many times that was.
    fn run_beside_others(&mut self, start: Instant, count: usize) -> usize {
        let (mut done, mut waits) = (0, 0);
        while done < count {
            let now = Time::from_nanos(1_000_000 + start.elapsed().as_nanos() as u64);
            if let Some(ticket) = self.queue.poll_dispatch(now) {
                done += usize::from(self.queue.complete(now, ticket, Outcome::Done).is_ok());
                let class = self.classes[self.next];
                self.next = (self.next + 1) % self.classes.len();
                let _ = self.queue.enqueue(now, class, Op::Read, 4096);
            } else {
                waits += 1;
            }
            while self.queue.poll_wake().is_some() {}
        }
        waits
    }
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
                scope.spawn(move || path.run_beside_others(start, requests));
            }
        });
    });
}
