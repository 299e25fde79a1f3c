//! Every public future, waiting.

use std::fs::{self, File};
use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use forebay::{
    AlignedBuf, BufferedWriter, Class, Deleter, DeleterOptions, Deletion, DiskConfig, DiskRates,
    FileOptions, Limits, Op, Scheduler,
};
use tempfile::TempDir;

const FAST: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

pub(crate) const MIB: u64 = 1 << 20;

/// One that can be sent to any thread: this compiles for no other.
pub(crate) type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A disk, a class that is let through nothing for a minute, and another one that is.
pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    pub(crate) scheduler: Scheduler,
    pub(crate) stopped: Class,
    pub(crate) free: Class,
    pub(crate) writer: Arc<BufferedWriter<File>>,
    kept: Mutex<Vec<Arc<Vec<Deletion>>>>,
}

impl Bed {
    pub(crate) fn new() -> Arc<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
        let scheduler = Scheduler::builder().disk(disk).build().unwrap();
        let free = scheduler.add_class("free", 100).unwrap();
        let stopped = scheduler.add_class("stopped", 100).unwrap();
        let file = File::create(dir.path().join("stopped")).unwrap();
        let writer = Arc::new(stopped.buffered_writer(file).unwrap().with_dirty_max(MIB));
        let limit = Some(MIB / 64);
        stopped.set_limits(&Limits { bytes_per_second: limit, ..Limits::default() }).unwrap();
        drop(stopped.admit(Op::Write, MIB).unwrap());
        let mut written = 0;
        while written < MIB {
            written += writer.write_at(&vec![7; (MIB - written) as usize], written).unwrap() as u64;
        }
        Arc::new(Self { dir, scheduler, stopped, free, writer, kept: Mutex::default() })
    }

    /// From now on all get on.
    pub(crate) fn go_on(&self) {
        self.stopped.set_limits(&Limits::default()).unwrap();
    }

    /// A file of 1 MiB that is on the disk, in a directory of its own.
    fn file(&self, name: &str) -> PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        let path = dir.join("file");
        fs::write(&path, vec![7; MIB as usize]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        path
    }

    /// Deletions of which the last are not removed before others are freed: a deleter keeps
    /// no more than 64 directories open.
    pub(crate) fn deletions(&self) -> Vec<Deletion> {
        let options = DeleterOptions::new().always_in_steps(true).free_bytes_min(Some(0));
        let deleter = Deleter::new(&self.stopped, options).unwrap();
        (0..70).map(|n| deleter.delete(self.file(&format!("directory-{n}")))).collect()
    }
}

/// A public future by its name, and how one that waits is made.
type Waits = (&'static str, fn(&Arc<Bed>) -> Waiting);

/// Each in a bed of its own, by the name that it has in the sources: a type, or a function that is
/// `async`.
pub(crate) const FUTURES: &[Waits] = &[
    ("AdmitFuture", |bed| ends(bed.stopped.admit_async(Op::Read, MIB))),
    ("AdmitMany", |bed| {
        let class = bed.stopped.clone();
        Box::pin(async move { drop(class.admit_many(&[(Op::Read, MIB); 3]).await.unwrap()) })
    }),
    ("AdmitFor", |bed| {
        let target = File::open(bed.dir.path().join("stopped")).unwrap();
        ends(bed.stopped.admit_for(&target, Op::Read, MIB).into_future())
    }),
    ("AdmitForFuture", |bed| {
        let disk = bed.scheduler.disk("disk").unwrap();
        let class = bed.stopped.clone();
        Box::pin(async move { drop(class.admit_for(&disk, Op::Read, MIB).await.unwrap()) })
    }),
    ("Class::scope", |bed| {
        let (scheduler, class) = (bed.scheduler.clone(), bed.stopped.clone());
        Box::pin(class.scope(async move { drop(scheduler.admit_async(Op::Read, MIB).await) }))
    }),
    ("Request", |bed| {
        let options = FileOptions::new().read(true).write(true).create(true);
        let file = bed.scheduler.open(bed.dir.path().join("request"), &options).unwrap();
        let buffer = AlignedBuf::new(4096, 4096).unwrap();
        let request = file.write_at(&bed.stopped, buffer, 0);
        Box::pin(async move { assert_eq!(request.await.0.unwrap(), 4096) })
    }),
    ("BufferedWriter::write_at_async", |bed| {
        let writer = Arc::clone(&bed.writer);
        Box::pin(async move { _ = writer.write_at_async(&[7; 8192], 2 * MIB).await.unwrap() })
    }),
    ("BufferedWriter::sync_data_async", |bed| {
        let writer = Arc::clone(&bed.writer);
        Box::pin(async move { writer.sync_data_async().await.unwrap() })
    }),
    ("BufferedWriter::sync_all_async", |bed| {
        let writer = Arc::clone(&bed.writer);
        Box::pin(async move { writer.sync_all_async().await.unwrap() })
    }),
    ("Deletion", |bed| {
        let mut deletions = bed.deletions();
        let last = deletions.pop().unwrap();
        Box::pin(async move { drop((last.await.unwrap(), deletions)) })
    }),
    ("Deletion::removed", |bed| {
        // Kept: the deletion outlives the future.
        let deletions = Arc::new(bed.deletions());
        bed.kept.lock().unwrap().push(Arc::clone(&deletions));
        Box::pin(async move { deletions[69].removed().await.unwrap() })
    }),
];

fn ends<T, E: std::fmt::Debug>(
    future: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Waiting {
    Box::pin(async move { drop(future.await.unwrap()) })
}

#[test]
fn each_waits_and_gets_on() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, future) in FUTURES {
        let bed = Bed::new();
        let mut future = future(&bed);
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending(), "{name} does not wait");
        bed.go_on();
        smol::block_on(future);
    }
}

/// Keeps count of its clones.
struct CountingWaker;

impl std::task::Wake for CountingWaker {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_future_that_is_dropped_takes_its_waker_out() {
    let _no_forks = super::FORKS.read().unwrap_or_else(PoisonError::into_inner);
    for (name, future) in FUTURES {
        let bed = Bed::new();
        let mut future = future(&bed);
        let counted = Arc::new(CountingWaker);
        let waker = Waker::from(Arc::clone(&counted));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(Arc::strong_count(&counted) > 2, "{name} keeps no waker");
        drop(future);
        assert_eq!(Arc::strong_count(&counted), 2, "{name} leaves its waker behind");
        bed.go_on();
    }
}
