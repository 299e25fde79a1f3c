//! What latency histograms cost, as a part of the scheduler's own work:
//! `cargo bench --manifest-path benches/Cargo.toml --bench recording`.
//!
//! With and without recording take turns a thousand requests long, and the
//! ratio of each pair counts, for the speed of the machine changes.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod path;
mod program;

use std::hint::black_box;
use std::time::Instant;

use forebay::Op;
use forebay::internals::Recorder;
use forebay_core::{Completion, Outcome};

use crate::path::{Path, classes, group};
use crate::program::{Program, scheduler};

const REQUESTS: usize = 1_000;
const PAIRS: usize = 4_000;
/// Requests that a shard has at once.
const DEPTH: usize = 32;

fn main() {
    report("enqueue, dispatch, complete", shard(8));
    report("a shard's submit, turn and pop", shard_of_a_program(0));
    report("the same, of requests that waited", shard_of_a_program(50_000));
    report("admit and drop", admission());
}

/// One shard with a backlog of several classes.
fn shard(count: usize) -> Vec<f64> {
    let group = group(1).unwrap();
    let mut path = Path::new(&group, classes(&group, count)).unwrap();
    let recorder = Recorder::default();
    pairs(|recording| {
        if recording {
            black_box(path.run_and(REQUESTS, |completion| recorder.record(completion)));
        } else {
            black_box(path.run(REQUESTS));
        }
    })
}

/// With an engine that does nothing, 32 requests at a time. A shard records
/// each; recording it once more shows what that costs.
fn shard_of_a_program(waited_nanos: u64) -> Vec<f64> {
    let mut program = Program::new(DEPTH);
    let (recorder, completion) = (Recorder::default(), completion(waited_nanos));
    pairs(|again| {
        program.run(REQUESTS, || {
            if again {
                recorder.record(black_box(&completion));
            }
        });
    })
}

/// A permit is recorded when it ends; recording it once more shows what that
/// costs.
fn admission() -> Vec<f64> {
    let scheduler = scheduler();
    let class = scheduler.add_class("class", 100).unwrap();
    let (recorder, completion) = (Recorder::default(), completion(0));
    pairs(|again| {
        for _ in 0..REQUESTS {
            drop(class.admit(Op::Read, 4096).unwrap());
            if again {
                recorder.record(black_box(&completion));
            }
        }
    })
}

/// Of a request that waited for so long.
fn completion(waited_nanos: u64) -> Completion {
    let group = group(1).unwrap();
    let (class, mut queue) = (classes(&group, 1)[0], group.join().unwrap());
    let at = |nanos| forebay_core::Time::from_nanos(nanos);
    queue.enqueue(at(1), class, Op::Read, 4096).unwrap();
    let ticket = queue.poll_dispatch(at(1 + waited_nanos)).unwrap();
    queue.complete(at(200_000), ticket, Outcome::Done).unwrap()
}

/// The ratios of pairs of runs: with over without.
fn pairs(mut run: impl FnMut(bool)) -> Vec<f64> {
    let mut timed = |with| {
        let start = Instant::now();
        run(with);
        start.elapsed().as_secs_f64()
    };
    let mut pair = |index: usize| {
        // whichever comes second finds a warmer cache, so they change places
        let second_first = index % 2 == 1;
        let (one, other) = (timed(second_first), timed(!second_first));
        if second_first { one / other } else { other / one }
    };
    (0..PAIRS).map(&mut pair).collect()
}

fn report(path: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let percent = |permille: usize| (ratios[ratios.len() * permille / 1_000] - 1.0) * 100.0;
    println!(
        "{path}: recording adds {:.1} % (a quarter of pairs below {:.1} %, three below {:.1} %)",
        percent(500),
        percent(250),
        percent(750)
    );
}
