//! Instructions per thousand requests, counted by callgrind, so that they
//! repeat exactly: `cargo install gungraun-runner --version 0.20.0`, then
//! `cargo bench --manifest-path benches/Cargo.toml --bench instructions`.
#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::unwrap_used)]

mod path;
mod turns;

use std::hint::black_box;

use forebay::internals::Recorder;
use forebay_core::internals::FairQueueAlone;
use gungraun::{library_benchmark, library_benchmark_group, main};

use crate::path::{Path, classes, group};
use crate::turns::Turns;

fn warm_queue() -> FairQueueAlone {
    let mut queue = FairQueueAlone::new().unwrap();
    queue.queue_and_drain(1_000);
    queue
}

fn warm_path(count: usize) -> Path {
    let group = group(1).unwrap();
    let mut path = Path::new(&group, classes(&group, count)).unwrap();
    path.run(1_000);
    path
}

#[library_benchmark]
#[bench::one_class(warm_queue())]
fn fair_queue_alone(mut queue: FairQueueAlone) -> FairQueueAlone {
    black_box(queue.queue_and_drain(1_000));
    queue
}

#[library_benchmark]
#[bench::classes_1(warm_path(1))]
#[bench::classes_8(warm_path(8))]
#[bench::classes_1000(warm_path(1_000))]
fn whole_path(mut path: Path) -> Path {
    black_box(path.run(1_000));
    path
}

fn warm_turns(shards: usize) -> Turns {
    let mut turns = Turns::new(shards, 8).unwrap();
    turns.run(1_000);
    turns
}

#[library_benchmark]
#[bench::shards_2(warm_turns(2))]
#[bench::shards_8(warm_turns(8))]
#[bench::shards_256(warm_turns(256))]
fn shards_in_turns(mut turns: Turns) -> Turns {
    black_box(turns.run(1_000));
    turns
}

#[library_benchmark]
#[bench::classes_8((warm_path(8), Recorder::default()))]
fn whole_path_recorded((mut path, recorder): (Path, Recorder)) -> (Path, Recorder) {
    black_box(path.run_and(1_000, |completion| recorder.record(completion)));
    (path, recorder)
}

library_benchmark_group!(
    name = scheduler,
    benchmarks = [fair_queue_alone, whole_path, shards_in_turns, whole_path_recorded]
);
main!(library_benchmark_groups = scheduler);
