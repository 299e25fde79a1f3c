//! Whether requests can bypass the page cache, and how they must be aligned.

use forebay_block::{Backing, BlockDevice};

use crate::environment::Direct;
use crate::finding::Finding;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let io = match &subject.environment.io {
        Ok(io) => io,
        Err(why) => return vec![Finding::unknown(format!("direct I/O: {why}"))],
    };
    if Backing::of(subject.kind()) == Backing::Program && io.direct != Direct::Refused {
        return vec![Finding::unknown(
            "direct I/O: whether it reaches a disk, the program decides",
        )];
    }
    let physical = |disk: &BlockDevice| disk.queue_number(subject.machine, "physical_block_size");
    let sector = subject.disks().into_iter().filter_map(physical).max().unwrap_or(0);
    vec![match io.direct {
        Direct::Refused => Finding::error(format!("{} refuses direct I/O", subject.kind()))
            .why(
                "every request then goes through the page cache: reads may never reach the disk, \
                 and writes end before they do, so their disk time cannot be known",
            )
            .fix("name a directory on xfs or ext4"),
        Direct::Unsaid => Finding::fine(
            "direct I/O, but neither kernel nor filesystem says for which alignment: use 4096",
        ),
        Direct::Aligned { memory, offset } if offset < sector => Finding::fine(format!(
            "direct I/O by multiples of {offset} bytes, memory by {memory}; below {sector} the \
             disk reads, changes and writes back"
        )),
        Direct::Aligned { memory, offset } => {
            Finding::fine(format!("direct I/O by multiples of {offset} bytes, memory by {memory}"))
        }
    }]
}
