//! A simulated disk as a file, through the kernel.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod disks;
mod harness;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use disks::Scripted;
use forebay_core::Op;
use forebay_serve::{ServeConfig, Served, WriteCacheConfig};
use harness::named;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use tempfile::TempDir;

const CAPACITY: u64 = 64 << 20;

fn main() -> ExitCode {
    let anywhere = named![unservable_disks_are_refused_with_advice];
    let mounting = named![
        written_data_is_read_back_in_small_and_large_requests,
        several_threads_at_once_read_what_each_has_written,
        a_bad_range_fails_and_the_rest_does_not,
        requests_that_are_not_aligned_to_the_sector_are_refused,
        discards_and_flushes_reach_the_disk,
        a_hanging_request_waits_while_others_go_and_ends_when_the_disk_says_so,
        the_end_fails_what_hangs_and_leaves_nothing_mounted,
        flushed_writes_survive_a_power_cut_and_some_others_are_lost,
    ];
    let on_loop_device = named![a_flush_of_a_block_device_is_one_of_the_disk];
    harness::run(&anywhere, &mounting, &on_loop_device)
}

fn config(sector: u32) -> ServeConfig {
    ServeConfig { sector, realtime: false, ..ServeConfig::new(CAPACITY) }
}

/// Mounts a disk. It comes last, so that it is dropped before the directory.
fn serve(disk: Scripted, sector: u32) -> (TempDir, Served) {
    let mountpoint = TempDir::new().unwrap();
    let served = Served::mount(Box::new(disk), &config(sector), mountpoint.path()).unwrap();
    (mountpoint, served)
}

/// Opened as programs open a disk, past the page cache.
fn open(path: &Path) -> File {
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(direct).open(path).unwrap()
}

fn read(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0xEE; len];
    file.read_exact_at(&mut data, offset).map(|()| data)
}

fn code(result: io::Result<impl Sized>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

/// Waits for something that another thread is about to do.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

fn written_data_is_read_back_in_small_and_large_requests() {
    let (_mountpoint, served) = serve(Scripted::default(), 512);
    assert_eq!(served.path().metadata().unwrap().len(), CAPACITY);
    let file = open(served.path());
    let data: Vec<u8> = (0..512 << 10).map(|i: u32| (i / 512) as u8).collect();
    file.write_all_at(&data, 1 << 20).unwrap();
    assert_eq!(read(&file, 1 << 20, data.len()).unwrap(), data);
    assert_eq!(read(&file, (1 << 20) + 512, 4096).unwrap(), data[512..4608]);
    assert_eq!(read(&file, 0, 4096).unwrap(), [0; 4096], "never written");
    assert_eq!(file.read_at(&mut [0; 512], CAPACITY).unwrap(), 0, "the end");
    assert_eq!(code(file.write_at(&[0; 512], CAPACITY)), Some(Errno::NOSPC));
    let stats = served.stats();
    assert_eq!(stats.of(Op::Write).bytes, data.len() as u64);
    assert_eq!(stats.of(Op::Read).bytes, data.len() as u64 + 2 * 4096);
}

fn several_threads_at_once_read_what_each_has_written() {
    let (_mountpoint, served) = serve(Scripted::default(), 4096);
    thread::scope(|scope| {
        for lane in 0..8u8 {
            let file = open(served.path());
            scope.spawn(move || {
                for request in 0..50u64 {
                    let offset = (u64::from(lane) * 50 + request) * 65536;
                    file.write_all_at(&[lane + 1; 65536], offset).unwrap();
                    assert_eq!(read(&file, offset, 65536).unwrap(), [lane + 1; 65536]);
                }
            });
        }
    });
    assert_eq!(served.stats().of(Op::Write).bytes, 400 * 65536);
    assert_eq!(served.stats().in_flight, 0);
}

fn a_bad_range_fails_and_the_rest_does_not() {
    let disk = Scripted::failing(8192..16384);
    let (_mountpoint, served) = serve(disk, 512);
    let file = open(served.path());
    assert_eq!(code(read(&file, 8192, 4096)), Some(Errno::IO));
    assert_eq!(code(file.write_at(&[1; 4096], 12288)), Some(Errno::IO));
    assert_eq!(read(&file, 4096, 4096).unwrap(), [0; 4096]);
    file.write_all_at(&[1; 4096], 16384).unwrap();
    let stats = served.stats();
    assert_eq!((stats.of(Op::Read).failed, stats.of(Op::Write).failed), (1, 1));
    assert_eq!((stats.of(Op::Read).completed, stats.of(Op::Write).completed), (2, 2));
}

fn requests_that_are_not_aligned_to_the_sector_are_refused() {
    let (_mountpoint, served) = serve(Scripted::default(), 4096);
    let file = open(served.path());
    for (offset, len) in [(512, 4096), (0, 512), (4096, 4096 + 512)] {
        assert_eq!(code(read(&file, offset, len)), Some(Errno::INVAL), "{offset} {len}");
        let data = vec![1; len];
        assert_eq!(code(file.write_at(&data, offset)), Some(Errno::INVAL), "{offset} {len}");
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&file, flags, 512, 4096), Err(Errno::INVAL));
    assert_eq!(served.stats().of(Op::Read).completed, 0, "the disk has seen nothing");
}

fn discards_and_flushes_reach_the_disk() {
    let (_mountpoint, served) = serve(Scripted::default(), 512);
    let file = open(served.path());
    file.write_all_at(&[7; 16384], 0).unwrap();
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, flags, 4096, 8192).unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    let expected = [[7; 4096], [0; 4096], [0; 4096], [7; 4096]].concat();
    assert_eq!(read(&file, 0, 16384).unwrap(), expected);
    assert_eq!(fallocate(&file, FallocateFlags::empty(), 0, 4096), Err(Errno::OPNOTSUPP));
    let stats = served.stats();
    assert_eq!((stats.of(Op::Discard).completed, stats.of(Op::Discard).bytes), (1, 8192));
    assert_eq!((stats.of(Op::Flush).completed, stats.of(Op::Flush).bytes), (2, 0));
}

fn a_hanging_request_waits_while_others_go_and_ends_when_the_disk_says_so() {
    let disk = Scripted::hanging(4096..8192);
    let (_mountpoint, served) = serve(disk, 512);
    let file = open(served.path());
    thread::scope(|scope| {
        let hanging = scope.spawn(|| read(&file, 4096, 4096));
        until(|| served.stats().in_flight == 1);
        let other = open(served.path());
        assert_eq!(read(&other, 0, 4096).unwrap(), [0; 4096]);
        assert_eq!(served.stats().in_flight, 1);
        assert!(!hanging.is_finished());
        other.sync_all().unwrap();
        assert_eq!(hanging.join().unwrap().unwrap(), [0; 4096]);
    });
}

fn the_end_fails_what_hangs_and_leaves_nothing_mounted() {
    let disk = Scripted::hanging(4096..8192);
    let (mountpoint, served) = serve(disk, 512);
    let path = mountpoint.path().canonicalize().unwrap();
    let is_mounted = || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.lines().any(|line| line.contains(path.to_str().unwrap()))
    };
    assert!(is_mounted());
    let file = open(served.path());
    let hanging = thread::spawn(move || code(read(&file, 4096, 4096)));
    until(|| served.stats().in_flight == 1);
    drop(served);
    assert_eq!(hanging.join().unwrap(), Some(Errno::IO));
    assert!(!is_mounted());
    assert_eq!(path.read_dir().unwrap().count(), 0);
}

fn flushed_writes_survive_a_power_cut_and_some_others_are_lost() {
    let mountpoint = TempDir::new().unwrap();
    let write_cache = Some(WriteCacheConfig { size: 16 << 20, seed: 7 });
    let config = ServeConfig { write_cache, ..config(4096) };
    let disk = Box::<Scripted>::default();
    let served = Served::mount(disk, &config, mountpoint.path()).unwrap();
    let (mut lost, mut kept) = (0, 0);
    for cut in 1..=20u8 {
        let file = open(served.path());
        for block in 0..64 {
            file.write_all_at(&[cut; 4096], block * 8192).unwrap();
        }
        file.sync_data().unwrap();
        served.cut_power_after(40);
        let failed =
            (0..64).find(|block| file.write_at(&[cut; 4096], block * 8192 + 4096).is_err());
        assert_eq!(failed, Some(39));
        assert_eq!(code(read(&file, 0, 4096)), Some(Errno::IO));
        assert_eq!(code(file.sync_data()), Some(Errno::IO));
        assert!(served.write_cache().unwrap().is_off);
        served.restore_power().unwrap();
        for block in 0..64 {
            assert_eq!(read(&file, block * 8192, 4096).unwrap(), [cut; 4096], "{cut}: {block}");
            let unflushed = read(&file, block * 8192 + 4096, 4096).unwrap()[0];
            assert!(unflushed <= cut && (block < 40 || unflushed < cut));
            *(if unflushed == cut { &mut kept } else { &mut lost }) += u64::from(block < 40);
        }
    }
    let stats = served.write_cache().unwrap();
    assert_eq!((stats.cuts, stats.lost, stats.kept, stats.unflushed), (20, lost, kept, 0));
    assert!(lost > 100 && kept > 100, "{lost} {kept}");
}

fn a_flush_of_a_block_device_is_one_of_the_disk() {
    let (_mountpoint, served) = serve(Scripted::default(), 4096);
    let losetup = |arguments: &[&str]| {
        let output = Command::new("losetup").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let path = served.path().to_str().unwrap();
    let device = losetup(&["--find", "--show", "--direct-io=on", "--sector-size", "4096", path]);
    let file = File::options().write(true).open(&device).unwrap();
    let before = served.stats().of(Op::Flush).completed;
    for round in 1..=5 {
        file.write_all_at(&[round; 65536], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(served.stats().of(Op::Write).bytes, u64::from(round) * 65536, "at the disk");
        assert_eq!(served.stats().of(Op::Flush).completed, before + u64::from(round));
    }
    drop(file);
    losetup(&["--detach", &device]);
}

fn unservable_disks_are_refused_with_advice() {
    let mountpoint = TempDir::new().unwrap();
    let refusal = |config: &ServeConfig, path: &Path| {
        let mounted = Served::mount(Box::new(Scripted::default()), config, path);
        mounted.err().unwrap().to_string()
    };
    let missing = mountpoint.path().join("missing");
    assert!(refusal(&config(512), &missing).contains("create an empty directory"));
    assert!(refusal(&config(1024), mountpoint.path()).contains("use 512 or 4096"));
    let uneven = ServeConfig { capacity: 1000, ..config(512) };
    assert!(refusal(&uneven, mountpoint.path()).contains("a multiple of the sector"));
    std::fs::write(mountpoint.path().join("file"), "").unwrap();
    assert!(refusal(&config(512), mountpoint.path()).contains("not empty"));
}
