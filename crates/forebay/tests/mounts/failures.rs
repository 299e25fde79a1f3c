//! Bytes that cannot be written back, on a disk that fails for a while.

use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use forebay::{BufferedWriter, Class, DiskConfig, Op, Scheduler, WriteBackError};

use crate::failing::{Failing, RATES};
use crate::loop_mount::Lab;
use crate::write_back::file;

const MIB: u64 = 1 << 20;

/// A file on a disk that fails for a while.
struct Bed {
    disk: Failing,
    class: Class,
    _scheduler: Scheduler,
}

impl Bed {
    fn new() -> Option<Self> {
        let disk = Failing::new(128 * MIB)?;
        let config = DiskConfig::new("disk", RATES).mountpoint(&disk.point);
        let scheduler = Scheduler::builder().disk(config).build().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        Some(Self { disk, class, _scheduler: scheduler })
    }

    fn file(&self) -> File {
        file(&self.disk.point.join("data"))
    }

    /// Writes what the disk is going to fail. No part is written back before all is in memory.
    fn write_in_vain(&self, writer: &BufferedWriter<File>, data: &[u8], offset: u64) {
        // more than the window
        let held = self.class.admit(Op::Read, 4 * MIB).unwrap().detach();
        self.fails(true);
        writer.write_all_at(data, offset).unwrap();
        drop(held);
    }

    fn fails(&self, fails: bool) {
        self.disk.stats.fails.store(fails, Ordering::SeqCst);
    }
}

/// What the disk has of a file or device.
fn on_disk(path: impl AsRef<Path>) -> Vec<u8> {
    let mut options = OpenOptions::new();
    let mut direct = options.read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    let len = direct.seek(SeekFrom::End(0)).unwrap() as usize;
    let mut memory = vec![0; len.next_multiple_of(4096) + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let buffer = &mut memory[start..][..len.next_multiple_of(4096)];
    let mut done = 0;
    while done < len {
        done += direct.read_at(&mut buffer[done..], done as u64).unwrap();
    }
    buffer[..len].to_vec()
}

/// The failed range that an error names, and the number of the system's error.
fn failed(result: io::Result<()>) -> (Range<u64>, Option<i32>) {
    let error = result.unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<WriteBackError>());
    let inner = inner.unwrap();
    let text = error.to_string();
    let named = [inner.offset(), inner.length()].map(|number| number.to_string());
    assert!(named.iter().all(|number| text.contains(number.as_str())), "{text}");
    (inner.offset()..inner.offset() + inner.length(), inner.raw_os_error())
}

/// The number of the system's error, of which bytes it ever is.
pub(crate) fn error_number(error: &io::Error) -> Option<i32> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<WriteBackError>());
    inner.map_or_else(|| error.raw_os_error(), WriteBackError::raw_os_error)
}

fn fails_at(result: io::Result<()>, range: Range<u64>) {
    assert_eq!(failed(result), (range, Some(libc::EIO)));
}

fn until_clean(writer: &BufferedWriter<File>) {
    while writer.dirty() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn every_flush_fails_until_what_failed_is_rewritten() {
    let Some(bed) = Bed::new() else { return };
    let [one, mut two] = [(); 2].map(|()| bed.class.buffered_writer(bed.file()).unwrap());
    let engine = bed.file();
    one.write_all_at(&vec![1; 4 << 20], 0).unwrap();
    one.sync_all().unwrap();
    for round in 2..5 {
        // offsets that are no multiples of pages
        let (start, middle, end) = (MIB + 1000, MIB + 51_000, MIB + 101_000);
        bed.write_in_vain(&one, &vec![round; 100_000], start);
        fails_at(one.sync_data(), start..end);
        bed.fails(false);
        for _ in 0..3 {
            fails_at(one.sync_data(), start..end);
            fails_at(two.sync_all(), start..end);
            fails_at(smol::block_on(one.sync_all_async()), start..end);
            fails_at(two.flush(), start..end);
            fails_at(bed.class.sync_data(&engine), start..end);
            fails_at(bed.class.sync_all(bed.file()), start..end);
        }
        two.write_all_at(&vec![round; 50_000], start).unwrap();
        fails_at(two.flush(), start..end);
        fails_at(two.sync_data(), middle..end);
        fails_at(one.sync_data(), middle..end);
        fails_at(bed.class.sync_data(&engine), middle..end);
        one.write_all_at(&vec![round; 50_000], middle).unwrap();
        one.sync_data().unwrap();
        two.flush().unwrap();
        two.sync_data().unwrap();
        bed.class.sync_data(&engine).unwrap();
        let on_disk = on_disk(bed.disk.point.join("data"));
        assert!(on_disk[start as usize..end as usize].iter().all(|byte| *byte == round));
    }
}

pub(crate) fn a_writer_that_is_made_after_a_failure_reports_it() {
    let Some(bed) = Bed::new() else { return };
    for end in ["flushed", "handed over", "dropped"] {
        let writer = bed.class.buffered_writer(bed.file()).unwrap();
        bed.write_in_vain(&writer, &[7; 100_000], 0);
        match end {
            "flushed" => fails_at(writer.sync_data(), 0..100_000),
            "handed over" => {
                writer.write_back().unwrap();
                until_clean(&writer);
            }
            _ => {}
        }
        let written = bed.disk.stats.written.load(Ordering::Relaxed);
        drop(writer);
        while end == "dropped" && bed.disk.stats.written.load(Ordering::Relaxed) == written {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(100));
        bed.fails(false);
        for _ in 0..2 {
            let next = bed.class.buffered_writer(bed.file()).unwrap();
            fails_at(next.sync_data(), 0..100_000);
            fails_at(bed.class.sync_all(bed.file()), 0..100_000);
        }
        let next = bed.class.buffered_writer(bed.file()).unwrap();
        next.write_all_at(&[8; 100_000], 0).unwrap();
        next.sync_data().unwrap();
        bed.class.sync_all(bed.file()).unwrap();
    }
}

pub(crate) fn truncated_bytes_are_no_longer_failed() {
    let Some(bed) = Bed::new() else { return };
    let (engine, writer) = (bed.file(), bed.class.buffered_writer(bed.file()).unwrap());
    bed.write_in_vain(&writer, &[7; 100_000], 0);
    fails_at(writer.sync_data(), 0..100_000);
    bed.fails(false);
    engine.set_len(50_000).unwrap();
    fails_at(writer.sync_data(), 0..50_000);
    engine.set_len(0).unwrap();
    writer.sync_data().unwrap();
    engine.set_len(100_000).unwrap();
    writer.sync_data().unwrap();
    bed.class.sync_data(bed.file()).unwrap();
    // the kernel is yet to tell the engine's own description, which it does once
    bed.class.sync_data(&engine).unwrap_err();
    bed.class.sync_data(&engine).unwrap();
}

const THREADS: u64 = 8;
const ROUNDS: u64 = 12;
const BLOCK: u64 = 300_000;
const STRIDE: u64 = 512 << 10;

/// A thread writes a block, in one way or another, and flushes.
fn write_block(
    api: &str,
    class: &Class,
    writer: &BufferedWriter<&File>,
    (data, at): (&[u8], u64),
) -> io::Result<()> {
    match api {
        "writer" => writer.write_all_at(data, at).and_then(|()| writer.sync_data()),
        "tasks" => smol::block_on(async {
            let mut done = 0;
            while done < data.len() {
                done += writer.write_at_async(&data[done..], at + done as u64).await?;
            }
            writer.sync_data_async().await
        }),
        "writers" => {
            let own = class.buffered_writer(writer.get_ref())?;
            own.write_all_at(data, at).and_then(|()| own.sync_data())
        }
        _ => {
            writer.get_ref().write_all_at(data, at).unwrap();
            class.sync_data(writer.get_ref())
        }
    }
}

/// Each thread writes blocks of its own and flushes. The disk has room now and then. What a flush
/// acknowledged has to be on the disk at the end.
pub(crate) fn of_threads_that_share_a_file_each_is_told_and_no_acknowledged_block_is_missing() {
    let class = Scheduler::builder().build().unwrap().add_class("class", 100).unwrap();
    for api in ["writer", "tasks", "writers", "engine"] {
        let Some(disk) = Lab::thin(THREADS * ROUNDS * STRIDE, 128 * MIB) else { return };
        let device = file(Path::new(&disk.device));
        let writer = class.buffered_writer(&device).unwrap();
        let (acknowledged, refused) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        for round in 0..ROUNDS {
            if round % 3 == 1 {
                disk.take_room();
            }
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (class, writer) = (&class, &writer);
                    let (acknowledged, refused) = (&acknowledged, &refused);
                    scope.spawn(move || {
                        let block = round * THREADS + thread;
                        let data = vec![block as u8 | 1; BLOCK as usize];
                        match write_block(api, class, writer, (&data, block * STRIDE)) {
                            Ok(()) => acknowledged.lock().unwrap().push((block * STRIDE, data[0])),
                            Err(_) => drop(refused.fetch_add(1, Ordering::Relaxed)),
                        }
                    });
                }
            });
            disk.make_room(128 * MIB);
            write_failed_again(&class, &writer, api == "engine");
        }
        let (on_disk, acknowledged) = (on_disk(&disk.device), acknowledged.into_inner().unwrap());
        let is_lost = |(at, byte): &&(u64, u8)| {
            !on_disk[*at as usize..(at + BLOCK) as usize].iter().all(|on_disk| on_disk == byte)
        };
        let (lost, refused) = (acknowledged.iter().filter(is_lost).count(), refused.into_inner());
        println!("{api}: {} acknowledged, {lost} lost, {refused} refused", acknowledged.len());
        assert_eq!(lost, 0, "{api}");
        assert!(refused >= THREADS && acknowledged.len() as u64 >= THREADS, "{api}");
    }
}

/// Until a flush succeeds.
fn write_failed_again(class: &Class, writer: &BufferedWriter<&File>, by_engine: bool) {
    let engine = *writer.get_ref();
    let sync = || if by_engine { class.sync_data(engine) } else { writer.sync_data() };
    for tries in 0.. {
        let Err(error) = sync() else { return };
        assert!(tries < 500, "{error}");
        // an error that is reported once names no range
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<WriteBackError>());
        let Some(inner) = inner else { continue };
        let mut again = vec![0; inner.length() as usize];
        engine.read_exact_at(&mut again, inner.offset()).unwrap();
        if by_engine {
            engine.write_all_at(&again, inner.offset()).unwrap();
        } else {
            // a write may say once what failed
            while writer.write_all_at(&again, inner.offset()).is_err() {}
        }
    }
}

pub(crate) fn half_of_an_engines_own_writes_rewritten_leaves_the_other_failed() {
    let class = Scheduler::builder().build().unwrap().add_class("class", 100).unwrap();
    let Some(disk) = Lab::thin(64 * MIB, 128 * MIB) else { return };
    let engine = file(Path::new(&disk.device));
    engine.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    class.sync_all(&engine).unwrap();
    disk.take_room();
    engine.write_all_at(&[2; 64 << 10], 4 * MIB).unwrap();
    let reported = failed(class.sync_data(&engine));
    disk.make_room(128 * MIB);
    assert_eq!(reported.0, 4 * MIB..4 * MIB + (64 << 10));
    for _ in 0..2 {
        assert_eq!(failed(class.sync_data(&engine)), reported);
        assert_eq!(failed(class.sync_all(file(Path::new(&disk.device)))), reported);
    }
    let middle = 4 * MIB + (32 << 10);
    engine.write_all_at(&[3; 32 << 10], 4 * MIB).unwrap();
    for _ in 0..2 {
        assert_eq!(failed(class.sync_data(&engine)).0, middle..reported.0.end);
    }
    engine.write_all_at(&[3; 32 << 10], middle).unwrap();
    class.sync_data(&engine).unwrap();
    class.sync_all(&engine).unwrap();
    assert!(on_disk(&disk.device)[4 << 20..][..64 << 10].iter().all(|byte| *byte == 3));
}

pub(crate) fn an_error_of_writeback_reaches_the_engine_and_all_writers() {
    let Some(bed) = Bed::new() else { return };
    for round in 0..3 {
        let [engine, bystander] = [(); 2].map(|()| bed.file());
        let [writer, idle] = [(); 2].map(|()| bed.class.buffered_writer(bed.file()).unwrap());
        writer.write_all_at(&vec![round; 2 << 20], 0).unwrap();
        writer.sync_all().unwrap();
        engine.sync_all().unwrap();
        bed.write_in_vain(&writer, &vec![round; 100_000], 0);
        writer.write_back().unwrap();
        until_clean(&writer);
        bed.fails(false);
        fails_at(writer.write_all_at(b"next", 3 * MIB), 0..100_000);
        writer.write_all_at(b"next", 3 * MIB).unwrap();
        fails_at(writer.sync_data(), 0..100_000);
        // the kernel reports it once for each description
        let code = |result: io::Result<()>| result.unwrap_err().raw_os_error();
        assert_eq!(code(engine.sync_all()), Some(libc::EIO), "{round}");
        assert_eq!(code(bystander.sync_data()), Some(libc::EIO), "{round}");
        engine.sync_all().unwrap();
        fails_at(writer.sync_data(), 0..100_000);
        writer.write_all_at(&vec![round; 100_000], 0).unwrap();
        writer.sync_data().unwrap();
        // the kernel would tell this one now
        idle.write_all_at(b"idle", 0).unwrap();
        idle.sync_data().unwrap();
        writer.sync_data().unwrap();
        assert!(bed.class.permit_counters().errors > 0);
    }
}

pub(crate) fn an_error_already_reported_to_others_is_reported_by_each_flush() {
    let Some(bed) = Bed::new() else { return };
    for round in 1..=3 {
        let [engine, other] = [(); 2].map(|()| bed.file());
        let writer = bed.class.buffered_writer(bed.file()).unwrap();
        // too little for a part: it is in memory until somebody has it written
        writer.write_all_at(&[round; 100_000], 0).unwrap();
        engine.write_all_at(&[round; 100_000], MIB).unwrap();
        bed.fails(true);
        assert_eq!(other.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
        bed.fails(false);
        for _ in 0..2 {
            fails_at(writer.sync_data(), 0..100_000);
            fails_at(bed.class.sync_data(&engine), 0..100_000);
        }
        writer.write_all_at(&[round; 100_000], 0).unwrap();
        writer.sync_all().unwrap();
        // and of what the flush itself writes back
        engine.write_all_at(&vec![round; 3 << 20], 0).unwrap();
        bed.fails(true);
        fails_at(bed.class.sync_data(&engine), 0..3 * MIB);
        bed.fails(false);
        // what was not tried is dirty, and written back now
        let (left, _) = failed(writer.sync_all());
        assert!(left.start == 0 && left.end <= 3 * MIB, "{left:?}");
        engine.write_all_at(&vec![round; 3 << 20], 0).unwrap();
        bed.class.sync_data(&engine).unwrap();
        writer.sync_data().unwrap();
    }
}

pub(crate) fn an_error_of_a_dropped_flush_is_reported_by_the_next() {
    let Some(bed) = Bed::new() else { return };
    let class = &bed.class;
    let (engine, writer) = (bed.file(), class.buffered_writer(bed.file()).unwrap());
    for _ in 0..2 {
        // more than the window: the flush waits, and what is written meanwhile it alone writes back
        let held = class.admit(Op::Read, 4 * MIB).unwrap().detach();
        let mut sync = Box::pin(writer.sync_data_async());
        let mut context = Context::from_waker(Waker::noop());
        assert!(sync.as_mut().poll(&mut context).is_pending());
        engine.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        bed.fails(true);
        drop(held);
        // A permit that its task does not notice for long goes back to the queue.
        while class.permit_counters().queued > 0 {
            thread::sleep(Duration::from_millis(1));
            assert!(sync.as_mut().poll(&mut context).is_pending(), "the disk takes a while");
        }
        assert!(sync.as_mut().poll(&mut context).is_pending(), "the disk takes a while");
        drop(sync);
        while class.permit_counters().in_disk > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        bed.fails(false);
        // what others wrote meanwhile was not seen, so it may be anything
        fails_at(writer.sync_data(), 0..MIB);
        fails_at(writer.sync_data(), 0..MIB);
        fails_at(class.sync_data(&engine), 0..MIB);
        // to be told by the kernel once
        engine.sync_data().unwrap_or_default();
        writer.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        writer.sync_data().unwrap();
    }
}
