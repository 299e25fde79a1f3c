//! A real disk, served through FUSE, of which ranges fail or hang.
//!
//! These tests need `/dev/fuse` and the right to mount. Where that is missing
//! they say so and pass, but for root in CI, where they fail.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, EngineConfig};
use forebay::{BufResult, Class, DiskConfig, DiskRates, File, FileOptions, Op, Scheduler};
use forebay_serve::{ServeConfig, Served};
use forebay_sim::disk::{Answer, Command, Finished, SimDisk};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::bed::{BLOCK, engine, filled};

tests_of! { IoUring io_uring, Threads threads;
    a_bad_range_fails_and_the_rest_goes_on,
    a_range_that_hangs_leaves_the_rest_its_rate,
    a_disk_that_hangs_holds_nobody,
}

const RATES: DiskRates = DiskRates {
    read_iops: 2_000,
    write_iops: 2_000,
    read_bandwidth: 100_000_000,
    write_bandwidth: 100_000_000,
};
const CAPACITY: u64 = 64 << 20;
const FAILS: Range<u64> = 8 << 20..9 << 20;
const HANGS: Range<u64> = 16 << 20..17 << 20;

/// Serves a request in 300 us, eight at once.
#[derive(Default)]
struct Disk {
    /// Everything hangs.
    all_hang: bool,
    under_way: VecDeque<Finished>,
    free_at: [forebay_core::Time; 8],
}

impl SimDisk for Disk {
    fn submit(&mut self, now: forebay_core::Time, id: u64, command: Command) {
        let is_transfer = matches!(command.op, Op::Read | Op::Write);
        if is_transfer && (self.all_hang || HANGS.contains(&command.offset)) {
            return;
        }
        let failed = is_transfer && FAILS.contains(&command.offset);
        let Some(server) = self.free_at.iter_mut().min() else { return };
        *server = (*server).max(now).plus_nanos(300_000);
        let answer = if failed { Answer::Failed } else { Answer::Done };
        let place = self.under_way.partition_point(|other| other.at <= *server);
        self.under_way.insert(place, Finished { id, at: *server, answer });
    }

    fn poll_finished(&mut self, now: forebay_core::Time) -> Option<Finished> {
        self.under_way.pop_front_if(|first| first.at <= now)
    }

    fn next_event(&self) -> Option<forebay_core::Time> {
        self.under_way.front().map(|first| first.at)
    }

    fn rates(&self) -> DiskRates {
        RATES
    }

    fn base_latency(&self) -> Duration {
        Duration::from_micros(300)
    }
}

/// A scheduler with the served disk. The disk goes first, so that what hangs
/// in it ends.
struct Bench {
    file: File,
    class: Class,
    scheduler: Scheduler,
    _served: Served,
    _mountpoint: TempDir,
}

impl Bench {
    /// Says why this system cannot.
    fn new(backend: BackendChoice, disk: Disk) -> Option<Self> {
        let mountpoint = TempDir::new().unwrap();
        let served =
            match Served::mount(Box::new(disk), &ServeConfig::new(CAPACITY), mountpoint.path()) {
                Ok(served) => served,
                Err(error) => {
                    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
                    assert!(!(in_ci && rustix::process::geteuid().is_root()), "{error}");
                    eprintln!("skipped: {error}");
                    return None;
                }
            };
        let config = DiskConfig::new("served", RATES).mountpoint(mountpoint.path());
        let drop_wait_max = Duration::from_millis(100);
        let engine = EngineConfig { depth_max: 1024, drop_wait_max, ..engine(backend) };
        let scheduler = Scheduler::builder().disk(config).engine(engine).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let file =
            scheduler.open(served.path(), &FileOptions::new().read(true).write(true)).unwrap();
        Some(Self { file, class, scheduler, _served: served, _mountpoint: mountpoint })
    }

    /// Reads per second, eight at once, in that time.
    fn rate(&self, time: Duration) -> f64 {
        let start = Instant::now();
        let read =
            |n: u64| self.file.read_at(&self.class, filled(BLOCK, 0), n % 100 * BLOCK as u64);
        let mut requests: VecDeque<_> = (0..8).map(read).collect();
        let mut done = 0;
        while start.elapsed() < time {
            let Some(first) = requests.pop_front() else { break };
            assert_eq!(first.wait().into_result().unwrap().0, BLOCK);
            done += 1;
            requests.push_back(read(done));
        }
        done as f64 / start.elapsed().as_secs_f64()
    }
}

fn a_bad_range_fails_and_the_rest_goes_on(backend: BackendChoice) {
    let Some(bench) = Bench::new(backend, Disk::default()) else { return };
    let BufResult(result, _) =
        bench.file.read_at(&bench.class, filled(BLOCK, 0), FAILS.start).wait();
    assert_eq!(Errno::from_io_error(&result.unwrap_err()), Some(Errno::IO));
    // Of a large read there is what comes before the bad range.
    let before = 256 << 10;
    let offset = FAILS.start - before;
    let BufResult(result, buffer) =
        bench.file.read_at(&bench.class, filled(1 << 20, 1), offset).wait();
    assert_eq!((result.unwrap() as u64, buffer.len()), (before, 1 << 20));
    assert!(bench.rate(Duration::from_millis(50)) > 0.0);
    // What was dropped there ends as well.
    while bench.scheduler.disk("served").unwrap().in_flight() > Duration::ZERO {
        std::thread::yield_now();
    }
}

fn a_range_that_hangs_leaves_the_rest_its_rate(backend: BackendChoice) {
    const WINDOW: Duration = Duration::from_millis(200);
    let Some(bench) = Bench::new(backend, Disk::default()) else { return };
    let mut best = 0.0;
    // The machine may be busy with something else: a few attempts. Each leaves
    // a read that hangs.
    for attempt in 0..5 {
        let before = bench.rate(WINDOW);
        let offset = HANGS.start + attempt * BLOCK as u64;
        let _hanging = bench.file.read_at(&bench.class, filled(BLOCK, 0), offset);
        bench.rate(WINDOW);
        best = f64::max(best, bench.rate(WINDOW) / before);
        if best >= 0.9 {
            return;
        }
    }
    panic!("{best:.2} of the rate 200 ms after a request hangs");
}

fn a_disk_that_hangs_holds_nobody(backend: BackendChoice) {
    let Some(bench) = Bench::new(backend, Disk { all_hang: true, ..Disk::default() }) else {
        return;
    };
    let read = |n: u64| bench.file.read_at(&bench.class, filled(BLOCK, 0), n * BLOCK as u64);
    let requests: Vec<_> = (0..500).map(read).collect();
    // Another disk of the same scheduler.
    let other = TempDir::new().unwrap();
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = bench.scheduler.default_disk().open(other.path().join("a"), &options).unwrap();
    let class = bench.class.on(file.disk()).unwrap();
    for n in 0..200 {
        let write = file.write_at(&class, filled(BLOCK, 1), n * BLOCK as u64);
        assert_eq!(write.wait().into_result().unwrap().0, BLOCK);
    }
    // This ends: what waits is dropped, what hangs is left behind.
    drop(requests);
    let Bench { file: hanging, class: of_hanging, scheduler, .. } = bench;
    drop((hanging, of_hanging, scheduler, file, class));
}
