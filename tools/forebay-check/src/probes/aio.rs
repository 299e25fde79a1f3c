//! Whether programs that use Linux AIO get enough of it.

use forebay_block::Machine;

use crate::finding::Finding;
use crate::subject::Subject;

/// What an engine of Seastar's kind asks for on each processor, for files alone.
const PER_CPU: u64 = 1024;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let number = |name: &str| subject.machine.number(format!("proc/sys/fs/{name}"));
    let (Some(max), Some(used)) = (number("aio-max-nr"), number("aio-nr")) else {
        return subject.unknown("proc/sys/fs/aio-max-nr", "fs.aio-max-nr");
    };
    let free = max.saturating_sub(used);
    let wanted = cpus(subject.machine).saturating_mul(PER_CPU);
    let what = format!("fs.aio-max-nr is {max}, of which {used} are in use");
    if free >= wanted {
        return vec![Finding::fine(what)];
    }
    vec![
        Finding::warning(what)
            .why(format!(
                "thread-per-core engines on Linux AIO ask for {PER_CPU} per processor, {wanted} \
                 here, and end at start when they do not get them; forebay itself needs \
                 some only where io_uring is refused"
            ))
            .fix("sudo sysctl -w fs.aio-max-nr=1048576"),
    ]
}

/// How many processors run.
fn cpus(machine: &Machine) -> u64 {
    let list = machine.text("sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse().ok()?);
        u64::checked_sub(last, first).map(|more| more + 1)
    };
    list.split(',').filter_map(count).sum::<u64>().max(1)
}
