//! Random operations, random drops, while classes come and go and figures
//! change: nothing is lost, nothing leaks, the data is right.
//!
//! `STRESS_ROUNDS=60000` makes it a million operations.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay::engine::BackendChoice;
use forebay::{BufResult, BufferPool, Class, File, Request, Scheduler};

use crate::fixture::{BLOCK, Bed};
use crate::stress_shared::{RATES, Random, any_class, meddle, rounds};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads; random_operations_and_drops }

const THREADS: u64 = 4;
const BLOCKS: usize = 64;
const ROUNDS: u64 = 2_000;

fn random_operations_and_drops(backend: BackendChoice) {
    let bed = Bed::with(backend, RATES, 2);
    let pool = BufferPool::new(BLOCK, 1 << 30);
    let file = bed.file();
    file.truncate(&bed.class, THREADS * (BLOCKS * BLOCK) as u64).wait().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| meddle(&bed.scheduler, bed.dir(), &over));
        let start = |thread: u64| {
            let class = bed.scheduler.add_class(&format!("class {thread}"), 100).unwrap();
            let worker = Worker {
                scheduler: bed.scheduler.clone(),
                file: file.clone(),
                class,
                pool: pool.clone(),
                random: Random(thread),
                first: thread as usize * BLOCKS,
                written: [Some(0); BLOCKS],
            };
            scope.spawn(move || worker.work())
        };
        let workers: Vec<_> = (0..THREADS).map(start).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        over.store(true, Ordering::Relaxed);
    });
    drop(file);
    // The last handles: the I/O threads end, and give everything back.
    let disk = bed.disk();
    for class in bed.scheduler.classes() {
        while class.name() != "untagged" && bed.scheduler.remove_class(&class).is_err() {
            std::thread::yield_now();
        }
    }
    drop((bed, disk));
    assert_eq!(pool.taken_bytes(), 0, "buffers are lost");
}

/// A thread with blocks of its own; each holds a version, as far as is known.
struct Worker {
    scheduler: Scheduler,
    file: File,
    class: Class,
    pool: BufferPool,
    random: Random,
    first: usize,
    /// `None` after a write whose outcome nobody waited for.
    written: [Option<u64>; BLOCKS],
}

impl Worker {
    fn work(mut self) {
        for round in 1..=rounds(ROUNDS) {
            match self.random.below(10) {
                0 => self.class.set_shares(1 + self.random.below(1000) as u32).unwrap(),
                1 => self.drop_reads(),
                2 => self.drop_write(round),
                3..7 => self.write(round),
                _ => self.read(),
            }
        }
    }

    fn offset(&self, block: usize) -> u64 {
        ((self.first + block) * BLOCK) as u64
    }

    /// One to eight blocks: where they begin, and how many.
    fn range(&mut self) -> (usize, usize) {
        let count = 1 + self.random.below(8);
        (self.random.below(BLOCKS - count), count)
    }

    fn start_write(&mut self, block: usize, count: usize, version: u64) -> Writing {
        let mut buffer = self.pool.take(count * BLOCK).unwrap();
        for (n, bytes) in buffer.chunks_mut(BLOCK).enumerate() {
            stamp(bytes, self.first + block + n, version);
        }
        self.file.write_at(&self.class, buffer, self.offset(block))
    }

    fn write(&mut self, version: u64) {
        let (block, count) = self.range();
        let BufResult(result, _) = self.start_write(block, count, version).wait();
        assert_eq!(result.unwrap(), count * BLOCK);
        self.written[block..block + count].fill(Some(version));
    }

    fn read(&mut self) {
        let (block, count) = self.range();
        let buffer = self.pool.take(count * BLOCK).unwrap();
        let read = self.file.read_at(&self.class, buffer, self.offset(block)).wait();
        let (len, buffer) = read.into_result().unwrap();
        assert_eq!(len, count * BLOCK);
        for (n, bytes) in buffer.chunks(BLOCK).enumerate() {
            if let Some(version) = self.written[block + n] {
                assert!(is_stamped(bytes, self.first + block + n, version));
            }
        }
    }

    fn drop_reads(&mut self) {
        let reads: Vec<_> = (0..self.random.below(20))
            .map(|_| {
                let (block, count) = self.range();
                let buffer = self.pool.take(count * BLOCK).unwrap();
                let class = any_class(&self.scheduler, &self.class, &mut self.random);
                self.file.read_at(&class, buffer, self.offset(block))
            })
            .collect();
        for read in reads {
            if self.random.below(2) == 0
                && let BufResult(Err(error), buffer) = read.wait()
            {
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
                assert!(error.to_string().contains("was removed"), "{error}");
                assert!(!buffer.is_empty());
            }
        }
    }

    /// It may happen, now or later: so nothing is written there afterwards, as
    /// it could come first.
    fn drop_write(&mut self, version: u64) {
        let block = BLOCKS - 1;
        self.written[block] = None;
        drop(self.start_write(block, 1, version));
    }
}

type Writing = Request<BufResult<forebay::AlignedBuf>>;

fn stamp(bytes: &mut [u8], block: usize, version: u64) {
    for pair in bytes.chunks_exact_mut(16) {
        pair[..8].copy_from_slice(&(block as u64).to_ne_bytes());
        pair[8..].copy_from_slice(&version.to_ne_bytes());
    }
}

/// Of version 0 there are zeros.
fn is_stamped(bytes: &[u8], block: usize, version: u64) -> bool {
    let mut expected = vec![0; bytes.len()];
    if version > 0 {
        stamp(&mut expected, block, version);
    }
    bytes == expected
}
