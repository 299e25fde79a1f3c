//! Whether a write that is done is durable.

use crate::finding::Finding;
use crate::subject::{Subject, set_queue};

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let say = |(value, disks): (String, String)| match value.as_str() {
        "write back" => Finding::note(format!("{disks}: writes end in a cache of the disk"))
            .why(
                "a power failure takes what is in it, unless an fsync has flushed it, and other \
                 requests wait behind a flush",
            )
            .fix(format!(
                "{}   # only if power failures cannot reach the disk",
                set_queue(&disks, "write_cache", "'write through'")
            )),
        _ => Finding::fine(format!("{disks}: writes are durable when done")),
    };
    subject.by_value("write_cache").into_iter().map(say).collect()
}
