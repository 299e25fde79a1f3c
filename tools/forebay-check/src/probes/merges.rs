//! Whether the kernel looks for requests to merge.

use crate::finding::Finding;
use crate::subject::{Subject, set_queue};

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let solid = subject.is_solid();
    let say = |(value, disks): (String, String)| {
        let what = match value.as_str() {
            "0" => format!("the kernel merges requests to {disks}"),
            "1" => format!("the kernel merges plain neighbours among requests to {disks}"),
            _ => format!("the kernel does not merge requests to {disks}"),
        };
        if !solid || value == "2" {
            return Finding::fine(what);
        }
        Finding::note(what)
            .why(
                "an engine that sends requests of the size it wants pays for the search and gains \
                 nothing, and measurements of small sequential requests show large ones",
            )
            .fix(set_queue(&disks, "nomerges", "2"))
    };
    subject.by_value("nomerges").into_iter().map(say).collect()
}
