//! Whether the kernel takes the disks for what they are.

use crate::finding::Finding;
use crate::sources::MIXED_2022;
use crate::subject::{Subject, set_queue};

/// Disks of these names are never hard disks, or nobody knows.
const VIRTUAL: [&str; 5] = ["nvme", "vd", "xvd", "loop", "zram"];

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let say = |(value, disks): (String, String)| {
        if value != "1" {
            return Finding::fine(format!("{disks}: solid state"));
        }
        if VIRTUAL.iter().any(|prefix| disks.starts_with(prefix)) {
            return Finding::note(format!("the kernel takes {disks} for a hard disk"))
                .why(
                    "drivers say so where they know nothing; filesystems and kernel schedulers \
                     then keep requests in order, which solid disks do not need",
                )
                .fix(set_queue(&disks, "rotational", "0"));
        }
        Finding::note(format!("{disks}: a hard disk"))
            .why(
                "reads and writes share it in a straight line up to 100 MB/s of writes; beyond \
                 that, reads get nothing. Its latency is some 10 ms, so it is known before it is \
                 scheduled",
            )
            .source(MIXED_2022)
            .fix(format!("forebay tune {}", subject.dir()))
    };
    subject.by_value("rotational").into_iter().map(say).collect()
}
