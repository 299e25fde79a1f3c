use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use forebay_core::{CostCurve, DiskModel, GroupConfig, IoGroup, Op, Policy};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::job_file::{FileOptions, Gaps, JobKind, Rate, Think};

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * MS)
}

fn job(kind: JobKind, parallelism: u32, pace: Pace) -> Job {
    Job {
        name: String::from("job"),
        kind,
        shards: vec![0],
        file_size: 1 << 20,
        files_count: 1,
        class: 0,
        parallelism,
        start: Duration::ZERO,
        pace,
        limit: None,
        reqsize: 4096,
        iov_count: 1,
        execution_time: Duration::from_millis(1),
        fsync_every: None,
        options: FileOptions::default(),
        steps: None,
    }
}

fn closed() -> Pace {
    Pace::Closed(Think::default())
}

fn open(rps: u32, batch: u32, gaps: Gaps) -> Pace {
    let (rps, batch) = (NonZeroU32::new(rps).unwrap(), NonZeroU32::new(batch).unwrap());
    Pace::Open(Rate { rps, batch, gaps, skips_missed: false })
}

fn start(job: &Job) -> Generator {
    Generator::new(job, 0, 0, 1, Time::ZERO)
}

/// All actions to be had at `now`.
fn poll_all(generator: &mut Generator, now: Time) -> Vec<Action> {
    from_fn(|| generator.poll(now)).collect()
}

/// Fiber and intended start in milliseconds of all actions to be had at `now`.
fn starts(generator: &mut Generator, now: Time) -> Vec<(u32, u64)> {
    let timed = |action: Action| (action.fiber, action.intended.as_nanos() / MS);
    poll_all(generator, now).into_iter().map(timed).collect()
}

fn op(action: &Action) -> Option<Op> {
    match action.work {
        Work::Io { op, .. } => Some(op),
        _ => None,
    }
}

#[test]
fn a_closed_loop_sends_again_when_a_request_is_done() {
    let mut generator = start(&job(JobKind::SeqRead, 2, closed()));
    assert_eq!(starts(&mut generator, ms(0)), [(0, 0), (1, 0)]);
    assert_eq!((generator.poll(ms(5)), generator.next_event()), (None, None));
    generator.completed(ms(5), 1, true);
    assert_eq!(generator.next_event(), Some(ms(5)));
    let action = generator.poll(ms(5)).unwrap();
    let work = Work::Io { op: Op::Read, offset: 8192, len: 4096 };
    assert_eq!(action, Action { fiber: 1, intended: ms(5), work });
    assert_eq!(generator.in_flight(), 2);
    assert_eq!(generator.overdue(ms(100)).count(), 0);
}

#[test]
fn think_time_keeps_a_fiber_waiting() {
    let think = Think { time: Duration::from_millis(3), after: Duration::ZERO };
    let mut generator = start(&job(JobKind::RandRead, 1, Pace::Closed(think)));
    assert_eq!(starts(&mut generator, ms(0)), [(0, 0)]);
    generator.completed(ms(1), 0, true);
    assert_eq!((generator.poll(ms(3)), generator.next_event()), (None, Some(ms(4))));
    assert_eq!(starts(&mut generator, ms(4)), [(0, 4)]);
}

#[test]
fn fibers_of_an_open_loop_take_turns() {
    let mut generator = start(&job(JobKind::RandRead, 4, open(10, 1, Gaps::Uniform)));
    let mut all = Vec::new();
    for now in 0..200 {
        for (fiber, intended) in starts(&mut generator, ms(now)) {
            assert_eq!(intended, now);
            generator.completed(ms(now), fiber, true);
            all.push((fiber, now));
        }
    }
    let expected: Vec<(u32, u64)> = (0..8).map(|n| (n % 4, u64::from(n) * 25)).collect();
    assert_eq!(all, expected);
}

#[test]
fn a_late_fiber_makes_up_for_all_the_starts_it_missed() {
    let mut generator = start(&job(JobKind::RandRead, 1, open(100, 1, Gaps::Uniform)));
    assert_eq!(starts(&mut generator, ms(0)), [(0, 0)]);
    assert_eq!(generator.overdue(ms(50)).collect::<Vec<_>>(), [10, 20, 30, 40].map(ms));
    for intended in [10, 20, 30, 40] {
        generator.completed(ms(45), 0, true);
        assert_eq!(starts(&mut generator, ms(45)), [(0, intended)]);
    }
    generator.completed(ms(45), 0, true);
    assert_eq!((generator.poll(ms(45)), generator.next_event()), (None, Some(ms(50))));
}

#[test]
fn the_requests_of_a_batch_begin_together() {
    let mut generator = start(&job(JobKind::RandRead, 1, open(100, 3, Gaps::Uniform)));
    assert_eq!(starts(&mut generator, ms(0)), [(0, 0); 3]);
    generator.completed(ms(12), 0, true);
    generator.completed(ms(12), 0, true);
    assert_eq!(generator.poll(ms(12)), None);
    generator.completed(ms(12), 0, true);
    assert_eq!(generator.poll(ms(12)).map(|action| action.intended), Some(ms(10)));
    // One of the batch of 10 ms is sent, and is done before the others are.
    generator.completed(ms(12), 0, true);
    assert_eq!(generator.overdue(ms(25)).collect::<Vec<_>>(), [10, 10, 20, 20, 20].map(ms));
    assert_eq!(starts(&mut generator, ms(12)), [(0, 10); 2]);
}

#[test]
fn a_limit_is_kept_exactly() {
    let limit = NonZeroU64::new(7);
    for pace in [closed(), open(1000, 3, Gaps::Poisson)] {
        let mut generator = start(&Job { limit, ..job(JobKind::RandWrite, 2, pace) });
        let mut sent = 0;
        for now in 0..1000 {
            for action in poll_all(&mut generator, ms(now)) {
                sent += 1;
                assert!(!generator.is_done());
                generator.completed(ms(now), action.fiber, true);
            }
        }
        assert_eq!(sent, 7);
        assert!(generator.is_done());
        assert_eq!((generator.next_event(), generator.overdue(ms(9999)).count()), (None, 0));
    }
}

#[test]
fn each_file_is_removed_once() {
    let unlink = Job { files_count: 5, ..job(JobKind::Unlink, 2, open(10, 1, Gaps::Uniform)) };
    let mut generator = start(&unlink);
    let mut files = Vec::new();
    for now in 0..2000 {
        for action in poll_all(&mut generator, ms(now)) {
            files.push(action.work);
            generator.completed(ms(now), action.fiber, true);
        }
    }
    assert_eq!(files, [0, 1, 2, 3, 4].map(Work::Unlink));
    assert!(generator.is_done());
    assert!(start(&Job { files_count: 0, ..unlink }).is_done());
}

#[test]
fn files_are_given_back_from_their_ends_and_a_flush_follows_each_step() {
    let job = Job {
        files_count: 2,
        file_size: 10 << 20,
        reqsize: 4 << 20,
        fsync_every: NonZeroU64::new(1),
        ..job(JobKind::Delete, 1, open(10, 1, Gaps::Uniform))
    };
    let mut generator = start(&job);
    let (mut places, mut flushes) = (Vec::new(), 0);
    for now in 0..2000 {
        for action in poll_all(&mut generator, ms(now)) {
            match action.work {
                Work::Io { op: Op::Discard, offset, len } => places.push((offset >> 20, len >> 20)),
                Work::FLUSH => flushes += 1,
                other => panic!("{other:?}"),
            }
            generator.completed(ms(now), action.fiber, true);
        }
    }
    assert_eq!(places, [(8, 2), (4, 4), (0, 4), (18, 2), (14, 4), (10, 4)]);
    assert!(generator.is_done() && flushes == places.len(), "{flushes} flushes");
}

#[test]
fn where_missed_ticks_are_skipped_a_stall_is_seen_once_by_each_fiber() {
    for gaps in [Gaps::Uniform, Gaps::Poisson] {
        let mut pace = open(100, 1, gaps);
        if let Pace::Open(rate) = &mut pace {
            rate.skips_missed = true;
        }
        let mut generator = start(&job(JobKind::RandRead, 3, pace));
        let sent: Vec<Action> =
            (0..100).flat_map(|now| poll_all(&mut generator, ms(now))).collect();
        assert_eq!(sent.len(), 3, "{gaps:?}");
        assert_eq!(generator.overdue(ms(100)).count(), 0, "{gaps:?}");
        sent.iter().for_each(|action| generator.completed(ms(100), action.fiber, true));
        let late = starts(&mut generator, ms(100));
        assert_eq!(late.iter().map(|start| start.1).collect::<Vec<_>>(), [100; 3], "{gaps:?}");
        // and from there on in its rhythm
        late.iter().for_each(|(fiber, _)| generator.completed(ms(101), *fiber, true));
        if gaps == Gaps::Uniform {
            assert_eq!(starts(&mut generator, ms(109)), []);
            assert_eq!(starts(&mut generator, ms(110)), [(0, 110), (1, 110), (2, 110)]);
        }
    }
}

#[test]
fn steps_that_are_paced_delete_the_same_bytes_per_second_and_cost_little() {
    let discard = CostCurve::sum(50_000, 200 << 30).unwrap();
    let model = DiskModel::unmeasured().with_discard(discard);
    let policy = Policy::pace_window();
    let cost = IoGroup::new(GroupConfig::new(model.clone(), policy)).effective_goal();
    let sizes = [None, Some(32 << 20), Some(5 << 20), Some(1 << 20), Some(64 << 10)];
    for (extent_size, gaps) in
        sizes.into_iter().flat_map(|size| [(size, Gaps::Uniform), (size, Gaps::Poisson)])
    {
        let options = FileOptions { paced: true, extent_size, ..FileOptions::default() };
        let files = Job {
            file_size: 1 << 30,
            files_count: 6,
            reqsize: 32 << 20,
            limit: NonZeroU64::new(160),
            options,
            ..job(JobKind::Delete, 1, open(8, 2, gaps))
        };
        let mut generator = start(&files.in_steps(&model, policy));
        let (mut bytes, mut left, mut last) = (0, 1_u64 << 30, Time::ZERO);
        while let Some(now) = generator.next_event() {
            let Some(Action { fiber, intended, work }) = generator.poll(now) else { break };
            let Work::Io { op: Op::Discard, offset, len } = work else { panic!("{work:?}") };
            let (len, extent) = (u64::from(len), extent_size.unwrap_or(1 << 30));
            let extents = left.div_ceil(extent) - (left - len) / extent;
            assert!(model.discard_cost(len, extents as u32) <= cost, "{extent_size:?}: {len}");
            assert!(extents <= 64 && offset % (1 << 30) == left - len, "{extent_size:?}");
            left = if left == len { 1 << 30 } else { left - len };
            (bytes, last) = (bytes + len, intended);
            generator.completed(now, fiber, true);
        }
        // all that was asked for, in the ten seconds that it takes at the rate
        assert!((5 << 30..(5 << 30) + (32 << 20)).contains(&bytes), "{extent_size:?}: {bytes}");
        let off = if gaps == Gaps::Uniform { 0.1 } else { 5.0 };
        let seconds = last.as_nanos() as f64 / 1e9;
        assert!((seconds - 10.0).abs() < off, "{extent_size:?}, {gaps:?}: {seconds}");
    }
}

#[test]
fn cpu_and_fsync_jobs_name_their_work() {
    let mut cpu = start(&job(JobKind::Cpu, 1, closed()));
    assert_eq!(cpu.poll(ms(0)).map(|a| a.work), Some(Work::Cpu(Duration::from_millis(1))));
    let mut fsync = start(&job(JobKind::Fsync, 1, closed()));
    assert_eq!(fsync.poll(ms(0)).map(|a| a.work), Some(Work::FLUSH));
}

#[test]
fn a_flush_follows_every_third_write() {
    let every = NonZeroU64::new(3);
    let mut generator =
        start(&Job { fsync_every: every, ..job(JobKind::Append, 1, open(100, 1, Gaps::Uniform)) });
    let mut ops = Vec::new();
    for now in 0..60 {
        while let Some(action) = generator.poll(ms(now)) {
            ops.push((op(&action).unwrap(), action.intended.as_nanos() / MS));
            generator.completed(ms(now), action.fiber, true);
        }
    }
    let round =
        |at| [(Op::Write, at), (Op::Write, at + 10), (Op::Write, at + 20), (Op::Flush, at + 20)];
    assert_eq!(ops, [round(0), round(30)].concat());
}

#[test]
fn one_flush_at_a_time_and_the_others_write_on() {
    let every = NonZeroU64::new(2);
    let mut generator = start(&Job { fsync_every: every, ..job(JobKind::Overwrite, 3, closed()) });
    let ops = |actions: Vec<Action>| actions.iter().map(|a| (a.fiber, op(a).unwrap())).collect();
    let poll = |generator: &mut Generator| -> Vec<(u32, Op)> { ops(poll_all(generator, ms(1))) };
    assert_eq!(poll(&mut generator).len(), 3);
    generator.completed(ms(1), 0, true);
    generator.completed(ms(1), 1, true);
    assert_eq!(poll(&mut generator), [(0, Op::Write), (1, Op::Flush)]);
    // Two more writes are done, but a flush is under way.
    generator.completed(ms(1), 0, true);
    generator.completed(ms(1), 2, true);
    assert_eq!(poll(&mut generator), [(0, Op::Write), (2, Op::Write)]);
    generator.completed(ms(1), 1, true);
    assert_eq!(poll(&mut generator), [(1, Op::Write)]);
    // A failed write makes no flush necessary, yet the two before still do.
    generator.completed(ms(1), 2, false);
    assert_eq!(poll(&mut generator), [(2, Op::Flush)]);
}

#[test]
fn a_stopped_generator_only_waits_for_what_it_sent() {
    let mut generator = start(&job(JobKind::RandRead, 2, closed()));
    assert_eq!(starts(&mut generator, ms(0)).len(), 2);
    generator.completed(ms(1), 0, true);
    generator.stop();
    assert_eq!((generator.poll(ms(2)), generator.next_event()), (None, None));
    assert!(!generator.is_done());
    generator.completed(ms(2), 1, true);
    assert!(generator.is_done());
    // What nobody sent cannot complete.
    generator.completed(ms(2), 1, true);
    generator.completed(ms(2), 99, true);
    assert!(generator.is_done());
}

#[test]
fn shards_and_jobs_go_their_own_ways() {
    let random = job(JobKind::RandRead, 1, closed());
    let first = |job_index, shard, seed| {
        let mut generator = Generator::new(&random, job_index, shard, seed, Time::ZERO);
        (0..4)
            .map(|_| {
                let action = generator.poll(ms(0)).unwrap();
                generator.completed(ms(0), action.fiber, true);
                action.work
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(first(0, 0, 1), first(0, 0, 1));
    assert_ne!(first(0, 0, 1), first(1, 0, 1));
    assert_ne!(first(0, 0, 1), first(0, 1, 1));
    assert_ne!(first(0, 0, 1), first(0, 0, 2));
}

/// Runs a generator against a server that needs `service_ms(n)` for request n, until 2 s.
fn intended_starts(job: &Job, service_ms: impl Fn(u64) -> u64) -> Vec<Vec<u64>> {
    let mut generator = Generator::new(job, 0, 0, 1, Time::ZERO);
    let mut done: BinaryHeap<Reverse<(Time, u32)>> = BinaryHeap::new();
    let mut starts = vec![Vec::new(); job.parallelism as usize];
    let (mut now, mut sent) = (Time::ZERO, 0);
    while now < ms(2000) {
        while let Some(action) = generator.poll(now) {
            assert!(action.intended <= now);
            starts[action.fiber as usize].push(action.intended.as_nanos());
            done.push(Reverse((now.plus_nanos(service_ms(sent) * MS), action.fiber)));
            sent += 1;
        }
        let completion = done.peek().map_or(Time::MAX, |d| d.0.0);
        now = generator.next_event().unwrap_or(Time::MAX).min(completion);
        while done.peek().is_some_and(|d| d.0.0 <= now) {
            let Some(Reverse((_, fiber))) = done.pop() else { break };
            generator.completed(now, fiber, true);
        }
    }
    starts
}

proptest! {
    #[test]
    fn intended_starts_do_not_depend_on_the_disk(
        rps in 1_u32..300, batch in 1_u32..4, parallelism in 1_u32..5, poisson: bool, slow in 0_u64..40,
    ) {
        let gaps = if poisson { Gaps::Poisson } else { Gaps::Uniform };
        let job = job(JobKind::RandRead, parallelism, open(rps, batch, gaps));
        let ideal = intended_starts(&job, |_| 0);
        let late = intended_starts(&job, |n| n * 7919 % (slow + 1));
        for (ideal, late) in ideal.iter().zip(&late) {
            prop_assert!(ideal.is_sorted());
            let common = ideal.len().min(late.len());
            prop_assert_eq!(&ideal[..common], &late[..common]);
        }
    }

    #[test]
    fn a_rate_is_kept_exactly(rps in 1_u32..10_000) {
        let job = job(JobKind::RandRead, 1, open(rps, 1, Gaps::Uniform));
        let starts = intended_starts(&job, |_| 0);
        prop_assert_eq!(starts[0].iter().filter(|&&ns| ns < 1_000 * MS).count(), rps as usize);
    }
}

#[test]
fn a_job_that_starts_later_sends_nothing_before() {
    let start = Duration::from_millis(20);
    for pace in [open(100, 1, Gaps::Uniform), Pace::Closed(Think::default())] {
        let job = Job { start, ..job(JobKind::RandRead, 1, pace) };
        let mut generator = Generator::new(&job, 0, 0, 1, Time::ZERO);
        let begins = Time::from_nanos(20_000_000);
        assert!(generator.poll(Time::from_nanos(19_999_999)).is_none());
        let first = generator.next_event().unwrap();
        assert!(first >= begins, "{first:?}");
        assert_eq!(generator.poll(first).unwrap().intended, first);
    }
}
