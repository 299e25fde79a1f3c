//! The kernel's I/O scheduler.

use crate::finding::Finding;
use crate::sources::KERNEL_SCHEDULERS_2024;
use crate::subject::{Subject, set_queue};

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let solid = subject.is_solid();
    let say = |(choices, disks): (String, String)| {
        // the one in use is in brackets; a lone word has no choice
        let inside = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let name = inside.map_or(choices.as_str(), |(name, _)| name);
        let what = format!("the kernel schedules {disks} with {name}");
        if !solid || name == "none" {
            return Finding::fine(what);
        }
        Finding::warning(what)
            .why(
                "it orders again what forebay has ordered, and takes up to 63 % of an NVMe disk's \
                 performance",
            )
            .source(KERNEL_SCHEDULERS_2024)
            .fix(set_queue(&disks, "scheduler", "none"))
    };
    subject.by_value("scheduler").into_iter().map(say).collect()
}
