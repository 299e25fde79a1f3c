//! Writers through the page cache where space runs out, and where others are at their file at the
//! same time.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{AlignedBuf, BufferedWriter, Class, Scheduler};
use rustix::fs::{Advice, FallocateFlags, OFlags, fadvise, fallocate, ftruncate};

use crate::failures::error_number;
use crate::loop_mount::{Lab, listing, mount, system, unmount};
use crate::places::overlay;

const MIB: u64 = 1 << 20;
/// What is written, and what others write, in turns.
const BLOCK: u64 = 64 << 10;
/// Such blocks of each, and then the end of the file.
const BLOCKS: u64 = 64;

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn open_direct(path: &Path) -> File {
    let flags = OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// The one byte that a piece of the file consists of.
fn byte_at(file: &File, range: Range<u64>) -> Option<u8> {
    let mut piece = AlignedBuf::new((range.end - range.start) as usize, 4096).unwrap();
    file.read_exact_at(&mut piece, range.start).unwrap();
    let first = piece[0];
    piece.iter().all(|byte| *byte == first).then_some(first)
}

/// A class on a file system of its own.
struct Bed {
    kind: &'static str,
    dir: PathBuf,
    /// The file system of the disk.
    on: PathBuf,
    class: Class,
    _scheduler: Scheduler,
    lab: Lab,
}

impl Bed {
    /// Mounts the disk again, which has room for this many bytes now; where the file `data` is.
    fn start_again(&self, held: u64) -> PathBuf {
        let is_overlay = self.dir != self.on;
        assert!(unmount(&self.dir));
        assert!(!is_overlay || unmount(&self.on));
        self.lab.make_room(held);
        mount(&[&self.lab.device], &self.on);
        self.on.join(if is_overlay { "upper/data" } else { "data" })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        unmount(&self.dir);
        unmount(&self.on);
    }
}

/// File systems of each kind, on disks of this many bytes.
fn beds(size: u64) -> impl Iterator<Item = Bed> {
    beds_on(move || Some(Lab::in_memory(size)))
}

fn beds_on(lab: impl Fn() -> Option<Lab>) -> impl Iterator<Item = Bed> {
    ["ext4", "btrfs", "overlay"].into_iter().map_while(move |kind| {
        let lab = lab()?;
        let (dir, on) = match kind {
            "overlay" => overlay(&lab),
            kind => {
                let on = lab.mounted(kind, &lab.device, "disk");
                (on.clone(), on)
            }
        };
        let scheduler = listing(&on).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        Some(Bed { kind, dir, on, class, _scheduler: scheduler, lab })
    })
}

pub(crate) fn a_disk_that_holds_less_than_it_says_fails_what_is_not_on_it() {
    for bed in beds_on(|| Lab::thin(512 * MIB, 96 * MIB)) {
        let Bed { kind, dir, class, .. } = &bed;
        let path = dir.join("data");
        let engine = open(&path);
        let writer = class.buffered_writer(&engine).unwrap();
        let mut kept = 0;
        let error = loop {
            let data = vec![kept as u8 + 1; 4 << 20];
            let written = writer.write_all_at(&data, kept * 4 * MIB);
            let flushed = writer.sync_data();
            assert!(written.is_ok() || flushed.is_err(), "{kind}: a flush says it all the same");
            if let Err(error) = written.and(flushed) {
                break error;
            }
            kept += 1;
            assert!(kept < 25, "{kind}: more than it can hold");
        };
        eprintln!("{kind}: {kept} of 4 MiB each, then {error}");
        let codes = [libc::EIO, libc::ENOSPC, libc::EROFS].map(Some);
        assert!(codes.contains(&error_number(&error)), "{kind}: {error}");
        assert!(kept > 4, "{kind}: {kept}");
        let told = engine.sync_all().unwrap_err();
        assert!(codes.contains(&told.raw_os_error()), "{kind}: {told}");
        assert_eq!(writer.dirty(), 0, "{kind}");
        drop(writer);
        drop(engine);
        let file = open(&bed.start_again(512 * MIB));
        for block in 0..kept {
            let range = block * 4 * MIB..(block + 1) * 4 * MIB;
            assert_eq!(byte_at(&file, range), Some(block as u8 + 1), "{kind}: {block}");
        }
    }
}

pub(crate) fn a_full_file_system_refuses_the_write_and_has_what_it_took() {
    for bed in beds(128 * MIB) {
        let Bed { kind, dir, class, .. } = &bed;
        let path = dir.join("data");
        let writer = class.buffered_writer(open(&path)).unwrap();
        for round in 1..=2u8 {
            let mut len = 0;
            let error = loop {
                match writer.write_at(&[round; 300_000], len) {
                    Ok(written) => len += written as u64,
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{kind}: {error}");
            assert!((20 * MIB..128 * MIB).contains(&len), "{kind}: {len}");
            writer.sync_data().unwrap();
            assert_eq!(writer.dirty(), 0, "{kind}");
            let file = writer.get_ref();
            fadvise(file, 0, None, Advice::DontNeed).unwrap();
            assert_eq!(file.metadata().unwrap().len(), len, "{kind}");
            (0..len / MIB).for_each(|mib| {
                assert_eq!(byte_at(file, mib * MIB..(mib + 1) * MIB), Some(round), "{kind}");
            });
            // and then there is room again
            file.set_len(0).unwrap();
            file.sync_all().unwrap();
        }
    }
}

/// The work of another user of the file, in one turn.
type Disturbance = fn(&Path, &File, u8);

const DISTURBANCES: [(&str, Disturbance); 5] = [
    ("writes and reads past the page cache", |path, _, turn| {
        let direct = open_direct(path);
        let mut block = AlignedBuf::new(BLOCK as usize, 4096).unwrap();
        block.fill(turn);
        (0..BLOCKS).for_each(|n| direct.write_all_at(&block, others(n).start).unwrap());
        (0..BLOCKS).for_each(|n| direct.read_exact_at(&mut block, ours(n).start).unwrap());
    }),
    ("longer and shorter", |_, file, turn| {
        ftruncate(file, 2 * BLOCKS * BLOCK + u64::from(turn) * 5_000).unwrap();
        ftruncate(file, 2 * BLOCKS * BLOCK).unwrap();
    }),
    ("holes", |_, file, turn| {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        (0..BLOCKS).for_each(|n| fallocate(file, flags, others(n).start, BLOCK).unwrap());
        file.write_all_at(&[turn; 100], others(0).start + 50).unwrap();
    }),
    ("another name, and none", |path, file, turn| {
        let other = path.with_file_name(format!("other-{turn}"));
        if fs::rename(path, &other).is_ok() {
            fs::remove_file(other).unwrap();
        }
        file.sync_all().unwrap();
    }),
    ("dropped from memory", |_, file, _| {
        fadvise(file, 0, None, Advice::DontNeed).unwrap();
    }),
];

const fn ours(n: u64) -> Range<u64> {
    2 * n * BLOCK..(2 * n + 1) * BLOCK
}

const fn others(n: u64) -> Range<u64> {
    (2 * n + 1) * BLOCK..(2 * n + 2) * BLOCK
}

/// Writes all blocks again and again, in pieces, and flushes; what each has at the end.
fn write_until(writer: &BufferedWriter<&File>, over: &AtomicBool) -> u8 {
    let mut round = 0u8;
    loop {
        round = round % 250 + 1;
        for n in 0..BLOCKS {
            let data = vec![round; BLOCK as usize];
            for (piece, at) in data.chunks(24_000).zip((ours(n).start..).step_by(24_000)) {
                writer.write_all_at(piece, at).unwrap();
            }
        }
        writer.sync_data().unwrap();
        if over.load(Ordering::Relaxed) {
            return round;
        }
    }
}

pub(crate) fn written_bytes_are_there_whatever_other_programs_do() {
    for bed in beds(256 * MIB) {
        let Bed { kind, dir, class, .. } = &bed;
        for (what, disturb) in DISTURBANCES {
            let path = dir.join("data");
            let file = open(&path);
            file.set_len(2 * BLOCKS * BLOCK).unwrap();
            let writer = class.buffered_writer(&file).unwrap().with_dirty_max(2 * MIB);
            let (over, begin, other) = (AtomicBool::new(false), Instant::now(), open(&path));
            let mut turns = 0;
            let last = thread::scope(|scope| {
                let writing = scope.spawn(|| write_until(&writer, &over));
                while begin.elapsed() < Duration::from_millis(400) || turns == 0 {
                    disturb(&path, &other, turns);
                    turns = (turns + 1) % 200;
                }
                over.store(true, Ordering::Relaxed);
                writing.join().unwrap()
            });
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            for n in 0..BLOCKS {
                assert_eq!(byte_at(&file, ours(n)), Some(last), "{kind}, {what}: block {n}");
            }
            assert_eq!(writer.dirty(), 0, "{kind}, {what}");
            drop(writer);
            let _ = fs::remove_file(&path);
        }
        let counters = class.permit_counters();
        assert_eq!((counters.queued, counters.in_disk, counters.errors), (0, 0, 0), "{kind}");
    }
}

pub(crate) fn a_file_that_was_cut_while_it_was_written_is_written_as_before() {
    for bed in beds(256 * MIB) {
        let Bed { kind, dir, class, .. } = &bed;
        let file = open(&dir.join("data"));
        let writer = class.buffered_writer(&file).unwrap().with_dirty_max(2 * MIB);
        let (over, begin) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            let writing = scope.spawn(|| write_until(&writer, &over));
            for cut in (0..).map(|n| n % 97 * 81_000) {
                if begin.elapsed() > Duration::from_millis(500) {
                    break;
                }
                ftruncate(&file, cut).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            writing.join().unwrap();
        });
        // undisturbed
        let last = write_until(&writer, &AtomicBool::new(true));
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        assert!((0..BLOCKS).all(|n| byte_at(&file, ours(n)) == Some(last)), "{kind}");
        assert_eq!(writer.dirty(), 0, "{kind}");
    }
}

pub(crate) fn a_log_that_may_only_be_appended_to_is_written() {
    let bed = beds(64 * MIB).next().unwrap();
    let path = bed.dir.join("log");
    let log = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    system("chattr", &["+a", path.to_str().unwrap()]);
    let mut writer = bed.class.buffered_writer(log).unwrap();
    writer.write_all(&vec![7; 3 << 20]).unwrap();
    writer.sync_all().unwrap();
    assert_eq!(writer.dirty(), 0);
    assert_eq!(fs::read(&path).unwrap(), vec![7; 3 << 20]);
    assert_eq!(bed.class.permit_counters().errors, 0);
}
