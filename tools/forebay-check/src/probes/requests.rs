//! How many requests the kernel lets into a disk.

use crate::finding::Finding;
use crate::sources::LATENCIES_2018;
use crate::subject::{Subject, set_queue};

/// What a solid disk of 95,000 operations per second serves in [`GOAL`].
const ENOUGH: u64 = 70;
/// In microseconds.
const GOAL: u64 = 750;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let solid = subject.is_solid();
    let depths = subject.disks_by(|disk| {
        let each = disk.queue_number(subject.machine, "nr_requests")?;
        Some((each, disk.hardware_queues(subject.machine)))
    });
    let say = |((each, queues), disks): ((u64, u64), String)| {
        let what = format!("the kernel takes {each} requests for {disks}");
        let what = if queues > 1 { format!("{what} in each of {queues} queues") } else { what };
        let all = each.saturating_mul(queues);
        if !solid || all >= ENOUGH {
            return Finding::fine(what);
        }
        Finding::note(what)
            .why(format!(
                "{all} requests of {GOAL} us are {} per second, and a solid disk may do more: \
                 95,000 take {ENOUGH}. Those above wait in the kernel, where nobody orders them",
                all * 1_000_000 / GOAL
            ))
            .source(LATENCIES_2018)
            .fix(format!("{}, as far as the disk lets it", set_queue(&disks, "nr_requests", "128")))
    };
    depths.into_iter().map(say).collect()
}
