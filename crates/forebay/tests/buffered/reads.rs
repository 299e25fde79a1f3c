//! Reads through the page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay::{DiskConfig, DiskRates, Op, Scheduler};
use rustix::fs::{Advice, fadvise};

use crate::{Bed, pattern};

/// Takes what is clean of a file out of memory, as far as that is possible.
fn forget(file: &File) {
    file.sync_all().unwrap();
    fadvise(file, 0, None, Advice::DontNeed).unwrap();
}

#[test]
fn a_read_has_what_the_file_has_whatever_is_in_memory() {
    let bed = Bed::new();
    let file = bed.file("data");
    let data = pattern(1_000_003);
    file.write_all_at(&data, 0).unwrap();
    let mut at = 1usize;
    for round in 0..2_000 {
        if round % 100 == 0 {
            forget(&file);
        }
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (offset, len) = ((at >> 16) % 1_010_000, (at >> 40) % 70_000);
        let mut read = vec![0; len];
        let got = bed.class.read_at(&file, &mut read, offset as u64).unwrap();
        let expected = &data[offset.min(data.len())..(offset + len).min(data.len())];
        assert_eq!(&read[..got], expected, "round {round}: {len} at {offset}");
    }
    let counters = bed.class.page_cache_counters();
    assert_eq!(counters.hits + counters.misses, 2_000);
    let told = bed.scheduler.snapshot().page_cache;
    assert_eq!(told.iter().find(|of| of.class == "class").unwrap().counters, counters);
    let refused = bed.class.read_at(&file, &mut [0; 10], u64::MAX).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    let closed = bed.class.read_at(File::create(bed.dir.path().join("w")).unwrap(), &mut [0], 0);
    assert_eq!(closed.unwrap_err().raw_os_error(), Some(libc::EBADF));
}

#[test]
fn a_large_read_has_a_permit_for_each_part() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let slow = DiskRates {
        read_iops: 1_000_000,
        write_iops: 1_000_000,
        read_bandwidth: 500_000_000,
        write_bandwidth: 500_000_000,
    };
    let disk = DiskConfig::new("disk", slow).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).build().unwrap();
    let disk = scheduler.disk("disk").unwrap();
    let class = scheduler.add_class("class", 100).unwrap().on(&disk).unwrap();
    let path = dir.path().join("data");
    let data = pattern(16 << 20);
    std::fs::write(&path, &data).unwrap();
    let file = File::open(&path).unwrap();
    forget(&file);
    let mut read = vec![0; data.len() + 1];
    assert_eq!(class.read_at(&file, &mut read, 0).unwrap(), data.len());
    assert!(read[..data.len()] == data[..]);
    let goal = disk.effective_goal().unwrap();
    let most = (goal.as_secs_f64() * 500e6) as u64;
    let counters = class.permit_counters();
    let (bytes, permits) =
        (counters.bytes[Op::Read.index()], counters.operations[Op::Read.index()]);
    assert!(bytes <= permits * most.max(128 << 10), "{permits} permits for {bytes} bytes");
    assert!(bytes >= data.len() as u64 / 2, "little of {bytes} bytes was in memory");
}
