//! Whether io_uring is allowed, and why not.

use crate::finding::Finding;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(refused) = &subject.environment.io_uring_refused else {
        return vec![Finding::fine("io_uring is allowed")];
    };
    let switch = subject.machine.number("proc/sys/kernel/io_uring_disabled");
    let status = subject.machine.text("proc/self/status").unwrap_or_default();
    let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    let filtered = seccomp.is_some_and(|mode| mode.trim() == "2");
    let fix = match switch {
        Some(1 | 2) => "sudo sysctl -w kernel.io_uring_disabled=0",
        _ if filtered => {
            "add io_uring_setup, io_uring_enter and io_uring_register to what the container's \
             seccomp profile allows"
        }
        _ => "see the reason given",
    };
    let switch = switch.map_or_else(|| "absent".into(), |switch| switch.to_string());
    let filter = if filtered { "a seccomp filter" } else { "no seccomp filter" };
    vec![
        Finding::warning(refused.as_str())
            .why(format!(
                "forebay then reads and writes direct files with linux-aio, and where that is refused \
                 too with a pool of threads, which costs two switches of thread per request \
                 (kernel.io_uring_disabled: {switch}; {filter} on this process)"
            ))
            .fix(fix),
    ]
}
