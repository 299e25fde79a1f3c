//! Children of a program that uses a scheduler, forked without exec.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]
#![cfg(feature = "metrics")]

use std::cell::Cell;
use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::engine::{Backend, BackendChoice, Engine, EngineConfig, Operation, PushError};
use forebay::properties::Properties;
use forebay::shard::SubmitError;
use forebay::{
    AdmitError, AlignedBuf, BacklogController, BufResult, BufferPool, Class, ClassError,
    ClassGroup, DeleteErrorCause, Deleter, DeleterOptions, DirectFile, DiskConfig, DiskRates,
    FileOptions, Forked, Limits, Op, Scheduler, SchedulerError,
};

const FAST: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

/// Runs `work` in a child, which must return true within ten seconds.
fn in_child(work: impl FnOnce() -> bool) {
    // SAFETY: the child does what the tests are about, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: ends the child without what its parent does at its end.
        unsafe { libc::_exit(i32::from(!done.unwrap_or(false))) }
    }
    let begin = Instant::now();
    let mut status = 0;
    // SAFETY: waits for a child of this process, into a number of its own.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } != child {
        if begin.elapsed() > Duration::from_secs(10) {
            // SAFETY: ends that child.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child failed");
}

fn is_forked<T>(result: &std::io::Result<T>) -> bool {
    let source = result.as_ref().err().and_then(|error| error.get_ref());
    source.is_some_and(|source| source.downcast_ref() == Some(&Forked))
}

fn buffer() -> AlignedBuf {
    AlignedBuf::new(4096, 4096).unwrap()
}

#[test]
fn a_child_is_refused_permits_while_its_parent_gets_them() {
    let builder = Scheduler::builder().disk(DiskConfig::new("disk", FAST));
    let scheduler = builder.build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(class.admit(Op::Read, 4096).unwrap());
                }
            });
        }
        for _ in 0..100 {
            let held = class.admit(Op::Read, 4096).unwrap().detach();
            in_child(|| {
                let refused = matches!(class.admit(Op::Read, 4096), Err(AdmitError::Forked(_)));
                let mut admit = pin!(class.admit_async(Op::Read, 4096));
                let polled = admit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                let polled = matches!(polled, Poll::Ready(Err(AdmitError::Forked(_))));
                drop(held);
                refused && polled
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_makes_a_scheduler_of_its_own() {
    let parents = Scheduler::builder().build().unwrap();
    in_child(|| {
        let dir = tempfile::tempdir().unwrap();
        let scheduler = Scheduler::builder().build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        drop(class.admit(Op::Read, 4096).unwrap());
        let options = FileOptions::new().read(true).write(true).create(true);
        let file = scheduler.open(dir.path().join("data"), &options).unwrap();
        let BufResult(written, _) = file.write_at(&class, buffer(), 0).wait();
        drop(parents);
        written.unwrap() == 4096
    });
}

/// Whether a thread of this process looks at its disks, or soon does.
fn is_looking() -> bool {
    let begin = Instant::now();
    let name = |thread: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(thread.unwrap().path().join("comm"))
    };
    while begin.elapsed() < Duration::from_secs(5) {
        let mut names = std::fs::read_dir("/proc/self/task").unwrap().map(name);
        if names.any(|name| name.is_ok_and(|name| name.trim() == "forebay-look")) {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn a_child_looks_at_its_own_disks_whenever_it_was_forked() {
    let config = || DiskConfig::new("disk", FAST).mountpoint("/");
    let scheduler = Scheduler::builder().disk(config()).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    drop(class.admit(Op::Write, 1 << 30).unwrap());
    assert!(is_looking());
    let unknown_because = scheduler.snapshot().disks[0].traffic.unknown_because.clone();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                scheduler.snapshot();
            }
        });
        let forks = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..20 {
                in_child(|| {
                    let own = Scheduler::builder().disk(config()).build().unwrap();
                    let class = own.add_class("class", 100).unwrap();
                    drop(class.admit(Op::Write, 4096).unwrap());
                    let traffic = own.snapshot().disks[0].traffic.clone();
                    let is_own = traffic.written.admitted <= 4096;
                    // without a disk below `/` that is unknown in the parent, too
                    let is_as_known = traffic.unknown_because == unknown_because;
                    scheduler.snapshot().disks.is_empty() && is_own && is_as_known && is_looking()
                });
            }
        }));
        over.store(true, Ordering::Relaxed);
        forks.unwrap();
    });
}

#[test]
fn a_child_is_refused_files_and_its_drops_leave_the_parents() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = Scheduler::builder().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = scheduler.open(dir.path().join("data"), &options).unwrap();
    let write = || file.write_at(&class, buffer(), 0);
    let BufResult(written, _) = write().wait();
    assert_eq!(written.unwrap(), 4096);
    let pool = BufferPool::new(4096, 1 << 20);
    let taken = pool.take(4096).unwrap();
    for _ in 0..20 {
        let on_its_way = file.write_at(&class, buffer(), 0);
        let begin = Instant::now();
        in_child(|| {
            let BufResult(before, _) = on_its_way.wait();
            let BufResult(after, _) = write().wait();
            let refused = is_forked(&before) && is_forked(&after) && is_forked(&pool.take(1));
            let opened = is_forked(&scheduler.open(dir.path().join("data"), &options));
            // All that the child has.
            // SAFETY: none of them is used after this: the child ends.
            unsafe {
                drop((std::ptr::read(&raw const file), std::ptr::read(&raw const taken)));
                drop((std::ptr::read(&raw const class), std::ptr::read(&raw const scheduler)));
            }
            refused && opened && begin.elapsed() < Duration::from_secs(5)
        });
        let BufResult(written, _) = write().wait();
        assert_eq!(written.unwrap(), 4096);
    }
}

#[test]
fn a_child_that_drops_a_shard_leaves_the_parents_requests() {
    let scheduler = Scheduler::builder().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let mut shard = scheduler.default_disk().shard(&EngineConfig::default()).unwrap();
    if shard.backend() != Backend::IoUring {
        return; // No other is asked to read a pipe without a thread.
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    let pipe = DirectFile::from_fd(OwnedFd::from(reader)).unwrap();
    let read = || Operation::read(pipe.clone(), 0, buffer());
    shard.submit(&class, read()).unwrap();
    shard.run_once(Some(Duration::from_millis(10))).unwrap();
    let shard = Cell::new(Some(shard));
    in_child(|| {
        let mut shard = shard.take().unwrap();
        let submitted = shard.submit(&class, read());
        let submitted = matches!(submitted, Err((SubmitError::Forked(_), _)));
        let turned = is_forked(&shard.run_once(Some(Duration::ZERO)));
        let popped = shard.pop().is_none();
        drop(shard);
        submitted && turned && popped
    });
    let mut shard = shard.take().unwrap();
    assert!(shard.pop().is_none());
    writer.write_all(&[7; 4096]).unwrap();
    let begin = Instant::now();
    let finished = loop {
        shard.run_once(Some(Duration::from_millis(10))).unwrap();
        if let Some(finished) = shard.pop() {
            break finished;
        }
        assert!(begin.elapsed() < Duration::from_secs(60));
    };
    assert_eq!(finished.result.unwrap(), 4096);
}

#[test]
fn a_child_leaves_its_parents_requests_of_linux_aio_and_makes_its_own() {
    let config = EngineConfig { backend: BackendChoice::LinuxAio, ..EngineConfig::default() };
    let Ok(mut engine) = Engine::new(&config) else { return };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), [7; 4096]).unwrap();
    let file = DirectFile::options().read(true).open(dir.path().join("data")).unwrap();
    let read = || Operation::read(file.clone(), 0, buffer());
    let ended = |engine: &mut Engine| loop {
        engine.submit_and_wait(None).unwrap();
        if let Some(completed) = engine.pop() {
            break completed.operation.into_buffer::<AlignedBuf>().unwrap();
        }
    };
    (0..8).for_each(|token| engine.push(token, read()).unwrap());
    engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
    let engine = Cell::new(Some(engine));
    in_child(|| {
        let mut engine = engine.take().unwrap();
        let pushed = matches!(engine.push(8, read()), Err((PushError::Forked(_), _)));
        let waited = is_forked(&engine.submit_and_wait(None));
        let popped = engine.pop().is_some();
        drop(engine);
        let mut own = Engine::new(&config).unwrap();
        own.push(1, read()).unwrap();
        pushed && waited && !popped && ended(&mut own)[..] == [7; 4096]
    });
    let mut engine = engine.take().unwrap();
    while engine.in_flight() > 0 {
        assert_eq!(ended(&mut engine)[..], [7; 4096]);
    }
}

#[test]
fn a_child_that_drops_an_engine_touches_no_ring() {
    for sqpoll in [None, Some(Duration::ZERO), Some(Duration::from_secs(60))] {
        if let Ok(engine) = Engine::new(&EngineConfig { sqpoll, ..EngineConfig::default() }) {
            is_left_by_a_child(engine);
        }
    }
}

fn is_left_by_a_child(mut engine: Engine) {
    let sync = || Operation::unlink("/nothing/there", 0).unwrap();
    engine.push(1, sync()).unwrap();
    let engine = Cell::new(Some(engine));
    in_child(|| {
        let mut engine = engine.take().unwrap();
        let pushed = matches!(engine.push(2, sync()), Err((PushError::Forked(_), _)));
        let waited = is_forked(&engine.submit_and_wait(None));
        pushed && waited && !engine.cancel(1) && engine.pop().is_none()
    });
    let mut engine = engine.take().unwrap();
    while engine.pop().is_none() {
        engine.submit_and_wait(None).unwrap();
    }
}

/// As a user without privileges: the kernel asks no other for the limit.
#[test]
fn a_program_that_may_lock_no_memory_has_another_engine_or_is_told_which_limit_to_raise() {
    let backend = |sqpoll| {
        let engine = Engine::new(&EngineConfig { sqpoll, ..EngineConfig::default() });
        engine.map(|engine| engine.backend())
    };
    let zero = File::open("/dev/zero").unwrap();
    for sqpoll in [None, Some(Duration::ZERO)] {
        let Ok(expected) = backend(sqpoll) else { return };
        in_child(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: reads a limit of this function's, and says who this child is.
            let is_set = unsafe {
                libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) == 0
                    && (libc::geteuid() != 0 || libc::setuid(65_534) == 0)
            };
            let engine = Engine::new(&EngineConfig { sqpoll, ..EngineConfig::default() });
            let mut engine = match engine {
                Ok(engine) => engine,
                // newer kernels count the ring itself; with `sqpoll` there is no other backend
                Err(error) => {
                    return is_set && sqpoll.is_some() && error.to_string().contains("ulimit -l");
                }
            };
            let file = DirectFile::from_fd(zero.try_clone().unwrap()).unwrap();
            engine.push(1, Operation::read(file, 0, buffer())).unwrap();
            let read = loop {
                engine.submit_and_wait(None).unwrap();
                if let Some(completed) = engine.pop() {
                    break completed.result.unwrap();
                }
            };
            let is_another = engine.backend() == Backend::LinuxAio && sqpoll.is_none();
            is_set && (engine.backend() == expected || is_another) && read == 4096
        });
    }
}

/// Changes or looks at what is shared, until it is told to stop.
fn change_until(
    stop: &AtomicBool,
    change: u32,
    scheduler: &Scheduler,
    class: &Class,
    group: &ClassGroup,
) {
    while !stop.load(Ordering::Relaxed) {
        match change {
            0 => class.set_shares(100).unwrap(),
            1 => group.set_limits(&Limits::default()).unwrap(),
            _ => drop((scheduler.snapshot(), scheduler.disks()[0].counters())),
        }
        // Of all schedulers: what their disks lie on.
        drop(Scheduler::builder().build().unwrap());
    }
}

#[test]
fn a_child_is_refused_changes_and_finds_nothing_whatever_its_parents_threads_do() {
    let dir = tempfile::tempdir().unwrap();
    let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).build().unwrap();
    let group = scheduler.add_class_group("group", 100).unwrap();
    let class = group.add_class("class", 100).unwrap();
    let text = "disks:\n  - mountpoint: /\n    read_iops: 1000\n    write_iops: 1000\n    \
                read_bandwidth: 100000000\n    write_bandwidth: 100000000\n";
    let properties = Properties::parse("test", text).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for change in 0..3 {
            let (scheduler, class, group, stop) = (&scheduler, &class, &group, &stop);
            scope.spawn(move || change_until(stop, change, scheduler, class, group));
        }
        for _ in 0..100 {
            in_child(|| {
                let forked = ClassError::from(Forked);
                let refused = [
                    scheduler.add_class("new", 1).map(drop),
                    scheduler.add_class_group("new", 1).map(drop),
                    group.add_class("new", 1).map(drop),
                    group.add_class_group("new", 1).map(drop),
                    scheduler.remove_class(&class),
                    scheduler.remove_class_group(&group),
                    class.set_shares(7),
                    group.set_shares(7),
                    class.set_limits(&Limits::default()),
                    group.set_limits(&Limits::default()),
                    BacklogController::new(&[(0.0, 1), (1.0, 9)]).unwrap().apply(&class, 0.5),
                ];
                assert!(refused.iter().all(|result| *result == Err(forked.clone())));
                let reloaded = scheduler.reload(&properties);
                assert!(matches!(reloaded, Err(SchedulerError::Forked(_))));
                assert!(is_forked(&scheduler.disk_of(dir.path())));
                let dir = File::open(dir.path()).unwrap();
                assert!(is_forked(&scheduler.disk_of_file(&dir)));
                assert!(scheduler.disks().is_empty() && scheduler.disk("disk").is_none());
                assert!(scheduler.classes().is_empty() && scheduler.class("class").is_none());
                assert!(scheduler.snapshot().disks.is_empty());
                assert_eq!((class.shares(), class.limits()), (0, Limits::default()));
                assert_eq!((group.shares(), group.limits()), (0, Limits::default()));
                assert_eq!(scheduler.default_disk().counters().dispatched, 0);
                assert_eq!(class.permit_counters().operations, [0; 4]);
                let batch = class.admit_many(&[(Op::Read, 4096); 2]).wait();
                assert!(matches!(batch, Err(AdmitError::Forked(_))));
                let _ = format!("{scheduler:?} {class:?} {group:?}");
                let own = Scheduler::builder().build().unwrap();
                own.disk_of(std::path::Path::new("/proc")).unwrap();
                own.add_class("own", 1).unwrap().set_shares(2).unwrap();
                own.snapshot().disks.len() == 1
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(class.shares(), 100);
}

#[test]
fn a_child_deletes_nothing_by_its_parents_deleter() {
    let scheduler = Scheduler::builder().build().unwrap();
    let class = scheduler.add_class("deletes", 10).unwrap();
    let deleter = Deleter::new(&class, DeleterOptions::new()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    ["one", "two"].iter().for_each(|name| std::fs::write(path(name), [7; 4096]).unwrap());
    let deletion = deleter.delete(path("one"));
    in_child(|| {
        let refused = deleter.delete(path("two"));
        let errors = [refused.wait().unwrap_err(), deletion.wait().unwrap_err()];
        drop(refused);
        errors.iter().all(|error| matches!(error.cause, DeleteErrorCause::Forked(Forked)))
            && !deletion.cancel()
            && path("two").exists()
            && deleter.snapshot().files == 0
    });
    deletion.wait().unwrap();
    assert!(path("two").exists() && !path("one").exists());
}
