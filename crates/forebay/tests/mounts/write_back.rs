//! What is written through the page cache, on file systems of several kinds.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use forebay::{Class, Op, PageCacheSupport, Scheduler};
use forebay_serve::{ServeConfig, Served};

use crate::loop_mount::{Lab, listing, mount};
use crate::places::overlay;
use crate::served::fast_disk;

const MIB: u64 = 1 << 20;

pub(crate) fn file(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Bytes of a file that are dirty in memory or on their way to the disk, and all that are in memory.
fn residency(file: &File) -> [u64; 2] {
    let (range, mut seen) = ([0u64; 2], [0u64; 5]);
    // SAFETY: `cachestat(2)` with an open descriptor and two arrays of its size.
    let result =
        unsafe { libc::syscall(451, file.as_raw_fd(), range.as_ptr(), seen.as_mut_ptr(), 0) };
    assert_eq!(result, 0, "cachestat");
    [(seen[1] + seen[2]) * 4096, seen[0] * 4096]
}

fn admitted(class: &Class, op: Op) -> u64 {
    let counters = class.permit_counters();
    if op == Op::Flush { counters.operations[op.index()] } else { counters.bytes[op.index()] }
}

pub(crate) fn the_probe_says_what_works_by_what_it_does() {
    let (ext4, btrfs) = (Lab::new(64 * MIB), Lab::new(256 * MIB));
    let (merged, on) = overlay(&ext4);
    let memory = ext4.dir("memory");
    mount(&["-t", "tmpfs", "none"], &memory);
    let support = |dir: &Path| PageCacheSupport::of_directory(dir).unwrap();
    let own = support(&on);
    assert!(own.residency && own.dirty_pages && own.ranges && own.reads_without_waiting, "{own:?}");
    let btrfs = support(&btrfs.mounted("btrfs", &btrfs.device, "disk"));
    assert!(btrfs.ranges, "{btrfs:?}");
    let merged = support(&merged);
    assert!(!(merged.residency || merged.dirty_pages || merged.ranges || merged.uncached_writes));
    assert!(!merged.reads_without_waiting, "{merged:?}");
    let memory = support(&memory);
    assert!(memory.residency && !memory.dirty_pages && !memory.ranges, "{memory:?}");
}

pub(crate) fn a_part_is_clean_before_its_permit_ends() {
    let labs = [("ext4", Lab::new(128 * MIB)), ("btrfs", Lab::new(256 * MIB))];
    for (kind, lab) in labs {
        let on = lab.mounted(kind, &lab.device, "disk");
        let scheduler = listing(&on).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let seen = file(&on.join("data"));
        let writer = class.buffered_writer(file(&on.join("data"))).unwrap();
        let mut looks = 0;
        for round in 0..4 {
            let before = admitted(&class, Op::Write);
            writer.write_all_at(&vec![round; 12 << 20], 0).unwrap();
            writer.write_back().unwrap();
            loop {
                // first what has ended, then what is dirty still: the kernel counts a page twice
                // while its writeback begins, and once when it is asked again
                let ended = admitted(&class, Op::Write) - before;
                let dirty = (0..4).map(|_| residency(&seen)[0]).min().unwrap();
                assert!(dirty + ended <= 12 * MIB, "{kind}: {ended} ended, {dirty} dirty");
                looks += u64::from(ended > 0 && ended < 12 * MIB);
                if ended == 12 * MIB {
                    assert_eq!(dirty, 0, "{kind}");
                    let in_memory = residency(&seen)[1];
                    assert!(in_memory > 11 * MIB, "{kind}: dropped, with {in_memory} left");
                    break;
                }
            }
        }
        eprintln!("{kind}: {looks} looks in between");
        drop((writer, seen));
    }
}

pub(crate) fn flushes_and_cuts_by_others_change_neither_the_dirty_bound_nor_the_flushes() {
    let lab = Lab::new(128 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    for sync in ["nothing", "fdatasync", "syncfs", "cut"] {
        let engine = file(&on.join("data"));
        let writer = class.buffered_writer(&engine).unwrap().with_dirty_max(4 * MIB);
        for page in 0..16 {
            writer.write_all_at(&[7; 4096], page << 21).unwrap();
            if sync == "fdatasync" {
                engine.sync_data().unwrap();
            }
        }
        if sync == "syncfs" || sync == "cut" {
            // the parts wait for a permit during this
            let held = class.admit(Op::Read, 512 << 20).unwrap().detach();
            writer.write_all_at(&vec![7; 3 << 20], 0).unwrap();
            writer.write_back().unwrap();
            match sync {
                "cut" => engine.set_len(0).unwrap(),
                _ => rustix::fs::syncfs(&engine).unwrap(),
            }
            drop(held);
        }
        writer.sync_data().unwrap();
        let flushes = admitted(&class, Op::Flush);
        let (data, mut dirty) = (vec![9; 1 << 20], 0);
        for part in 0..48 {
            writer.write_all_at(&data, part << 20).unwrap();
            // what is dirty is counted until it is not, so this first
            dirty = dirty.max(residency(&engine)[0]);
            assert!(dirty <= 5 * MIB, "{sync}: {dirty} bytes dirty, {} known", writer.dirty());
        }
        assert!(dirty > 0, "{sync}");
        writer.sync_data().unwrap();
        assert_eq!(admitted(&class, Op::Flush), flushes + 1, "{sync}");
        drop(writer);
        engine.set_len(0).unwrap();
    }
}

pub(crate) fn a_write_that_fuse_cuts_within_a_sector_goes_in_shorter_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config = ServeConfig { realtime: false, ..ServeConfig::new(16 * MIB) };
    let served = match Served::mount(fast_disk(), &config, dir.path()) {
        Ok(served) => served,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let class = Scheduler::builder().build().unwrap().add_class("class", 100).unwrap();
    let disk = file(served.path());
    let writer = class.buffered_writer(&disk).unwrap();
    let memory: Vec<u8> = (0..(3 << 20) + 8192).map(|n: u32| (n / 512) as u8).collect();
    for within_page in [0, 16, 512, 4080] {
        let to_page = memory.as_ptr().align_offset(4096);
        let data = &memory[to_page + within_page..][..3 << 20];
        writer.write_all_at(data, MIB).unwrap();
        writer.sync_data().unwrap();
        let mut read = vec![0; data.len()];
        for piece in 0..24 {
            let at = piece * (128 << 10);
            disk.read_exact_at(&mut read[at..][..128 << 10], MIB + at as u64).unwrap();
        }
        assert!(read == data, "{within_page}");
    }
}

pub(crate) fn a_file_of_an_overlay_is_written_back_with_flushes() {
    let lab = Lab::new(64 * MIB);
    let (merged, on) = overlay(&lab);
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let writer = class.buffered_writer(file(&merged.join("data"))).unwrap();
    writer.write_all_at(&vec![7; 4 << 20], 0).unwrap();
    writer.write_back().unwrap();
    while writer.dirty() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let upper = File::open(on.join("upper/data")).unwrap();
    assert_eq!(residency(&upper), [0, 4 * MIB], "the overlay says nothing, its upper file does");
    assert_eq!(admitted(&class, Op::Write), 4 * MIB);
    assert!(admitted(&class, Op::Flush) > 0, "a flush for each part");
    writer.sync_data().unwrap();
}

pub(crate) fn a_file_in_memory_is_written_as_it_always_was() {
    let lab = Lab::new(32 * MIB);
    let memory = lab.dir("memory");
    mount(&["-t", "tmpfs", "none"], &memory);
    let scheduler = listing(&memory).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let writer = class.buffered_writer(file(&memory.join("data"))).unwrap();
    for round in 0..20 {
        writer.write_all_at(&vec![round; 2 << 20], 0).unwrap();
        writer.sync_data().unwrap();
    }
    assert_eq!(fs::read(memory.join("data")).unwrap(), vec![19; 2 << 20]);
}
