//! Reads through the page cache, and what the disk counts of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use forebay::{Class, Op};
use rustix::fs::{Advice, fadvise};

use crate::loop_mount::{Lab, listing};
use crate::places::overlay;

const MIB: u64 = 1 << 20;

/// Bytes that the disk has read, also of what was read ahead a moment ago. A file system may hand that
/// to the disk a little later, by a thread of the kernel, so the count has to stay for 50 ms.
fn disk_read(device: &str) -> u64 {
    const STABLE_SAMPLES: u32 = 5;
    let name = device.trim_start_matches("/dev/");
    let field = |file: &str, number: usize| -> u64 {
        let text = std::fs::read_to_string(format!("/sys/block/{name}/{file}")).unwrap();
        text.split_whitespace().nth(number).unwrap().parse().unwrap()
    };
    let (mut sectors, mut same) = (field("stat", 2), 0);
    while same < STABLE_SAMPLES {
        thread::sleep(Duration::from_millis(10));
        let now = field("stat", 2);
        same = if now == sectors && field("inflight", 0) == 0 { same + 1 } else { 0 };
        sectors = now;
    }
    sectors * 512
}

fn charged(class: &Class) -> u64 {
    class.permit_counters().bytes[Op::Read.index()]
}

fn permits(class: &Class) -> u64 {
    class.permit_counters().operations[Op::Read.index()]
}

fn cold_file(path: &std::path::Path, len: u64) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.unwrap();
    (0..len / MIB).for_each(|n| file.write_all_at(&vec![n as u8; 1 << 20], n * MIB).unwrap());
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    file
}

pub(crate) fn reads_of_the_disk_in_a_cold_run_are_charged() {
    for kind in ["ext4", "btrfs"] {
        let lab = Lab::new(256 * MIB);
        let on = lab.mounted(kind, &lab.device, "disk");
        let scheduler = listing(&on).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let file = cold_file(&on.join("data"), 64 * MIB);
        // in an order of its own, and from the beginning to the end
        for (order, len) in
            [(Some(7_919), 4096), (Some(1_009), 65_536), (None, 4096), (None, 65_536)]
        {
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            let (before, read) = (charged(&class), disk_read(&lab.device));
            let count = 64 * MIB / len;
            let mut buffer = vec![0; len as usize];
            for n in 0..count / 4 {
                let place = order.map_or(n, |step| n * step % count);
                let got = class.read_at(&file, &mut buffer, place * len).unwrap();
                assert_eq!((got as u64, buffer[0]), (len, (place * len / MIB) as u8));
            }
            let charged = charged(&class) - before;
            let read = disk_read(&lab.device) - read;
            let case = format!("{kind}, {len} in order {order:?}: {read} read, {charged} charged");
            eprintln!("{case}");
            assert!(read >= 15 * MIB && charged as f64 >= 0.98 * read as f64, "{case}");
            assert!(charged as f64 <= 1.1 * read as f64, "{case}");
        }
    }
}

pub(crate) fn a_read_within_pages_has_one_permit_for_all_of_them() {
    let lab = Lab::new(256 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let file = cold_file(&on.join("data"), 64 * MIB);
    fadvise(&file, 0, None, Advice::Random).unwrap();
    for (within, len) in [(0, 4096), (100, 100), (4000, 200), (1234, 4096), (77, 9000), (1, 60_000)]
    {
        let mut buffer = vec![0; len as usize];
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let (before, read) = ((permits(&class), charged(&class)), disk_read(&lab.device));
        for n in 0..100 {
            let offset = (n * 37 % 128) * MIB / 2 + 65_536 + within;
            assert_eq!(class.read_at(&file, &mut buffer, offset).unwrap() as u64, len);
        }
        let read = disk_read(&lab.device) - read;
        let pages = (within + len).div_ceil(4096) * 4096 * 100;
        let had = (permits(&class) - before.0, charged(&class) - before.1);
        assert_eq!(had, (100, pages), "{len} bytes from {within} on");
        // ext4 reads its 32 block bitmaps of 1 KiB in the background after the mount.
        let expected = pages..=pages + 32 * 1024;
        assert!(expected.contains(&read), "{len} bytes from {within} on: {read} read");
    }
}

pub(crate) fn a_read_from_memory_costs_nothing() {
    let lab = Lab::new(64 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let file = cold_file(&on.join("data"), 16 * MIB);
    file.read_exact_at(&mut vec![0; 16 << 20], 0).unwrap();
    let mut buffer = [0; 4096];
    for n in 0..4096 {
        class.read_at(&file, &mut buffer, n * 7_919 % 4096 * 4096).unwrap();
    }
    // The kernel may reclaim pages meanwhile: such reads are misses, and they alone have permits.
    let counters = class.page_cache_counters();
    assert_eq!((counters.hits + counters.misses, permits(&class)), (4096, counters.misses));
    assert!(counters.misses < 64, "{} of 4,096 reads from memory missed", counters.misses);
}

pub(crate) fn a_miss_among_hits_is_charged_with_whole_pages() {
    let lab = Lab::new(64 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let file = cold_file(&on.join("data"), 16 * MIB);
    // page by page, for memory forgets what it took at once only at once
    fadvise(&file, 0, None, Advice::Random).unwrap();
    (0..4096).for_each(|n| file.read_exact_at(&mut [0; 4096], n * 4096).unwrap());
    for n in 0..1000 {
        class.read_at(&file, &mut [0; 100], n * 7_919 % 4096 * 4096).unwrap();
    }
    for (n, within, len, pages) in
        [(1, 0, 4096, 1), (2, 100, 100, 1), (3, 4000, 200, 2), (4, 1, 8191, 2)]
    {
        fadvise(&file, n * MIB, std::num::NonZeroU64::new(8192), Advice::DontNeed).unwrap();
        let so_far = || (permits(&class), charged(&class), class.page_cache_counters().misses);
        let before = so_far();
        class.read_at(&file, &mut vec![0; len], n * MIB + within).unwrap();
        let after = so_far();
        let had = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
        assert_eq!(had, (1, pages * 4096, 1), "{len} bytes from {within} on");
    }
}

pub(crate) fn a_cold_file_under_the_number_of_a_warm_one_is_charged() {
    let lab = Lab::new(128 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let warm = cold_file(&on.join("warm"), MIB);
    warm.read_exact_at(&mut vec![0; 1 << 20], 0).unwrap();
    let mut number = std::os::fd::OwnedFd::from(warm.try_clone().unwrap());
    for (len, offset) in [(4096, 0), (65_536, 0), (1 << 18, 0), (1 << 20, 0), (5_000, 100)] {
        rustix::io::dup2(&warm, &mut number).unwrap();
        let mut buffer = vec![0; len as usize];
        for n in 1..200 {
            class.read_at(&number, &mut buffer[..9], n * 5_000).unwrap();
        }
        let cold = cold_file(&on.join(len.to_string()), 4 * MIB);
        rustix::io::dup2(&cold, &mut number).unwrap();
        let (before, read) = (charged(&class), disk_read(&lab.device));
        class.read_at(&number, &mut buffer, offset).unwrap();
        let (charged, read) = (charged(&class) - before, disk_read(&lab.device) - read);
        eprintln!("{len} from {offset} on: {read} read, {charged} charged");
        assert!(read >= len && charged as f64 >= 0.98 * read as f64, "{charged} of {read}");
    }
}

pub(crate) fn each_read_of_an_overlay_has_a_permit() {
    let lab = Lab::new(64 * MIB);
    let (merged, on) = overlay(&lab);
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let file = cold_file(&merged.join("data"), MIB);
    for n in 0..100 {
        let mut buffer = [1; 4096];
        class.read_at(&file, &mut buffer, n * 4096).unwrap();
        assert_eq!(buffer, [0; 4096]);
    }
    assert_eq!(class.page_cache_counters().misses, 100);
    assert!(charged(&class) >= 100 * 4096);
}
