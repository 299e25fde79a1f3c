//! Set-up of a ring, and explanations of why it is refused.

use std::time::Duration;
use std::{fs, io};

use io_uring::{Builder, IoUring, Probe, opcode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The best ring that this kernel supports. With `sqpoll`, a kernel thread takes its entries, and
/// sleeps after this time without entries.
pub(super) fn ring(entries: u32, sqpoll: Option<Duration>) -> io::Result<IoUring> {
    let configurations = if sqpoll.is_some() { POLLED } else { CONFIGURATIONS };
    let mut result = Err(Errno::INVAL.into());
    for configure in configurations {
        let mut builder = IoUring::builder();
        configure(&mut builder);
        if let Some(idle) = sqpoll {
            // Without a value the kernel would take a second.
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
    // Timeouts of waits came with Linux 5.11, and repeated polls with 5.13. Resource tagging is
    // also of 5.13, and shows that the kernel has them.
    let params = ring.params();
    if params.is_feature_ext_arg() && params.is_feature_resource_tagging() {
        Ok(ring)
    } else {
        Err(Errno::NOSYS.into())
    }
}

/// The configurations, from the newest kernel to the oldest.
const CONFIGURATIONS: [fn(&mut Builder); 3] = [
    // 6.1: the kernel processes completions when the engine waits, all at once.
    |builder| {
        builder.setup_single_issuer().setup_defer_taskrun();
        builder.setup_taskrun_flag().setup_submit_all();
    },
    // 5.19: the kernel at least does not interrupt the engine for them.
    |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    },
    |_| {},
];

/// The configurations with a kernel thread, which takes the entries and processes completions. They
/// differ only in which threads may push.
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

/// Whether the kernel can change the length of a file through the ring (Linux 6.9 or newer). An
/// error if the kernel refuses all registrations, because completions could then not be signalled
/// to a watched engine.
pub(super) fn truncates(ring: &IoUring) -> io::Result<bool> {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    Ok(probe.is_supported(opcode::Ftruncate::CODE))
}

/// The limit of locked memory, in bytes, below which a program may get no ring. The largest ring of
/// an engine needs less.
const LOCKED_BYTES_MIN: u64 = 8 << 20;

/// Whether memory is short because this program may lock too little of it. Another try does not
/// help.
pub(super) fn may_lock_too_little(error: &io::Error) -> bool {
    let limit = getrlimit(Resource::Memlock).current;
    Errno::from_io_error(error) == Some(Errno::NOMEM)
        && limit.is_some_and(|bytes| bytes < LOCKED_BYTES_MIN)
}

/// Adds the remedy to an error of the set-up.
pub(super) fn explained(error: &io::Error) -> io::Error {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    io::Error::new(error.kind(), explain(error, disabled.trim()))
}

/// Explains why there is no ring, with the remedy. `disabled` is the content of
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
