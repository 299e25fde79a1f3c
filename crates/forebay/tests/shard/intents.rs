//! Operations that are cancelled together.

use std::sync::mpsc;
use std::time::Duration;

use forebay::engine::{BackendChoice, Operation};
use forebay::{AlignedBuf, DirectFile, FileOptions, Intent};

use crate::event_loop::sleep;
use crate::fixture::{BLOCK, Bed, RATES, STUCK, config, endless, filled, is_cancelled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    an_intent_cancels_all_that_waits_under_it_and_nothing_else,
    an_intent_cancelled_by_another_thread_ends_the_sleep,
    an_intent_cancelled_by_another_thread_makes_the_descriptor_readable,
    an_intent_that_was_cancelled_admits_nothing,
    a_part_of_an_intent_ends_before_it_and_with_it,
    an_intent_is_for_files_and_shards_of_all_threads,
    nothing_stays_under_an_intent_that_has_ended,
}

/// What a burst lets through at these rates: 128 KiB in blocks.
const BURST: usize = 33;

fn write(file: &DirectFile, n: u64) -> Operation {
    Operation::write(file.clone(), n * BLOCK as u64, filled(BLOCK, 1))
}

/// Submits writes of one block under `intent`.
fn submit_with_intent(bed: &mut Bed, intent: &Intent, file: &DirectFile, count: u64) {
    for n in 0..count {
        bed.shard
            .submit_with_intent(intent, &bed.class, write(file, n))
            .map_err(|(e, _)| e)
            .unwrap();
    }
}

/// Everything that has ended by now: how much of it was cancelled.
fn pop_cancelled(bed: &mut Bed) -> usize {
    let ended = std::iter::from_fn(|| bed.shard.pop());
    ended
        .filter_map(|finished| {
            let cancelled = is_cancelled(&finished.result);
            assert!(cancelled || finished.result.is_ok(), "{:?}", finished.result);
            assert_eq!(finished.operation.into_buffer::<AlignedBuf>().unwrap().len(), BLOCK);
            cancelled.then_some(())
        })
        .count()
}

fn members(intent: &Intent) -> String {
    format!("{intent:?}").split("members: ").nth(1).unwrap().replace(" }", "")
}

fn an_intent_cancels_all_that_waits_under_it_and_nothing_else(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    let (intent, other) = (Intent::new(), Intent::new());
    submit_with_intent(&mut bed, &intent, &file, 1000);
    submit_with_intent(&mut bed, &other, &file, 100);
    bed.submit(write(&file, 0));
    assert_eq!(members(&intent), "1000");
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    intent.cancel();
    assert!(intent.is_cancelled() && !other.is_cancelled());
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    let cancelled = pop_cancelled(&mut bed);
    assert!((1000 - BURST..=1000).contains(&cancelled), "{cancelled}");
    assert!(bed.shard.len() >= 101, "the others still wait");
    other.cancel();
    intent.cancel();
    while bed.shard.len() > 1 {
        bed.shard.run_once(Some(Duration::from_secs(60))).unwrap();
        pop_cancelled(&mut bed);
    }
}

/// The rounds meet all moments: before the sleep, in it, after it.
fn an_intent_cancelled_by_another_thread_ends_the_sleep(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    let (to_canceller, intents) = mpsc::channel::<Intent>();
    let canceller = std::thread::spawn(move || intents.iter().for_each(|intent| intent.cancel()));
    for round in 0..500 {
        let intent = Intent::new();
        submit_with_intent(&mut bed, &intent, &file, 3);
        to_canceller.send(intent).unwrap();
        if round % 2 == 0 {
            bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        }
        while !bed.shard.is_empty() {
            bed.shard.run_once(None).unwrap();
            pop_cancelled(&mut bed);
        }
    }
    drop(to_canceller);
    canceller.join().unwrap();
}

fn an_intent_cancelled_by_another_thread_makes_the_descriptor_readable(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    submit_with_intent(&mut bed, &Intent::new(), &file, BURST as u64 + 1);
    for _ in 0..100 {
        let intent = Intent::new();
        submit_with_intent(&mut bed, &intent, &file, 1);
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        let thread = std::thread::spawn(move || intent.cancel());
        let mut cancelled = 0;
        while cancelled == 0 {
            assert!(sleep(&bed.shard), "a cancellation was not told of");
            bed.shard.run_once(Some(Duration::ZERO)).unwrap();
            cancelled = pop_cancelled(&mut bed);
        }
        thread.join().unwrap();
    }
}

fn an_intent_that_was_cancelled_admits_nothing(backend: BackendChoice) {
    let mut bed = Bed::with(RATES, &config(backend));
    let file = bed.file();
    let intent = Intent::new();
    intent.cancel();
    submit_with_intent(&mut bed, &intent, &file, 100);
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    assert_eq!(pop_cancelled(&mut bed), 100);
    assert_eq!(bed.shard.queue().counters().dispatched, 0);
    assert_eq!(members(&intent), "0");
}

fn a_part_of_an_intent_ends_before_it_and_with_it(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    submit_with_intent(&mut bed, &Intent::new(), &file, BURST as u64 + 1);
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    let query = Intent::new();
    let (first, second) = (query.child(), query.child());
    let inner = second.child();
    for (intent, count) in [(&query, 1), (&first, 10), (&second, 100), (&inner, 1000)] {
        submit_with_intent(&mut bed, intent, &file, count);
    }
    let mut ended = |intent: &Intent| {
        intent.cancel();
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        pop_cancelled(&mut bed)
    };
    assert_eq!(ended(&first), 10);
    assert!(!query.is_cancelled() && !second.is_cancelled());
    assert_eq!(ended(&query), 1101);
    assert!(second.is_cancelled() && inner.is_cancelled());
    assert!(query.child().is_cancelled() && inner.child().child().is_cancelled());
}

fn an_intent_is_for_files_and_shards_of_all_threads(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    let intent = Intent::new();
    submit_with_intent(&mut bed, &intent, &file, 100);
    let options = FileOptions::new().read(true).write(true);
    let of_threads = bed.scheduler.open(bed.path("data"), &options).unwrap().with_intent(&intent);
    let requests: Vec<_> =
        (0..100).map(|_| of_threads.write_at(&bed.class, filled(BLOCK, 1), 0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut shard =
                    bed.scheduler.disk("disk").unwrap().shard(&config(backend)).unwrap();
                for n in 0..100 {
                    shard.submit_with_intent(&intent, &bed.class, write(&file, n)).unwrap();
                }
                while !shard.is_empty() {
                    shard.run_once(None).unwrap();
                    while shard.pop().is_some() {}
                }
            });
        }
        scope.spawn(|| intent.cancel());
    });
    let cancelled = requests.into_iter().map(|request| request.wait().0);
    let cancelled = cancelled.filter(is_cancelled).count();
    while !bed.shard.is_empty() {
        bed.shard.run_once(None).unwrap();
        pop_cancelled(&mut bed);
    }
    assert!(cancelled >= 100 - BURST, "{cancelled}");
    assert_eq!(members(&intent), "0");
}

fn nothing_stays_under_an_intent_that_has_ended(backend: BackendChoice) {
    let mut bed = Bed::with(RATES, &config(backend));
    let file = bed.file();
    let intent = Intent::new();
    submit_with_intent(&mut bed, &intent, &file, 100);
    for _ in 0..100 {
        assert_eq!(bed.next().result.unwrap(), BLOCK);
    }
    assert_eq!(members(&intent), "0");
    // the same places, under no intent and under one that nobody keeps
    bed.submit(write(&file, 0));
    submit_with_intent(&mut bed, &Intent::new(), &file, 1);
    intent.cancel();
    for _ in 0..2 {
        assert_eq!(bed.next().result.unwrap(), BLOCK);
    }
    let late = Intent::new();
    drop(late.child());
    assert_eq!(members(&late), "0");
    submit_with_intent(&mut bed, &late, &file, 10);
    drop(bed.shard);
    assert_eq!(members(&late), "0");
    late.cancel();
}

#[test]
fn what_the_kernel_has_is_cancelled_with_its_intent() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let mut bed = Bed::with(RATES, &config(BackendChoice::IoUring));
    let (pipe, _writer) = endless();
    let intent = Intent::new();
    for _ in 0..10 {
        let read = Operation::read(pipe.clone(), 0, filled(BLOCK, 0));
        bed.shard.submit_with_intent(&intent, &bed.class, read).map_err(|(e, _)| e).unwrap();
    }
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    let canceller = std::thread::spawn(move || intent.cancel());
    for _ in 0..10 {
        assert!(is_cancelled(&bed.next().result));
    }
    canceller.join().unwrap();
    assert_eq!(bed.disk().in_flight(), Duration::ZERO);
}
