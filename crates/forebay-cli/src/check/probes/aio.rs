//! Whether programs that use Linux AIO get enough of it.

use super::super::finding::Finding;
use super::super::subject::Subject;

/// What an engine of Seastar's kind asks for on each processor, for files alone.
const PER_CPU: u64 = 1024;

pub(super) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let number = |name: &str| subject.machine.number(format!("proc/sys/fs/{name}"));
    let (Some(max), Some(used)) = (number("aio-max-nr"), number("aio-nr")) else {
        return subject.unseen("proc/sys/fs/aio-max-nr", "fs.aio-max-nr");
    };
    let free = max.saturating_sub(used);
    let wanted = subject.machine.cpus().saturating_mul(PER_CPU);
    let what = format!("fs.aio-max-nr is {max}, of which {used} are in use");
    if free >= wanted {
        return vec![Finding::fine(what)];
    }
    vec![
        Finding::warning(what)
            .why(format!(
                "thread-per-core engines on Linux AIO ask for {PER_CPU} per processor, {wanted} \
                 here, and end at start when they do not get them; forebay itself needs none"
            ))
            .mend("sudo sysctl -w fs.aio-max-nr=1048576"),
    ]
}
