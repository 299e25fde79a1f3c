//! What the disks say about their sectors.

use crate::finding::Finding;
use crate::sources::WRITING_2025;
use crate::subject::Subject;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let disks = subject.disks();
    let sectors = disks.iter().filter_map(|disk| {
        let size = |name| disk.queue_number(subject.machine, name);
        Some((size("logical_block_size")?, size("physical_block_size")?))
    });
    let mut sectors: Vec<(u64, u64)> = sectors.collect();
    sectors.sort_unstable();
    sectors.dedup();
    let say = |(logical, physical): (u64, u64)| {
        if physical <= 512 && subject.is_solid() {
            return Finding::note(
                "the disk says that its sectors are of 512 bytes; flash may write 4096",
            )
            .why(
                "the firmware of new NVMe disks said 512 where the disk wrote 4096, and random \
                     writes of 1 KiB were slower than of 4 KiB",
            )
            .source(WRITING_2025)
            .fix(format!("forebay tune {}", subject.dir()));
        }
        let what = format!("sectors of {physical} bytes, addressed by {logical}");
        if logical < physical {
            return Finding::fine(format!("{what}: write multiples of {physical}"));
        }
        Finding::fine(what)
    };
    sectors.into_iter().map(say).collect()
}
