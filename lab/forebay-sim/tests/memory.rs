//! How much memory a run takes does not depend on how long it is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forebay_config::Source;
use forebay_load::job_file::JobFile;
use forebay_sim::simulation::{Simulation, SimulationConfig, TRACE_BUCKETS_DEFAULT};
use forebay_sim::spec::DiskSpec;

/// Counts the bytes in use, and the most of them at once.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is that of `GlobalAlloc::alloc`.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is that of `GlobalAlloc::dealloc`.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const JOBS: &str = "
- {name: reads, type: randread, shards: all, shard_info: {parallelism: 20, rps: 50},
   options: {pause_distribution: poisson}}
- {name: bulk, type: overwrite, shards: all, shard_info: {parallelism: 32, reqsize: 1MB}}
- {name: log, type: append, shards: [0], shard_info: {parallelism: 2, reqsize: 16kB, rps: 100},
   options: {fsync_every: 4}}
- {name: removals, type: unlink, shards: [1], files_count: 16,
   shard_info: {parallelism: 1, rps: 100}}
";

/// Bytes at the most while `millis` of the load run, and the requests done.
fn peak(millis: u64) -> (usize, u64) {
    let jobs = JobFile::parse(&Source::new("jobs.yaml", JOBS), None, 2).unwrap();
    let disk = DiskSpec::resolve("samsung-850-pro").unwrap().build(1);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let config = SimulationConfig {
        duration: Duration::from_millis(millis),
        trace_buckets: Some(TRACE_BUCKETS_DEFAULT),
        ..SimulationConfig::new(jobs, disk)
    };
    let requests = Simulation::new(config).unwrap().run().unwrap().requests;
    (PEAK.load(Ordering::Relaxed) - before, requests)
}

#[test]
fn a_long_run_takes_no_more_memory_than_a_short_one() {
    let (short, few) = peak(2_000);
    let (long, many) = peak(40_000);
    assert!(many > 10 * few, "{few} and {many} requests");
    // what waits at the worst moment is more in more moments; a table doubles
    assert!(long < short + short / 10, "{short} and {long} bytes");
}
