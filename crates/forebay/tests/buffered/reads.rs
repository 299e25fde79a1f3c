//! Reads through the page cache.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;

use forebay::{Class, DiskConfig, DiskRates, Op, Scheduler};
use rustix::fs::{Advice, fadvise};
use rustix::io::ReadWriteFlags;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

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

/// As on Linux 5.9 and 5.10: `preadv2` returns 0 where a page is not in memory.
#[test]
fn a_read_without_waiting_that_finds_nothing_is_not_the_end_of_the_file() {
    let bed = Bed::new();
    let file = bed.file("data");
    let data = pattern(100_000);
    file.write_all_at(&data, 0).unwrap();
    let read = |class: &Class, offset: u64| {
        let mut read = vec![0; data.len()];
        let len = class.read_at(&file, &mut read, offset).unwrap();
        read.truncate(len);
        read
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let filter = SeccompFilter::new(
                [(libc::SYS_preadv2, Vec::new())].into(),
                SeccompAction::Allow,
                SeccompAction::Errno(0),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            seccompiler::apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
            for offset in [0, 8192, 99_999, 100_000, 200_000] {
                let expected = &data[data.len().min(offset)..];
                assert_eq!(read(&bed.class, offset as u64), expected, "from {offset} on");
            }
        });
    });
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

/// Whether memory has these pages, where the kernel says.
fn has(file: &File, pages: std::ops::Range<u64>) -> Option<bool> {
    for page in pages {
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut into, page * 4096, ReadWriteFlags::NOWAIT) {
            Ok(_) => {}
            Err(rustix::io::Errno::AGAIN) => return Some(false),
            Err(_) => return None,
        }
    }
    Some(true)
}

#[test]
fn prefetched_pages_are_in_memory_with_permits_and_none_is_read_twice() {
    let bed = Bed::new();
    let file = bed.file("data");
    let data = pattern((3 << 20) + 77);
    file.write_all_at(&data, 0).unwrap();
    let admitted = || bed.class.permit_counters().bytes[Op::Read.index()];
    forget(&file);
    let is_shown = has(&file, 300..301) == Some(false);
    bed.class.prefetch(&file, 4096..4096).unwrap();
    bed.class.prefetch(&file, 1 << 40..).unwrap();
    assert_eq!(admitted(), 0);
    bed.class.prefetch(&file, (1 << 20)..(2 << 20)).unwrap();
    let first = admitted();
    if is_shown {
        assert_eq!(has(&file, 256..512), Some(true));
        assert!(first >= 1 << 20, "{first} bytes had a permit");
        // what the kernel read ahead is charged, and is no more than that
        assert!(first <= 2 << 20, "{first} bytes had a permit");
        bed.class.prefetch(&file, (1 << 20)..=(2 << 20) - 1).unwrap();
        assert_eq!(admitted(), first);
    }
    bed.class.prefetch(&file, ..).unwrap();
    assert_ne!(has(&file, 0..769), Some(false));
    let mut read = vec![0; data.len()];
    assert_eq!(bed.class.read_at(&file, &mut read, 0).unwrap(), data.len());
    assert!(read == data);
    let closed = bed.class.prefetch(File::create(bed.dir.path().join("w")).unwrap(), ..);
    assert!(closed.is_ok(), "an empty file has nothing to bring in");
}
