//! Instructions per thousand requests, counted by callgrind, so that they
//! repeat exactly: `cargo install gungraun-runner --version 0.20.0`, then
//! `cargo bench --manifest-path benches/Cargo.toml --bench instructions`.
#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::unwrap_used)]

mod path;

use std::hint::black_box;

use forebay::internals::Recorder;
use forebay_core::internals::FairQueueAlone;
use gungraun::{library_benchmark, library_benchmark_group, main};

use crate::path::{Path, classes, group};

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

#[library_benchmark]
#[bench::classes_8((warm_path(8), Recorder::default()))]
fn whole_path_recorded((mut path, recorder): (Path, Recorder)) -> (Path, Recorder) {
    black_box(path.run_and(1_000, |completion| recorder.record(completion)));
    (path, recorder)
}

library_benchmark_group!(
    name = scheduler,
    benchmarks = [fair_queue_alone, whole_path, whole_path_recorded]
);
main!(library_benchmark_groups = scheduler);
