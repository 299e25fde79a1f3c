//! Every public method of what has state, in a forked child whose parent's threads hold locks.

use std::fs::File as StdFile;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use forebay::engine::{Engine, EngineConfig, EngineWaker};
use forebay::properties::Properties;
use forebay::shard::Shard;
use forebay::{
    AlignedBuf, BufResult, BufferPool, BufferedWriter, Class, ClassGroup, Deleter, DeleterOptions,
    Deletion, Disk, File, FileOptions, Limits, Op, Permit, Request, Scheduler, ThreadPermit,
};
use tempfile::TempDir;

use super::methods::METHODS;

pub(crate) const LEN: u64 = 4096;
const PROPERTIES: &str = "disks:\n  - mountpoint: /\n    read_iops: 1000\n    write_iops: 1000\n    \
                          read_bandwidth: 100000000\n    write_bandwidth: 100000000\n";

/// One of each. What a method takes is taken in each child again.
pub(crate) struct Handles {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) scheduler: Scheduler,
    pub(crate) disk: Disk,
    pub(crate) class: Class,
    pub(crate) group: ClassGroup,
    pub(crate) std_file: Arc<StdFile>,
    pub(crate) writer: BufferedWriter<Arc<StdFile>>,
    pub(crate) taken_writer: Option<BufferedWriter<Arc<StdFile>>>,
    /// Used by threads of the parent.
    pub(crate) busy_writer: Arc<BufferedWriter<StdFile>>,
    pub(crate) file: File,
    pub(crate) requests: Vec<Request<BufResult<AlignedBuf>>>,
    pub(crate) shard: Shard,
    pub(crate) engine: Engine,
    pub(crate) engine_waker: EngineWaker,
    pub(crate) deleter: Deleter,
    pub(crate) deletion: Deletion,
    pub(crate) permits: Vec<Permit>,
    pub(crate) thread_permits: Vec<ThreadPermit<'static>>,
    pub(crate) pool: BufferPool,
    pub(crate) properties: Properties,
}

pub(crate) fn buffer() -> AlignedBuf {
    AlignedBuf::new(LEN as usize, LEN as usize).unwrap()
}

pub(crate) fn options() -> FileOptions {
    FileOptions::new().read(true).write(true).create(true)
}

impl Handles {
    fn new() -> Self {
        let dir = Arc::new(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        let scheduler = Scheduler::builder().build().unwrap();
        let group = scheduler.add_class_group("group", 100).unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let std_file = Arc::new(StdFile::create(dir.path().join("std")).unwrap());
        let writer = || class.buffered_writer(Arc::clone(&std_file)).unwrap();
        let busy = StdFile::create(dir.path().join("busy")).unwrap();
        let busy_writer = Arc::new(class.buffered_writer(busy).unwrap());
        let file = scheduler.open(dir.path().join("data"), &options()).unwrap();
        let engine = Engine::new(&EngineConfig::default()).unwrap();
        let deleter = Deleter::new(&class, DeleterOptions::new()).unwrap();
        let disk = scheduler.default_disk();
        let admit = || scheduler.admit(Op::Read, LEN).unwrap();
        Self {
            writer: writer(),
            taken_writer: Some(writer()),
            requests: (0..8).map(|_| file.write_at(&class, buffer(), 0)).collect(),
            permits: (0..8).map(|_| admit().detach()).collect(),
            thread_permits: (0..8).map(|_| admit()).collect(),
            shard: disk.shard(&EngineConfig::default()).unwrap(),
            engine_waker: engine.waker(),
            deletion: deleter.delete(dir.path().join("nothing")),
            pool: BufferPool::new(LEN as usize, 1 << 20),
            properties: Properties::parse("test", PROPERTIES).unwrap(),
            busy_writer,
            disk,
            std_file,
            file,
            engine,
            deleter,
            scheduler,
            class,
            group,
            dir,
        }
    }

    /// The work that the parent's other threads repeat.
    fn work(&self) -> [Box<dyn FnMut() + Send>; 4] {
        let writer = Arc::clone(&self.busy_writer);
        let (class, file, pool) = (self.class.clone(), self.file.clone(), self.pool.clone());
        let (scheduler, deleter) = (self.scheduler.clone(), self.deleter.clone());
        let group = self.group.clone();
        let mut at = 0;
        [
            Box::new(move || {
                at = (at + 64) % (1 << 20);
                writer.write_at(&[7; 64], at).unwrap();
                let _ = (writer.dirty(), writer.write_back());
            }),
            Box::new(move || {
                drop((class.admit(Op::Read, LEN).unwrap(), pool.take(1).unwrap()));
                drop(file.write_at(&class, buffer(), 0).wait());
            }),
            Box::new(move || {
                drop((scheduler.snapshot(), scheduler.disks(), deleter.snapshot()));
                group.set_shares(100).unwrap();
            }),
            {
                let (class, deleter) = (self.class.clone(), self.deleter.clone());
                let path = self.dir.path().join("nothing");
                Box::new(move || {
                    drop(deleter.delete(&path).wait());
                    class.set_limits(&Limits::default()).unwrap();
                })
            },
        ]
    }
}

/// Runs `work` in a child; what it says if that is not nothing.
fn in_child(mut work: impl FnMut() -> u8) -> Result<u8, String> {
    // SAFETY: the child does what the test is about, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let failed = catch_unwind(AssertUnwindSafe(&mut work)).unwrap_or(255);
        // SAFETY: ends the child without what its parent does at its end.
        unsafe { libc::_exit(i32::from(failed)) }
    }
    let begin = Instant::now();
    let mut status = 0;
    // SAFETY: waits for a child of this process, into a number of its own.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } != child {
        if begin.elapsed() > Duration::from_secs(20) {
            // SAFETY: ends that child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return Err(String::from("hangs"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let code = libc::WEXITSTATUS(status) as u8;
    libc::WIFEXITED(status).then_some(code).ok_or_else(|| format!("ended with status {status}"))
}

#[test]
fn a_child_is_refused_by_every_method_and_waits_for_none_of_its_parents_locks() {
    let _forks = super::FORKS.write().unwrap_or_else(PoisonError::into_inner);
    let mut handles = Handles::new();
    let over = AtomicBool::new(false);
    let failed = thread::scope(|scope| {
        for mut work in handles.work() {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let mut failed = Vec::new();
        for _ in 0..10 {
            for &(name, method) in METHODS {
                match in_child(|| u8::from(!method(&mut handles))) {
                    Ok(0) => {}
                    Ok(code) => failed.push(format!("{name}: {code}")),
                    Err(end) => failed.push(format!("{name} {end}")),
                }
            }
            if !failed.is_empty() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_child_that_drops_everything_leaves_its_parents_as_it_is() {
    let _forks = super::FORKS.write().unwrap_or_else(PoisonError::into_inner);
    let handles = Handles::new();
    // The directory stays.
    let _dir = Arc::clone(&handles.dir);
    for _ in 0..20 {
        let dropped = in_child(|| {
            // SAFETY: the child's copy is not used after this, as the child ends.
            drop(unsafe { std::ptr::read(&raw const handles) });
            0
        });
        assert_eq!(dropped, Ok(0));
    }
    handles.busy_writer.write_at(&[7], 0).unwrap();
    handles.busy_writer.sync_data().unwrap();
    assert!(handles.dir.path().exists());
}
