//! Generators and recorders on a virtual clock, against servers simple enough to know the answer.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_config::Source;
use forebay_core::Time;
use forebay_load::generator::Generator;
use forebay_load::job_file::{Job, JobFile};
use forebay_load::recorder::{Completion, MeasuredInterval, Recorder};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * MS)
}

fn job(shard_info: &str, options: &str) -> Job {
    let text = format!(
        "- {{name: a, type: randread, shards: all, shard_info: {{{shard_info}}}, options: {{{options}}}}}"
    );
    JobFile::parse(&Source::new("a.yaml", &text), None, 1).unwrap().jobs.remove(0)
}

/// Runs `job` until the end of `measured`; `done` says when a request sent at a time completes.
fn run(job: &Job, measured: MeasuredInterval, done: impl Fn(Time) -> Time) -> Recorder {
    let mut generator = Generator::new(job, 0, 0, 1, Time::ZERO);
    let mut recorder = Recorder::new(measured).unwrap();
    let mut in_flight: BinaryHeap<Reverse<(Time, u32, Time, Time)>> = BinaryHeap::new();
    let mut now = Time::ZERO;
    while now <= measured.to {
        while let Some(action) = generator.poll(now) {
            in_flight.push(Reverse((done(now), action.fiber, action.intended, now)));
        }
        let completion = in_flight.peek().map_or(Time::MAX, |next| next.0.0);
        now = generator.next_event().unwrap_or(Time::MAX).min(completion);
        while in_flight.peek().is_some_and(|next| next.0.0 <= now) {
            let Some(Reverse((completed, fiber, intended, enqueued))) = in_flight.pop() else {
                break;
            };
            let dispatched = enqueued;
            let (bytes, ok, flush) = (u64::from(job.reqsize), true, false);
            let done = Completion { intended, enqueued, dispatched, completed, bytes, ok, flush };
            recorder.record(&done);
            generator.completed(now, fiber, ok);
        }
    }
    in_flight
        .iter()
        .for_each(|Reverse((_, _, intended, _))| recorder.record_unfinished(*intended, false));
    generator.overdue(measured.to).for_each(|intended| recorder.record_unfinished(intended, false));
    recorder
}

fn one_ms(sent: Time) -> Time {
    sent.plus_nanos(MS)
}

#[test]
fn a_closed_loop_is_as_fast_as_its_server() {
    let measured = MeasuredInterval { from: ms(1000), to: ms(3000) };
    let recorder = run(&job("parallelism: 8", ""), measured, one_ms);
    // Both ends of the measured part belong to it.
    assert_eq!(recorder.requests, 8 * 2001);
    assert_eq!(recorder.bytes, 8 * 2001 * 4096);
    assert_eq!((recorder.latency.quantile_ns(0.5), recorder.latency.max_ns()), (MS, MS));
    assert_eq!(recorder.unfinished, 8);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let measured = MeasuredInterval { from: ms(1000), to: ms(11_000) };
    let recorder = run(&job("parallelism: 10, rps: 100", ""), measured, one_ms);
    assert!((9_990..=10_010).contains(&recorder.requests), "{}", recorder.requests);
    assert_eq!(recorder.latency.max_ns(), MS);

    let poisson = job("parallelism: 1000, rps: 1", "pause_distribution: poisson");
    let recorder = run(&poisson, measured, one_ms);
    assert!((9_600..=10_400).contains(&recorder.requests), "{}", recorder.requests);
}

/// A server that answers nothing between 5 s and 6 s. In a rate of 1000 requests per second that
/// hits a tenth of the requests of 10 s, although only ten of them, one a fiber, are sent.
#[test]
fn a_stall_is_seen_by_all_the_requests_it_delays() {
    let stall = |sent: Time| one_ms(if sent < ms(5000) { sent } else { sent.max(ms(6000)) });
    let measured = MeasuredInterval { from: ms(0), to: ms(10_000) };
    let recorder = run(&job("parallelism: 10, rps: 100", ""), measured, stall);
    let latency_ms = |quantile| recorder.latency.quantile_ns(quantile) / MS;
    assert!((880..=920).contains(&latency_ms(0.99)), "p99 is {} ms", latency_ms(0.99));
    assert!((490..=560).contains(&latency_ms(0.95)), "p95 is {} ms", latency_ms(0.95));
    assert_eq!(latency_ms(0.5), 1);
    assert_eq!(recorder.latency.max_ns(), 1001 * MS);
    // Of the requests sent, ten met the stall.
    assert_eq!(recorder.service.quantile_ns(0.99) / MS, 1);
    assert_eq!(recorder.service.max_ns(), 1001 * MS);
    assert!((9_990..=10_010).contains(&recorder.requests), "{}", recorder.requests);
}

#[test]
fn a_server_that_hangs_to_the_end_is_seen_too() {
    let hang = |sent: Time| if sent < ms(9000) { one_ms(sent) } else { Time::MAX };
    let measured = MeasuredInterval { from: ms(0), to: ms(10_000) };
    let recorder = run(&job("parallelism: 10, rps: 100", ""), measured, hang);
    assert_eq!(recorder.unfinished, 1000);
    assert_eq!(recorder.latency.count(), 10_000);
    let p99_ms = recorder.latency.quantile_ns(0.99) / MS;
    assert!((880..=920).contains(&p99_ms), "p99 is {p99_ms} ms");
    assert_eq!(recorder.service.max_ns(), MS);
}

#[test]
fn pauses_take_their_part_of_the_time() {
    let measured = MeasuredInterval { from: ms(0), to: ms(10_000) };
    let recorder = run(&job("parallelism: 2, think_time: 9ms", ""), measured, one_ms);
    assert_eq!(recorder.requests, 2 * 1000);
    let phases = job("parallelism: 2, think_time: 75ms, think_after: 25ms", "");
    let recorder = run(&phases, measured, one_ms);
    assert_eq!(recorder.requests, 2 * 2500);
}

#[test]
fn a_seed_is_a_run() {
    let poisson = job("parallelism: 30, rps: 20", "pause_distribution: poisson");
    let measured = MeasuredInterval { from: ms(500), to: ms(5000) };
    let figures = || {
        let recorder = run(&poisson, measured, |sent| sent.max(ms(2000)).plus_nanos(3 * MS));
        (recorder.requests, recorder.latency.mean_ns(), recorder.latency.quantile_ns(0.9))
    };
    assert_eq!(figures(), figures());
    // On every machine, for ever.
    assert_eq!(figures().0, 3004);
}
