//! What the scheduler calls of others', it calls without a lock held, and where
//! nobody waits for it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::engine::Operation;
use forebay::properties::Properties;
use forebay::{
    AdmitFuture, AlignedBuf, BufResult, Class, DirectFile, Disk, DiskConfig, DiskRates, File,
    FileOptions, Limits, Op, Scheduler,
};
use log::{Level, LevelFilter, Log, Metadata, Record};
use tempfile::TempDir;

const BLOCK: usize = 4096;

type Act = Arc<dyn Fn(&Record<'_>) + Send + Sync>;

/// Does what a test says.
struct Logger {
    act: Mutex<Option<Act>>,
    warnings: AtomicUsize,
    one_at_a_time: Mutex<()>,
}

static LOGGER: Logger =
    Logger { act: Mutex::new(None), warnings: AtomicUsize::new(0), one_at_a_time: Mutex::new(()) };

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() == Level::Warn {
            self.warnings.fetch_add(1, Ordering::SeqCst);
        }
        let act = self.act.lock().unwrap().clone();
        if let Some(act) = act {
            act(record);
        }
    }

    fn flush(&self) {}
}

/// The log of one test at a time.
struct TheLog {
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl TheLog {
    fn take() -> Self {
        let guard = LOGGER.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = log::set_logger(&LOGGER);
        log::set_max_level(LevelFilter::Info);
        Self { _one_at_a_time: guard }
    }

    /// From now on the log does this.
    fn does(&self, act: impl Fn(&Record<'_>) + Send + Sync + 'static) {
        LOGGER.warnings.store(0, Ordering::SeqCst);
        *LOGGER.act.lock().unwrap() = Some(Arc::new(act));
    }
}

impl Drop for TheLog {
    fn drop(&mut self) {
        *LOGGER.act.lock().unwrap() = None;
    }
}

/// Fails if it takes a minute.
fn ends<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, ended) = channel();
    thread::spawn(move || done.send(work()).unwrap());
    ended.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} does not end"))
}

/// A directory, as a disk of a scheduler.
struct Bed {
    scheduler: Scheduler,
    class: Class,
    dir: TempDir,
    /// Events that the program was told of.
    told: Arc<AtomicUsize>,
    /// What the hook asks.
    _handles: Arc<(Scheduler, Class)>,
}

fn properties(dir: &Path, iops: u64) -> Properties {
    let text = format!(
        "disks:\n  - mountpoint: {}\n    read_iops: {iops}\n    write_iops: {iops}\n    \
         read_bandwidth: 100000000\n    write_bandwidth: 100000000\n    ceiling: true\n",
        dir.display()
    );
    Properties::parse("test", &text).unwrap()
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let scheduler =
            Scheduler::builder().properties(&properties(dir.path(), 1000)).io_queues(64);
        let (told, known) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::new()));
        let (count, of_hook) = (Arc::clone(&told), Arc::clone(&known));
        let scheduler = scheduler.on_event(move |_| {
            if let Some((scheduler, class)) = of_hook.get().and_then(Weak::upgrade).as_deref() {
                looks(scheduler, class);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let scheduler = scheduler.build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let handles = Arc::new((scheduler.clone(), class.clone()));
        known.set(Arc::downgrade(&handles)).unwrap();
        Self { scheduler, class, dir, told, _handles: handles }
    }

    fn file(&self) -> File {
        let options = FileOptions::new().read(true).write(true).create(true);
        self.scheduler.open(self.dir.path().join("data"), &options).unwrap()
    }

    fn reload(&self, iops: u64) {
        self.scheduler.reload(&properties(self.dir.path(), iops)).unwrap();
    }
}

/// A read of the disk that never ends, until the pipe is closed.
fn hang(disk: &Disk, class: &Class) -> impl Sized + use<> {
    let (reader, writer) = std::io::pipe().unwrap();
    let pipe = DirectFile::from_fd(OwnedFd::from(reader)).unwrap();
    let buffer = AlignedBuf::new(BLOCK, BLOCK).unwrap();
    (disk.submit(class, Operation::read(pipe, 0, buffer)), writer)
}

fn write(file: &File, class: &Class) {
    let buffer = AlignedBuf::new(BLOCK, BLOCK).unwrap();
    let BufResult(result, _) = file.write_at(class, buffer, 0).wait();
    assert_eq!(result.unwrap(), BLOCK);
}

/// A hang of the disk is reported, and the callback uses the disk.
fn uses_a_disk_that_hangs(what: &str, bed: &Bed) {
    let (file, class) = (bed.file(), bed.class.clone());
    let _hung = hang(file.disk(), &class);
    while LOGGER.warnings.load(Ordering::SeqCst) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    ends(what, move || (0..3).for_each(|_| write(&file, &class)));
}

#[test]
fn a_logger_that_panics_ends_no_io_thread() {
    let log = TheLog::take();
    let bed = Bed::new();
    log.does(|_| panic!("failed printing to stdout: Broken pipe"));
    uses_a_disk_that_hangs("a write alongside a logger that panics", &bed);
}

#[test]
fn a_logger_that_writes_to_the_disk_waits_for_nobody_but_the_disk() {
    let log = TheLog::take();
    let bed = Bed::new();
    let (file, class) = (bed.file(), bed.class.clone());
    let (done, logged) = channel();
    log.does(move |_| {
        write(&file, &class);
        let _ = done.send(());
    });
    uses_a_disk_that_hangs("a write alongside a logger that writes", &bed);
    logged.recv_timeout(Duration::from_secs(60)).unwrap();
}

/// Whatever takes a lock of the scheduler.
fn looks(scheduler: &Scheduler, class: &Class) {
    assert!(scheduler.disk("nobody's").is_none());
    assert!(!scheduler.disks().is_empty() && !scheduler.snapshot().disks.is_empty());
    assert_eq!(scheduler.class("class").as_ref(), Some(class));
    class.set_shares(100).unwrap();
    class.set_limits(&Limits::default()).unwrap();
    let _ = (class.permit_counters(), class.try_admit(Op::Read, 1).unwrap());
    scheduler.disk_of(Path::new("/")).unwrap();
}

struct Looks(Scheduler, Class, Arc<AtomicUsize>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let Self(scheduler, class, count) = &*self;
        looks(scheduler, class);
        count.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        looks(&self.0, &self.1);
    }
}

/// A task that has asked for a permit and waits.
fn waiting(bed: &Bed, count: &Arc<AtomicUsize>) -> Pin<Box<AdmitFuture>> {
    loop {
        let looks = Looks(bed.scheduler.clone(), bed.class.clone(), Arc::clone(count));
        let waker = Waker::from(Arc::new(looks));
        let mut admit = Box::pin(bed.class.admit_async(Op::Read, BLOCK as u64));
        if admit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            return admit;
        }
    }
}

/// Reloads, each somewhere around the moment when the turn of one who waits comes.
fn reload_while_turns_come(bed: &Bed, woken: &Arc<AtomicUsize>) {
    for n in 0..2000 {
        let waits = waiting(bed, woken);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(n % 600) {
            std::hint::spin_loop();
        }
        bed.reload(2000 + n % 50);
        drop(waits);
    }
}

#[test]
fn callbacks_are_called_without_a_lock_held() {
    let log = TheLog::take();
    let bed = Bed::new();
    let (scheduler, class) = (bed.scheduler.clone(), bed.class.clone());
    let logged = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&logged);
    log.does(move |_| {
        looks(&scheduler, &class);
        count.fetch_add(1, Ordering::SeqCst);
    });
    let told = Arc::clone(&logged);
    ends("what calls others", move || {
        // of an unlisted device, and of a disk that hangs
        bed.scheduler.disk_of(Path::new("/proc")).unwrap();
        while told.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let unlisted = told.load(Ordering::SeqCst);
        let file = bed.file();
        let _hung = hang(file.disk(), &bed.class);
        while told.load(Ordering::SeqCst) <= unlisted || bed.told.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let woken = Arc::new(AtomicUsize::new(0));
        let until_woken = |n| {
            while woken.load(Ordering::SeqCst) < n {
                thread::sleep(Duration::from_millis(1));
            }
        };
        // by the timer, and by a thread that waits
        let first = waiting(&bed, &woken);
        until_woken(1);
        let second = waiting(&bed, &woken);
        drop(bed.class.admit(Op::Read, BLOCK as u64).unwrap());
        until_woken(2);
        // by a future that is dropped, and by another's permit that ends
        drop((first, second));
        let held = waiting(&bed, &woken);
        until_woken(3);
        drop(held);
        // by a reload with other figures, which also adds a disk
        bed.reload(1);
        let third = waiting(&bed, &woken);
        bed.reload(1_000_000);
        until_woken(4);
        drop(third);
        reload_while_turns_come(&bed, &woken);
        let before = woken.load(Ordering::SeqCst);
        // by an I/O thread
        let looks = Looks(bed.scheduler.clone(), bed.class.clone(), Arc::clone(&woken));
        let waker = Waker::from(Arc::new(looks));
        let buffer = AlignedBuf::new(8 << 20, BLOCK).unwrap();
        let mut request = file.write_at(&bed.class, buffer, 0);
        if Pin::new(&mut request).poll(&mut Context::from_waker(&waker)).is_pending() {
            until_woken(before + 1);
        }
    });
    assert!(logged.load(Ordering::SeqCst) >= 2);
}

#[test]
fn messages_that_a_blocked_log_cannot_take_keep_nobody() {
    let log = TheLog::take();
    let (go_on, blocked) = channel::<()>();
    let blocked = Mutex::new(blocked);
    log.does(move |_| {
        let _ = blocked.lock().unwrap().recv();
    });
    let rates = DiskRates {
        read_iops: 1000,
        write_iops: 1000,
        read_bandwidth: 10_000_000,
        write_bandwidth: 10_000_000,
    };
    // Each tells that it has fewer I/O threads than it was to have.
    let begin = move || {
        let lost = || Scheduler::builder().build().unwrap().snapshot().messages_lost;
        let before = lost();
        for _ in 0..1000 {
            let disk = DiskConfig::new("disk", rates);
            Scheduler::builder().disk(disk).io_queues(64).build().unwrap();
        }
        lost() - before
    };
    let lost = ends("a scheduler alongside a log that blocks", begin);
    assert!((900..=1000).contains(&lost), "all but those that wait are lost, and counted: {lost}");
    drop(go_on);
}

#[test]
fn warnings_of_disks_that_others_have_too_are_told_by_the_threads_of_the_log() {
    let log = TheLog::take();
    let (tell, told) = channel();
    log.does(move |record| {
        let thread = thread::current().name().map(str::to_owned);
        let _ = tell.send((thread, record.args().to_string()));
    });
    let dir = tempfile::tempdir().unwrap();
    let build = || Scheduler::builder().properties(&properties(dir.path(), 1000)).build().unwrap();
    let mut awaited = vec!["of another scheduler", "in no entry"];
    // a log that others have just filled loses messages
    for _ in 0..60 {
        let both = [build(), build()];
        both[0].disk_of(Path::new("/proc")).unwrap();
        while let Ok((thread, line)) = told.recv_timeout(Duration::from_secs(1)) {
            assert_eq!(thread.as_deref(), Some("forebay-log"), "{line}");
            awaited.retain(|words| !line.contains(words));
        }
        if awaited.is_empty() {
            return;
        }
    }
    panic!("nothing was told {awaited:?}");
}
