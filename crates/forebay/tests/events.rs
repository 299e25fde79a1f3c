//! Events that a program receives as they happen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig};
use forebay::{DiskConfig, DiskRates, Event, FileOptions, Op, Policy, Scheduler};

const RATES: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

/// No event takes so long to be told.
const LONG: Duration = Duration::from_secs(60);

fn one_at_a_time(name: &str) -> DiskConfig {
    DiskConfig::new(name, RATES).policy(Policy::Concurrency { requests: 1 })
}

/// Takes permits of a disk until some are overdue.
fn forget_permits(scheduler: &Scheduler, disk: &str) {
    let class = scheduler.default_class().on(&scheduler.disk(disk).unwrap()).unwrap();
    for _ in 0..4 {
        std::mem::forget(class.admit(Op::Read, 4096).unwrap().detach());
    }
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(LONG).unwrap()
}

#[test]
fn permits_that_are_overdue_are_told_once_for_a_disk() {
    let (tell, events) = channel();
    let builder = Scheduler::builder().disk(one_at_a_time("one")).disk(one_at_a_time("two"));
    let scheduler = builder.on_event(move |event| drop(tell.send(event.clone()))).build().unwrap();
    for disk in ["one", "two"] {
        forget_permits(&scheduler, disk);
        forget_permits(&scheduler, disk);
        assert_eq!(next(&events), Event::Overdue { disk: disk.into() });
    }
    assert!(events.try_recv().is_err(), "told again");
}

#[test]
fn a_hook_may_ask_the_scheduler_and_panic() {
    let scheduler: Arc<OnceLock<Scheduler>> = Arc::default();
    let (tell, told) = channel();
    let known = Arc::clone(&scheduler);
    let first = Mutex::new(true);
    let hook = move |event: &Event| {
        let Some(scheduler) = known.get() else { return };
        // None of this waits for the thread that reports an event.
        drop(scheduler.snapshot());
        let _counters = scheduler.default_disk().counters();
        scheduler.add_class(&format!("{event:?}"), 1).unwrap();
        drop(scheduler.default_class().admit(Op::Read, 4096).unwrap());
        let thread = thread::current().name().map(str::to_owned);
        tell.send((event.clone(), thread)).unwrap();
        if std::mem::take(&mut *first.lock().unwrap_or_else(|error| error.into_inner())) {
            panic!("a hook panics, as a test of it");
        }
    };
    let builder = Scheduler::builder().disk(DiskConfig::new("first", RATES));
    let builder = builder.disk(one_at_a_time("one")).disk(one_at_a_time("two"));
    assert!(scheduler.set(builder.on_event(hook).build().unwrap()).is_ok());
    for disk in ["one", "two"] {
        forget_permits(scheduler.get().unwrap(), disk);
        let (event, thread) = told.recv_timeout(LONG).unwrap();
        assert_eq!(event, Event::Overdue { disk: disk.into() });
        assert_eq!(thread.as_deref(), Some("forebay-log"), "not whoever waits for a permit");
    }
}

#[test]
fn the_reason_for_not_using_io_uring_is_reported() {
    let engine = EngineConfig { backend: BackendChoice::IoUring, ..EngineConfig::default() };
    let has_ring = forebay::engine::Engine::new(&engine).is_ok();
    let (tell, events) = channel();
    let builder = Scheduler::builder().disk(one_at_a_time("one"));
    let scheduler = builder.on_event(move |event| drop(tell.send(event.clone()))).build().unwrap();
    let disk = scheduler.disk("one").unwrap();
    drop(disk.shard(&EngineConfig::default()).unwrap());
    if has_ring {
        drop(disk.shard(&EngineConfig { backend: BackendChoice::Threads, ..engine }).unwrap());
        forget_permits(&scheduler, "one");
        assert!(matches!(next(&events), Event::Overdue { .. }), "threads that were asked for");
        without_io_uring(&scheduler);
    }
    let Event::Fallback { disk, backend, reason } = next(&events) else { panic!() };
    assert_eq!(disk, "one");
    assert!(["linux-aio", "threads"].contains(&backend), "{backend}");
    assert!(reason.contains("io_uring"), "{reason}");
}

/// Makes a shard where the kernel refuses io_uring.
fn without_io_uring(scheduler: &Scheduler) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    const IO_URING_SETUP: i64 = 425;
    let disk = scheduler.disk("one").unwrap();
    let refused = move || {
        let filter = SeccompFilter::new(
            [(IO_URING_SETUP, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program = BpfProgram::try_from(filter.unwrap()).unwrap();
        seccompiler::apply_filter(&program).unwrap();
        drop(disk.shard(&EngineConfig::default()).unwrap());
    };
    thread::spawn(refused).join().unwrap();
}

/// Blocks the thread that wakes it until it is released.
struct Holds(Mutex<Receiver<()>>);

impl Wake for Holds {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().recv_timeout(LONG);
    }
}

#[test]
fn an_io_thread_that_does_not_end_is_told_with_its_disk() {
    let (tell, events) = channel();
    let dir = tempfile::tempdir().unwrap();
    let engine = EngineConfig { shutdown_timeout: Duration::ZERO, ..EngineConfig::default() };
    let builder = Scheduler::builder().disk(DiskConfig::new("one", RATES)).engine(engine);
    let scheduler = builder.on_event(move |event| drop(tell.send(event.clone()))).build().unwrap();
    let options = FileOptions::new().write(true).create(true);
    let file = scheduler.disk("one").unwrap().open(dir.path().join("data"), &options).unwrap();

    let (release, held) = channel();
    let waker = Waker::from(Arc::new(Holds(Mutex::new(held))));
    let mut context = Context::from_waker(&waker);
    // One that has its answer at once wakes nobody.
    let mut wakes = false;
    while !wakes {
        let mut sync = file.sync_all(&scheduler.default_class());
        while Pin::new(&mut sync).poll(&mut context).is_pending() {
            wakes = true;
            thread::yield_now();
        }
    }
    drop((file, scheduler));
    let told = next(&events);
    drop(release);
    if let Event::Fallback { .. } = told {
        assert_eq!(next(&events), Event::Hang { disk: "one".into() });
    } else {
        assert_eq!(told, Event::Hang { disk: "one".into() });
    }
}
