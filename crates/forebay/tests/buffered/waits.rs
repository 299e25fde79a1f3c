//! Writes and flushes that could wait for ever.

use std::fs::File;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use forebay::{AlignedBuf, Class, Control, DiskConfig, DiskRates, FileOptions, Op, Scheduler};

use crate::{Bed, FAST, MIB, pattern};

/// A disk on which there are no permits: the only queue that it may have is that of an I/O thread.
fn without_permits() -> (tempfile::TempDir, Scheduler) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // its parts are of 1 MiB
    let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path()).control(Control::Rates);
    let scheduler = Scheduler::builder().disk(disk).shards_max(1).build().unwrap();
    let options = FileOptions::new().write(true).create(true);
    let file = scheduler.open(dir.path().join("other"), &options).unwrap();
    let class = scheduler.default_class();
    file.write_at(&class, AlignedBuf::new(4096, 4096).unwrap(), 0).wait().0.unwrap();
    (dir, scheduler)
}

#[test]
fn a_write_where_there_are_no_permits_goes_on_or_fails_and_does_not_wait() {
    let (dir, scheduler) = without_permits();
    let class = scheduler.add_class("class", 100).unwrap();
    let new = |name: &str| class.buffered_writer(File::create(dir.path().join(name)).unwrap());
    // The class is full of what makes no part of this file.
    let pending = new("pending").unwrap().with_dirty_max(128 * MIB);
    let piece = pattern((1 << 20) - 4096);
    for n in 0..63 {
        pending.write_all_at(&piece, n * MIB).unwrap();
    }
    for bound in [4096, MIB, 16 * MIB] {
        let writer = new("data").unwrap().with_dirty_max(bound);
        let failed = (0..32).filter(|n| writer.write_all_at(&piece, n * MIB).is_err()).count();
        assert!(failed > 0, "nobody was told");
        let refused = writer.sync_data().unwrap_err();
        assert!(refused.to_string().contains("SchedulerBuilder::shards_max"), "{refused}");
    }
    drop(pending);
    let left = class.page_cache_counters().left_to_kernel;
    assert!(left >= 63 * (MIB - 4096), "nobody but the kernel writes it: {left}");
}

#[test]
fn a_flush_of_a_holder_waits_for_no_part_that_waits_for_the_holder() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    for parts in [1, 17, 40] {
        // More than the window.
        let held = bed.class.admit(Op::Read, 512 << 20).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for part in 0..parts {
                    writer.write_all_at(&[7; 4096], part * 2 * MIB).unwrap();
                }
                writer.write_back().unwrap();
            });
        });
        assert!(writer.dirty() > 0, "its parts wait for the holder");
        writer.sync_data().unwrap();
        drop(held);
        // A permit that is waited for by its holder is given up after a while.
        assert_eq!(bed.class.permit_counters().overdue, 0, "{parts} parts");
    }
}

#[test]
fn a_holder_whose_permits_fill_the_queue_goes_on_without_one() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for places in [1, 2] {
        let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
        let scheduler = Scheduler::builder().disk(disk).requests_max(places).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let path = dir.path().join("data");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.unwrap();
        let writer = class.buffered_writer(&file).unwrap().with_dirty_max(8192);
        let held: Vec<_> = (0..places).map(|_| class.admit(Op::Read, 4096).unwrap()).collect();
        for n in 0..10 {
            writer.write_all_at(&[7; 8192], n * 8192).unwrap();
        }
        writer.sync_data().unwrap();
        class.sync_data(&file).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        assert_eq!(class.read_at(&file, &mut [0; 8192], 0).unwrap(), 8192);
        assert_eq!(writer.dirty(), 0);
        drop(held);
    }
}

/// A waker of others that waits for a lock, and the threads that ran it.
#[derive(Default)]
struct Locks {
    lock: Mutex<u32>,
    ran_on: Mutex<Vec<ThreadId>>,
}

impl Wake for Locks {
    fn wake(self: Arc<Self>) {
        self.ran_on.lock().unwrap().push(thread::current().id());
        *self.lock.lock().unwrap() += 1;
    }
}

/// Whether a flush ends while wakers wait for a lock that is held until then; `None` where the
/// thread that flushes ran one of them itself, which nothing helps.
fn ends_with_blocked_wakers() -> Option<bool> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let slow = DiskRates {
        read_iops: 500,
        write_iops: 500,
        read_bandwidth: 40_000_000,
        write_bandwidth: 40_000_000,
    };
    let disk = DiskConfig::new("disk", slow).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).build().unwrap();
    let disk = scheduler.disk("disk").unwrap();
    let [flushes, other] =
        ["flushes", "other"].map(|name| scheduler.add_class(name, 100).unwrap().on(&disk).unwrap());
    let writer = flushes.buffered_writer(File::create(dir.path().join("data")).unwrap()).unwrap();
    writer.write_all_at(&pattern(8 << 20), 0).unwrap();
    let locks = Arc::new(Locks::default());
    let waker = Waker::from(Arc::clone(&locks));
    // As many as there may be threads that run such wakers.
    let mut tasks: Vec<_> = (0..3).map(|_| Box::pin(other.admit_async(Op::Read, 65_536))).collect();
    // not under the lock: a poll may wake a task that was polled before
    for task in &mut tasks {
        _ = task.as_mut().poll(&mut Context::from_waker(&waker));
    }
    let guard = locks.lock.lock().unwrap();
    let flush = thread::spawn(move || writer.sync_data());
    let began = Instant::now();
    let ran_itself = || locks.ran_on.lock().unwrap().contains(&flush.thread().id());
    while !flush.is_finished() && !ran_itself() && began.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
    let (ends, is_own) = (flush.is_finished(), ran_itself());
    drop(guard);
    flush.join().unwrap().unwrap();
    drop(tasks);
    (!is_own).then_some(ends)
}

#[test]
fn a_waker_that_blocks_keeps_no_flush_from_its_permits() {
    let tried = (0..20).find_map(|_| ends_with_blocked_wakers());
    assert_eq!(tried, Some(true));
}

/// A waker whose drop calls the library.
struct CallsInDrop(Class, Arc<AtomicUsize>);

impl Wake for CallsInDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for CallsInDrop {
    fn drop(&mut self) {
        self.0.permit_counters();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn wakers_of_what_waits_for_a_place_are_dropped_without_a_lock() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).requests_max(1).build().unwrap();
    let disk = scheduler.disk("disk").unwrap();
    let class = scheduler.add_class("class", 100).unwrap().on(&disk).unwrap();
    let writer = class.buffered_writer(File::create(dir.path().join("data")).unwrap()).unwrap();
    let drops = Arc::default();
    for rounds in 1..=20 {
        let held = class.admit(Op::Read, 4096).unwrap().detach();
        let mut flush = Box::pin(writer.sync_data_async());
        let mut poll = || {
            let waker = Waker::from(Arc::new(CallsInDrop(class.clone(), Arc::clone(&drops))));
            flush.as_mut().poll(&mut Context::from_waker(&waker))
        };
        assert!(poll().is_pending() && poll().is_pending());
        drop(held);
        let begin = Instant::now();
        while poll().is_pending() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not end");
            thread::yield_now();
        }
        assert!(drops.load(Ordering::SeqCst) >= 3 * rounds);
    }
}
