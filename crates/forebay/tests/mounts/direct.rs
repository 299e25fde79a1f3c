//! Files past the page cache, and what a file system makes of their requests.

use forebay::engine::Retries;
use forebay::{AlignedBuf, Class, File, FileOptions, Op, Scheduler};

use crate::loop_mount::{Lab, listing};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;
/// Blocks of a file.
const COUNT: u64 = 64;

fn retries(scheduler: &Scheduler) -> Retries {
    scheduler.snapshot().disks.iter().find(|disk| disk.name == "disk").unwrap().retries
}

/// Reads the first blocks of a file in turn; returns the retries.
fn pass(scheduler: &Scheduler, file: &File, class: &Class, op: Op, count: u64) -> Retries {
    let before = retries(scheduler);
    for at in (0..count).map(|n| n * BLOCK) {
        let buffer = AlignedBuf::new(BLOCK as usize, BLOCK as usize).unwrap();
        let done = match op {
            Op::Read => file.read_at(class, buffer, at).wait().into_result(),
            _ => file.write_at(class, buffer, at).wait().into_result(),
        };
        assert_eq!(done.unwrap().0 as u64, BLOCK);
    }
    let after = retries(scheduler);
    Retries { reads: after.reads - before.reads, writes: after.writes - before.writes }
}

/// ext4 and XFS allocate where they may block, and write over blocks and read them where they do
/// not. XFS blocks also to update the times of a file, which it does once per tick of the kernel's
/// clock: no write between two ticks is counted.
pub(crate) fn writes_that_a_thread_of_the_kernel_does_are_counted() {
    for kind in ["ext4", "xfs"] {
        let lab = Lab::new(512 * MIB);
        let on = lab.mounted(kind, &lab.device, "disk");
        let scheduler = listing(&on).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let options = FileOptions::new().read(true).write(true).create(true);
        let file = scheduler.open(on.join("data"), &options).unwrap();
        assert!(file.direct_file().is_direct(), "{kind}");
        let appends = pass(&scheduler, &file, &class, Op::Write, COUNT);
        assert_eq!(appends, Retries { reads: 0, writes: COUNT }, "{kind}");
        file.sync_all(&class).wait().unwrap();
        let mut overwrites = (0..1000).map(|_| pass(&scheduler, &file, &class, Op::Write, 8));
        assert!(overwrites.any(|pass| pass == Retries::default()), "{kind}: each pass blocks");
        let reads = pass(&scheduler, &file, &class, Op::Read, COUNT);
        assert_eq!(reads, Retries::default(), "{kind}");
    }
}
