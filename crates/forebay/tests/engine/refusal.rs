//! A thread on which the kernel refuses io_uring, as containers do.

use std::collections::BTreeMap;
use std::thread;

use forebay::engine::{Backend, BackendChoice, Engine, EngineConfig};
use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::bench::{BLOCK, Bench, filled};

const IO_URING_SETUP: i64 = 425;
const IO_URING_ENTER: i64 = 426;

/// Runs `test` on a thread of which `syscall` fails with `errno`.
fn with_refusal(syscall: i64, errno: Errno, test: fn()) {
    let filter = SeccompFilter::new(
        BTreeMap::from([(syscall, Vec::new())]),
        SeccompAction::Allow,
        SeccompAction::Errno(errno.raw_os_error().cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program = BpfProgram::try_from(filter.unwrap()).unwrap();
    let thread = thread::spawn(move || {
        seccompiler::apply_filter(&program).unwrap();
        test();
    });
    thread.join().unwrap();
}

fn falls_back() {
    let mut bench = Bench::new(BackendChoice::Auto);
    assert_eq!(bench.engine.backend(), Backend::Threads);
    let reason = bench.engine.fallback_reason().unwrap();
    assert!(reason.contains("seccomp"), "{reason}");
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));

    let config = EngineConfig { backend: BackendChoice::IoUring, ..EngineConfig::default() };
    let error = Engine::new(&config).unwrap_err();
    assert!(error.to_string().contains("seccomp"), "{error}");
}

#[test]
fn forbidden_setup_falls_back_to_threads() {
    with_refusal(IO_URING_SETUP, Errno::PERM, falls_back);
}

#[test]
fn a_kernel_without_io_uring_falls_back_to_threads() {
    with_refusal(IO_URING_SETUP, Errno::NOSYS, falls_back);
}

#[test]
fn a_ring_that_cannot_be_entered_falls_back_to_threads() {
    with_refusal(IO_URING_ENTER, Errno::PERM, falls_back);
}
