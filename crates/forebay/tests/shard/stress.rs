//! Random operations, cancellations and drops of shards, while classes
//! come and go and figures change: nothing is lost, nothing leaks.
//!
//! `STRESS_ROUNDS=300000` makes it a million rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::engine::{BackendChoice, Operation};
use forebay::shard::{Completion, OperationId, Shard, SubmitError};
use forebay::{BufferPool, Class, DirectFile, Disk, Scheduler};
use rustix::io::Errno;

use crate::fixture::{BLOCK, Bed, config};
use crate::stress_shared::{RATES, Random, any_class, meddle, rounds};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads; random_operations_cancellations_and_drops }

const THREADS: u64 = 3;
/// Blocks of each thread.
const BLOCKS: usize = 64;
const ROUNDS: u64 = 4_000;
const OPERATIONS_MAX: usize = 100;

fn random_operations_cancellations_and_drops(backend: BackendChoice) {
    let bed = Bed::with(RATES, &config(backend));
    let file = bed.file();
    std::fs::write(bed.path("data"), vec![0; THREADS as usize * BLOCKS * BLOCK]).unwrap();
    let pool = BufferPool::new(BLOCK, 1 << 30);
    let (dir, over) = (bed.dir(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| meddle(&bed.scheduler, dir, &over));
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let class = bed.scheduler.add_class(&format!("class {thread}"), 100).unwrap();
                let (scheduler, disk) = (&bed.scheduler, bed.disk());
                let (file, pool) = (&file, &pool);
                scope.spawn(move || {
                    let shard = disk.shard(&config(backend)).unwrap();
                    let random = Random(thread);
                    let first = thread as usize * BLOCKS;
                    let under_way = Vec::new();
                    let place = Place { scheduler, disk, class, file, pool, first };
                    Worker { place, backend, shard, random, under_way }.work();
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    for class in bed.scheduler.classes().into_iter().filter(|class| class.name() != "untagged") {
        bed.scheduler.remove_class(&class).unwrap();
    }
    assert_eq!(bed.disk().in_flight(), Duration::ZERO);
    assert_eq!(pool.taken_bytes(), 0, "buffers are lost");
}

/// Where a thread works.
struct Place<'a> {
    scheduler: &'a Scheduler,
    disk: Disk,
    class: Class,
    file: &'a DirectFile,
    pool: &'a BufferPool,
    /// The first of its blocks.
    first: usize,
}

struct Worker<'a> {
    place: Place<'a>,
    backend: BackendChoice,
    shard: Shard,
    random: Random,
    under_way: Vec<OperationId>,
}

impl Worker<'_> {
    fn work(mut self) {
        for _ in 0..rounds(ROUNDS) {
            match self.random.below(100) {
                0 => self.start_again(),
                1..4 => self.place.class.set_shares(1 + self.random.below(1000) as u32).unwrap(),
                4..16 => self.cancel_one(),
                16..40 => self.turn(),
                _ => self.submit(),
            }
        }
        while !self.shard.is_empty() {
            self.shard.run_once(Some(Duration::from_secs(60))).unwrap();
            self.pop();
        }
        let counters = self.shard.queue().counters();
        assert_eq!((counters.dispatched, counters.in_disk), (counters.completed, 0));
        assert!(self.shard.queue().is_empty() && self.under_way.is_empty());
    }

    /// One to sixteen blocks, some of them in two parts or more.
    fn submit(&mut self) {
        if self.under_way.len() >= OPERATIONS_MAX {
            return self.turn();
        }
        let count = 1 + self.random.below(16);
        let first = self.place.first + self.random.below(BLOCKS - count);
        let buffer = self.place.pool.take(count * BLOCK).unwrap();
        let (file, offset) = (self.place.file.clone(), (first * BLOCK) as u64);
        let operation = match self.random.below(20) {
            0 => Operation::SyncData { file },
            1..10 => Operation::write(file, offset, buffer),
            _ => Operation::read(file, offset, buffer),
        };
        let class = any_class(self.place.scheduler, &self.place.class, &mut self.random);
        match self.shard.submit(&class, operation) {
            Ok(id) => self.under_way.push(id),
            Err((error, _)) => assert_eq!(error, SubmitError::ClassRemoved),
        }
    }

    fn turn(&mut self) {
        let timeout = Duration::from_micros(self.random.below(2) as u64 * 200);
        self.shard.run_once(Some(timeout)).unwrap();
        self.pop();
    }

    fn pop(&mut self) {
        while let Some(Completion { id, result, operation, .. }) = self.shard.pop() {
            let place = self.under_way.iter().position(|other| *other == id).unwrap();
            self.under_way.swap_remove(place);
            let len = operation.transfer_len();
            match result {
                // What was cancelled in the middle has the part before.
                Ok(done) => assert!(done <= len && done % BLOCK == 0, "{done} of {len}"),
                Err(error) => assert_eq!(Errno::from_io_error(&error), Some(Errno::CANCELED)),
            }
        }
    }

    fn cancel_one(&mut self) {
        if !self.under_way.is_empty() {
            let id = self.under_way[self.random.below(self.under_way.len())];
            self.shard.cancel(id);
        }
    }

    /// Drops the shard with all that it has, and makes another.
    fn start_again(&mut self) {
        self.under_way.clear();
        self.shard = self.place.disk.shard(&config(self.backend)).unwrap();
    }
}
