//! A thread on which the kernel refuses io_uring, as containers do.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use forebay::DirectFile;
use forebay::engine::{Backend, BackendChoice, Engine, EngineConfig, Operation};
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::bench::{BLOCK, Bench, filled};

const IO_URING_SETUP: i64 = 425;
const IO_URING_ENTER: i64 = 426;
const IO_URING_REGISTER: i64 = 427;

/// From now on these system calls fail with `errno` for the calling thread,
/// always or as their rules say.
fn refuse(syscalls: BTreeMap<i64, Vec<SeccompRule>>, errno: Errno) {
    let filter = SeccompFilter::new(
        syscalls,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.raw_os_error().cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program = BpfProgram::try_from(filter.unwrap()).unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// Runs `test` on a thread of which `syscall` fails with `errno`.
fn with_refusal(syscall: i64, errno: Errno, test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(move || {
            refuse(BTreeMap::from([(syscall, Vec::new())]), errno);
            test();
        });
    });
}

/// The engine that is chosen here writes, and says why it is not on io_uring.
fn chosen() -> Engine {
    let mut bench = Bench::new(BackendChoice::Auto);
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));
    bench.engine
}

/// What comes after io_uring here.
fn next_best() -> Backend {
    let config = EngineConfig { backend: BackendChoice::LinuxAio, ..EngineConfig::default() };
    Engine::new(&config).map_or(Backend::Threads, |engine| engine.backend())
}

fn falls_back() {
    let engine = chosen();
    assert_eq!(engine.backend(), next_best());
    let reason = engine.fallback_reason().unwrap();
    assert!(reason.contains("seccomp") && reason.contains("io_uring"), "{reason}");

    let config = EngineConfig { backend: BackendChoice::IoUring, ..EngineConfig::default() };
    let error = Engine::new(&config).unwrap_err();
    assert!(error.to_string().contains("seccomp"), "{error}");
}

/// As under the default profile of Docker.
#[test]
fn forbidden_setup_falls_back_to_linux_aio() {
    with_refusal(IO_URING_SETUP, Errno::PERM, falls_back);
}

#[test]
fn a_set_up_that_is_denied_or_unknown_falls_back_to_linux_aio() {
    for errno in [Errno::ACCESS, Errno::INVAL] {
        with_refusal(IO_URING_SETUP, errno, || {
            let engine = Engine::new(&EngineConfig::default()).unwrap();
            assert_eq!(engine.backend(), next_best());
            assert!(engine.fallback_reason().is_some());
        });
    }
}

/// Any of the calls, and `fs.aio-max-nr` that is used up.
#[test]
fn where_linux_aio_is_refused_too_threads_do_it_and_both_reasons_are_told() {
    for (syscall, errno, advice) in [
        (libc::SYS_io_setup, Errno::PERM, "io_setup"),
        (libc::SYS_io_setup, Errno::NOSYS, "CONFIG_AIO"),
        (libc::SYS_io_setup, Errno::AGAIN, "fs.aio-max-nr"),
        (libc::SYS_io_submit, Errno::PERM, "io_submit"),
        (libc::SYS_io_getevents, Errno::PERM, "io_getevents"),
    ] {
        with_refusal(IO_URING_SETUP, Errno::PERM, || {
            refuse(BTreeMap::from([(syscall, Vec::new())]), errno);
            let engine = chosen();
            assert_eq!(engine.backend(), Backend::Threads);
            let reason = engine.fallback_reason().unwrap();
            assert!(reason.contains("io_uring") && reason.contains(advice), "{reason}");

            let backend = BackendChoice::LinuxAio;
            let error = Engine::new(&EngineConfig { backend, ..Default::default() }).unwrap_err();
            assert!(error.to_string().contains(advice), "{error}");
        });
    }
}

#[test]
fn a_context_that_memory_lacks_for_is_an_error_and_not_threads_for_ever() {
    with_refusal(IO_URING_SETUP, Errno::PERM, || {
        refuse(BTreeMap::from([(libc::SYS_io_setup, Vec::new())]), Errno::NOMEM);
        for backend in [BackendChoice::Auto, BackendChoice::LinuxAio] {
            Engine::new(&EngineConfig { backend, ..EngineConfig::default() }).unwrap_err();
        }
    });
}

#[test]
fn a_ring_that_descriptors_or_memory_lack_for_is_an_error_and_not_threads_for_ever() {
    for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
        with_refusal(IO_URING_SETUP, errno, || {
            for backend in [BackendChoice::Auto, BackendChoice::IoUring] {
                Engine::new(&EngineConfig { backend, ..EngineConfig::default() }).unwrap_err();
            }
        });
    }
}

/// What was asked for is not left out silently.
#[test]
fn a_polled_ring_that_is_refused_is_an_error_and_no_other_backend() {
    for (syscall, errno) in [
        (IO_URING_SETUP, Errno::PERM),
        (IO_URING_SETUP, Errno::NOSYS),
        (IO_URING_ENTER, Errno::PERM),
        (IO_URING_REGISTER, Errno::PERM),
    ] {
        with_refusal(syscall, errno, || {
            for backend in [BackendChoice::Auto, BackendChoice::IoUring] {
                let sqpoll = Some(Duration::from_secs(1));
                let config = EngineConfig { backend, sqpoll, ..EngineConfig::default() };
                let error = Engine::new(&config).unwrap_err();
                assert!(error.to_string().contains("seccomp"), "{error}");
            }
        });
    }
}

#[test]
fn a_kernel_without_io_uring_falls_back_to_linux_aio() {
    with_refusal(IO_URING_SETUP, Errno::NOSYS, falls_back);
}

#[test]
fn a_ring_that_cannot_be_entered_falls_back_to_linux_aio() {
    with_refusal(IO_URING_ENTER, Errno::PERM, falls_back);
}

/// It could not tell its descriptor of completions: an event loop would spin.
#[test]
fn a_ring_that_nothing_can_be_registered_with_falls_back_to_linux_aio() {
    with_refusal(IO_URING_REGISTER, Errno::PERM, falls_back);
}

#[test]
fn operations_refused_for_lack_of_memory_are_retried_while_others_hang() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let shutdown_timeout = Duration::from_millis(10);
        let config = EngineConfig { shutdown_timeout, ..EngineConfig::default() };
        let mut engine = Engine::new(&config).unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let pipe = DirectFile::from_fd(reader).unwrap();
        engine.push(1, Operation::read(pipe.clone(), 0, filled(BLOCK, 0))).unwrap();
        engine.submit_and_wait(Some(Duration::ZERO)).unwrap();
        // From now on the ring takes nothing more, and can be waited at.
        let submits =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0).unwrap();
        let rules = vec![SeccompRule::new(vec![submits]).unwrap()];
        refuse(BTreeMap::from([(IO_URING_ENTER, rules)]), Errno::AGAIN);
        engine.push(2, Operation::read(pipe, 0, filled(BLOCK, 0))).unwrap();
        engine.submit_and_wait(None).unwrap();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(10)).unwrap();
}
