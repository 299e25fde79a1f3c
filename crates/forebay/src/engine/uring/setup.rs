//! Setting a ring up, and explaining why that is refused.

use std::time::Duration;
use std::{fs, io};

use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The best ring that this kernel offers. With `sqpoll` its entries are taken by a
/// thread of the kernel, which sleeps when there was none for so long.
pub(super) fn ring(entries: u32, sqpoll: Option<Duration>) -> io::Result<IoUring> {
    let configurations = if sqpoll.is_some() { POLLED } else { CONFIGURATIONS };
    let mut result = Err(Errno::INVAL.into());
    for configure in configurations {
        let mut builder = IoUring::builder();
        configure(&mut builder);
        if let Some(idle) = sqpoll {
            // None would be a second.
            builder.setup_sqpoll(idle.as_millis().clamp(1, u32::MAX.into()) as u32);
        }
        builder.dontfork();
        result = builder.build(entries);
        match &result {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
            _ => break,
        }
    }
    let ring = result?;
    // The timeout of a wait came with 5.11, polling again and again with 5.13,
    // which is known by what else came with it.
    let params = ring.params();
    if params.is_feature_ext_arg() && params.is_feature_resource_tagging() {
        Ok(ring)
    } else {
        Err(Errno::NOSYS.into())
    }
}

/// From the newest kernel to the oldest.
const CONFIGURATIONS: [fn(&mut Builder); 3] = [
    // 6.1: completions are processed when we wait, in one go.
    |builder| {
        builder.setup_single_issuer().setup_defer_taskrun();
        builder.setup_taskrun_flag().setup_submit_all();
    },
    // 5.19: at least not by interrupting us.
    |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    },
    |_| {},
];

/// The same where a thread of the kernel takes the entries, and processes
/// completions: nothing to choose but who pushes.
const POLLED: [fn(&mut Builder); 3] = [
    // 6.0
    |builder| {
        builder.setup_single_issuer().setup_submit_all();
    },
    // 5.18
    |builder| {
        builder.setup_submit_all();
    },
    |_| {},
];

/// Whether the kernel, Linux 6.9 or newer, can change the length of a file for
/// the ring. An error where nothing may be registered with it: a watched engine
/// could then not be told of completions.
pub(super) fn truncates(ring: &IoUring) -> io::Result<bool> {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    Ok(probe.is_supported(opcode::Ftruncate::CODE))
}

/// A program with a lower limit of locked memory than this, in bytes, may have no ring. The largest
/// ring of an engine needs less.
const LOCKED_BYTES_MIN: u64 = 8 << 20;

/// Whether memory is short because this program may lock too little of it: trying again does not help.
pub(super) fn may_lock_too_little(error: &io::Error) -> bool {
    let limit = getrlimit(Resource::Memlock).current;
    Errno::from_io_error(error) == Some(Errno::NOMEM)
        && limit.is_some_and(|bytes| bytes < LOCKED_BYTES_MIN)
}

/// Adds to an error of the set-up what to do about it.
pub(super) fn explained(error: &io::Error) -> io::Error {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    io::Error::new(error.kind(), explain(error, disabled.trim()))
}

/// Why there is no ring, and what to do about it. `disabled` is the content of
/// `kernel.io_uring_disabled`.
fn explain(error: &io::Error, disabled: &str) -> String {
    match (error.raw_os_error().map(Errno::from_raw_os_error), disabled) {
        (Some(Errno::PERM), "1") => "kernel.io_uring_disabled=1 allows io_uring only to the group \
            kernel.io_uring_group: add this user to that group, or set the former to 0"
            .into(),
        (Some(Errno::PERM), "2") => {
            "io_uring is switched off: set kernel.io_uring_disabled=0 with sysctl".into()
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => "io_uring is forbidden, probably by the seccomp \
            filter of a container: allow io_uring_setup, io_uring_enter and io_uring_register there"
            .into(),
        (Some(Errno::NOSYS), _) => "there is no io_uring, or an old one: use Linux 5.13 or newer; \
            in a container, allow io_uring_setup, io_uring_enter and io_uring_register in its \
            seccomp filter"
            .into(),
        (Some(Errno::NOMEM), _) => {
            "no memory for io_uring: raise the limit of locked memory (ulimit -l), or free some"
                .into()
        }
        (Some(Errno::MFILE), _) => {
            "no descriptors for io_uring: close some, or raise their limit (ulimit -n)".into()
        }
        _ => format!("io_uring cannot be set up: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        for (errno, disabled, advice) in [
            (Errno::PERM, "0", "seccomp"),
            (Errno::PERM, "", "seccomp"),
            (Errno::PERM, "1", "kernel.io_uring_group"),
            (Errno::PERM, "2", "set kernel.io_uring_disabled=0"),
            (Errno::NOSYS, "0", "5.13"),
            (Errno::NOMEM, "0", "ulimit -l"),
            (Errno::MFILE, "0", "ulimit -n"),
            (Errno::NFILE, "0", "Too many open files"),
        ] {
            let text = explain(&errno.into(), disabled);
            assert!(text.contains(advice), "{text}");
        }
    }
}
