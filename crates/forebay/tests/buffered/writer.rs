//! What writers do, wait for and leave behind.

use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{BufferedWriter, DiskConfig, Limits, Op, Scheduler};

use crate::{Bed, FAST, MIB, contents, pattern, until};

#[test]
fn bytes_written_by_any_method_are_in_the_file() {
    let bed = Bed::new();
    let mut expected = pattern(3 << 20);
    let mut writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    for piece in expected.chunks(70_001) {
        writer.write_all(piece).unwrap();
    }
    for (at, len) in [(0, 1), (4095, 2), (1 << 20, 300_000), ((3 << 20) - 5, 5)] {
        expected[at..at + len].fill(9);
        writer.write_all_at(&vec![9; len], at as u64).unwrap();
    }
    smol::block_on(async {
        assert_eq!(writer.write_at_async(b"task", 77).await.unwrap(), 4);
        writer.sync_data_async().await.unwrap();
    });
    expected[77..81].copy_from_slice(b"task");
    assert_eq!(writer.dirty(), 0);
    assert_eq!(writer.seek(SeekFrom::End(0)).unwrap(), 3 << 20);
    writer.write_all(b"end").unwrap();
    assert_eq!(writer.stream_position().unwrap(), (3 << 20) + 3);
    expected.extend(b"end");
    writer.sync_all().unwrap();
    assert!(writer.write_all_at(b"x", u64::MAX).is_err(), "no file is so long");
    assert_eq!(writer.dirty(), 0);
    drop(writer.into_inner().unwrap());
    assert_eq!(contents(&bed.dir.path().join("data")), expected);
}

#[test]
fn a_writer_that_writes_back_late_leaves_a_file_that_nobody_flushes_to_the_kernel() {
    let bed = Bed::new();
    let left = || bed.class.page_cache_counters().left_to_kernel;
    let write = |name: &str| {
        let mut writer = bed.class.buffered_writer(bed.file(name)).unwrap();
        writer.set_write_back_after(4 * MIB);
        pattern(4 << 20).chunks(70_001).for_each(|piece| writer.write_all(piece).unwrap());
        assert_eq!(writer.dirty(), 4 * MIB);
        writer
    };
    let mut writer = write("log");
    assert_eq!((bed.admitted(), bed.class.permit_counters().queued), (0, 0));
    writer.write_all(&pattern(2 << 20)).unwrap();
    until("the first two parts", || writer.dirty() == 4 * MIB);
    assert_eq!(bed.admitted(), 2 * MIB);
    drop(writer);
    assert_eq!((bed.admitted(), left()), (2 * MIB, 4 * MIB));

    let writer = write("flushed");
    writer.sync_data().unwrap();
    assert_eq!((writer.dirty(), bed.admitted()), (0, 6 * MIB));
    drop(writer);
    assert_eq!(left(), 4 * MIB);
    // At most half of what may be dirty.
    let writer = write("bounded").with_dirty_max(2 * MIB);
    writer.write_all_at(b"x", 5 * MIB).unwrap();
    until("less than half", || writer.dirty() <= MIB);
}

#[test]
fn seeks_and_writes_leave_the_position_of_the_descriptor_where_it_was() {
    let bed = Bed::new();
    let file = bed.file("data");
    (&file).write_all(b"header..").unwrap();
    let engine = || (&file).stream_position().unwrap();
    let mut writer = bed.class.buffered_writer(&file).unwrap();
    assert_eq!(writer.stream_position().unwrap(), 8, "it begins where the descriptor is");
    for (to, position) in [
        (SeekFrom::Start(4096), 4096),
        (SeekFrom::Current(-96), 4000),
        (SeekFrom::End(-5), 3),
        (SeekFrom::End(1000), 1008),
        (SeekFrom::Start(0), 0),
    ] {
        assert_eq!((writer.seek(to).unwrap(), engine()), (position, 8), "{to:?}");
    }
    writer.seek(SeekFrom::Start(4096)).unwrap();
    writer.write_all(b"block").unwrap();
    assert_eq!((writer.stream_position().unwrap(), engine()), (4101, 8));
    for to in [SeekFrom::Current(-4102), SeekFrom::End(-4102), SeekFrom::Start(1 << 63)] {
        assert_eq!(writer.seek(to).unwrap_err().kind(), ErrorKind::InvalidInput, "{to:?}");
        assert_eq!(writer.stream_position().unwrap(), 4101, "{to:?} has failed");
    }
    let other = bed.class.buffered_writer(&file).unwrap();
    writer.into_inner().unwrap();
    other.into_inner().unwrap();
    assert_eq!(engine(), 8);
    (&file).write_all(b"header").unwrap();
    let expected = [&b"header..header"[..], &[0; 4096 - 14], b"block"].concat();
    assert_eq!(contents(&bed.dir.path().join("data")), expected);
}

#[test]
fn a_seek_of_an_appending_writer_moves_neither_the_descriptor_nor_the_next_write() {
    let bed = Bed::new();
    let path = bed.dir.path().join("log");
    let file = File::options().append(true).read(true).create(true).open(&path).unwrap();
    let mut writer = bed.class.buffered_writer(&file).unwrap();
    writer.write_all(b"first").unwrap();
    (&file).seek(SeekFrom::Start(2)).unwrap();
    assert_eq!(writer.stream_position().unwrap(), 5);
    assert_eq!(writer.seek(SeekFrom::Start(1)).unwrap(), 1);
    assert_eq!(writer.seek(SeekFrom::End(-4)).unwrap(), 1);
    assert_eq!((&file).stream_position().unwrap(), 2);
    writer.write_all(b", second").unwrap();
    assert_eq!(writer.stream_position().unwrap(), 13);
    writer.into_inner().unwrap();
    assert_eq!(contents(&path), b"first, second");
}

#[test]
fn all_that_is_written_is_admitted_in_parts_and_the_flush_after_it() {
    let bed = Bed::new();
    let mut writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all(&pattern(8 << 20)).unwrap();
    writer.sync_data().unwrap();
    let counters = bed.class.permit_counters();
    assert_eq!(counters.bytes[Op::Write.index()], 8 * MIB);
    assert!(counters.operations[Op::Write.index()] >= 8, "no part is longer than 1 MiB");
    assert!(counters.operations[Op::Flush.index()] >= 1);
    assert_eq!((counters.queued, counters.in_disk), (0, 0));
    // pages that are written again and again are written back once
    for n in 0..100 {
        writer.write_all_at(&[n; 100], u64::from(n) * 40).unwrap();
    }
    writer.sync_data().unwrap();
    assert_eq!(bed.admitted(), 8 * MIB + 4096);
}

#[test]
fn a_writer_waits_at_its_bound_of_dirty_bytes() {
    let bed = Bed::limited(8 * MIB);
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap().with_dirty_max(2 * MIB);
    let (begin, over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let (writer, is_over) = (&writer, &over);
        scope.spawn(move || {
            let data = pattern(1 << 20);
            (0..12).for_each(|n| writer.write_all_at(&data, n * MIB).unwrap());
            is_over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            assert!(writer.dirty() <= 2 * MIB, "{}", writer.dirty());
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert!(begin.elapsed() > Duration::from_millis(500), "nothing has waited");
    writer.sync_data().unwrap();
    assert_eq!(bed.admitted(), 12 * MIB);
}

/// Counts as woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_write_that_is_dropped_while_it_waits_has_written_nothing() {
    // the first part goes at once, and the one after it not for a quarter of a minute
    let bed = Bed::limited(MIB / 16);
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap().with_dirty_max(MIB);
    writer.write_all_at(&pattern(1 << 20), 0).unwrap();
    writer.write_all_at(&pattern(1 << 20), MIB).unwrap();
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let data = vec![9; 1 << 20];
    for _ in 0..3 {
        let mut write = Box::pin(writer.write_at_async(&data, 2 * MIB));
        assert!(write.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(writer.dirty(), MIB);
    assert_eq!(writer.get_ref().metadata().unwrap().len(), 2 * MIB);
    bed.class.set_limits(&Limits::default()).unwrap();
    let mut write = pin!(writer.write_at_async(&data, 2 * MIB));
    let mut written = write.as_mut().poll(&mut Context::from_waker(&waker));
    while written.is_pending() {
        until("a wake-up", || woken.0.swap(false, Ordering::Acquire));
        written = write.as_mut().poll(&mut Context::from_waker(&waker));
    }
    assert!(
        matches!(written, Poll::Ready(Ok(len)) if len as u64 == MIB / 2),
        "half the bound: {written:?}"
    );
}

#[test]
fn dirty_bytes_of_a_dropped_writer_are_written_back() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&[7; 5000], 100).unwrap();
    assert_eq!(bed.admitted(), 0, "it is no part yet");
    drop(writer);
    until("the rest", || bed.admitted() == 8192);
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&[8; 5000], 1 << 20).unwrap();
    writer.write_back().unwrap();
    until("what is asked for", || writer.dirty() == 0);
}

#[test]
fn nothing_is_kept_of_writes_and_flushes_that_were_dropped_while_they_waited() {
    let bed = Bed::stopped();
    let data = pattern(1 << 20);
    // the bound of the file, and that of the class
    for (name, dirty_max) in [("file", MIB), ("class", 128 * MIB)] {
        let writer = bed.class.buffered_writer(bed.file(name)).unwrap().with_dirty_max(dirty_max);
        let waits = |at: &u64| {
            let write = pin!(writer.write_at_async(&data, *at));
            write.poll(&mut Context::from_waker(Waker::noop())).is_pending()
        };
        let end = (0..).map(|n| n * MIB).find(waits).unwrap();
        for _ in 0..100 {
            let woken = Arc::new(Woken(AtomicBool::new(false)));
            let waker = Waker::from(Arc::clone(&woken));
            let mut context = Context::from_waker(&waker);
            let mut write = Box::pin(writer.write_at_async(&data, end));
            let mut sync = Box::pin(writer.sync_data_async());
            assert!(write.as_mut().poll(&mut context).is_pending(), "{name}");
            assert!(sync.as_mut().poll(&mut context).is_pending(), "{name}");
            drop((write, sync, waker));
            assert_eq!(Arc::strong_count(&woken), 1, "{name}: its waker is kept");
        }
    }
    bed.class.set_limits(&Limits::default()).unwrap();
}

/// A waker with a mistake.
struct Panics;

impl Wake for Panics {
    #[expect(clippy::panic, reason = "what is tried")]
    fn wake(self: Arc<Self>) {
        panic!("the mistake of a waker");
    }
}

#[test]
fn a_waker_that_panics_keeps_no_other_from_being_woken() {
    let bed = Bed::stopped();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap().with_dirty_max(4 * MIB);
    let (writer, data) = (Arc::new(writer), pattern(1 << 20));
    let waits = |at: &u64| {
        let write = pin!(writer.write_at_async(&data, *at));
        write.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    };
    let end = (0..).map(|n| n * MIB).find(waits).unwrap();
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    let mut write = Box::pin(writer.write_at_async(&data, end));
    let mut sync = Box::pin(writer.sync_data_async());
    assert!(write.as_mut().poll(&mut context).is_pending());
    assert!(sync.as_mut().poll(&mut context).is_pending());
    bed.class.set_limits(&Limits::default()).unwrap();
    let flush = thread::spawn({
        let writer = Arc::clone(&writer);
        move || writer.sync_data().unwrap()
    });
    until("the end of a flush", || flush.is_finished());
    flush.join().unwrap();
}

#[test]
fn a_dropped_flush_leaves_parts_that_end() {
    let bed = Bed::limited(MIB / 16);
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&pattern(2 << 20), 0).unwrap();
    for _ in 0..3 {
        let mut sync = Box::pin(writer.sync_data_async());
        assert!(sync.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    bed.class.set_limits(&Limits::default()).unwrap();
    until("the parts", || writer.dirty() == 0);
    writer.sync_data().unwrap();
}

#[test]
fn files_that_wait_with_little_dirt_make_room_for_others_of_their_class() {
    let bed = Bed::new();
    let open = |n: i32| bed.class.buffered_writer(bed.file(&n.to_string())).unwrap();
    let writers: Vec<_> = (0..12).map(open).collect();
    let begin = Instant::now();
    // each less than it hands over by itself, all together more than a class may have
    let data = vec![1; (1 << 20) - 8192];
    for part in 0..7 {
        for writer in &writers {
            writer.write_all_at(&data, part * MIB + 4096).unwrap();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "all wait");
    }
    let dirty: u64 = writers.iter().map(|writer| writer.dirty()).sum();
    assert!(dirty <= 64 * MIB, "{dirty}");
}

#[test]
fn a_writer_of_a_removed_class_goes_on_as_untagged_work() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&[7; 4096], 0).unwrap();
    bed.scheduler.remove_class(&bed.class).unwrap();
    writer.write_back().unwrap();
    let untagged = bed.scheduler.default_class();
    let disk = bed.scheduler.disk("disk").unwrap();
    let untagged = untagged.on(&disk).unwrap();
    until("its part", || untagged.permit_counters().bytes[Op::Write.index()] == 4096);
    let flushes = || untagged.permit_counters().operations[Op::Flush.index()];
    for n in 0..3 {
        writer.write_all_at(&[8; 8192], n * MIB).unwrap();
        writer.sync_data().unwrap();
        smol::block_on(writer.sync_all_async()).unwrap();
        bed.class.sync_data(writer.get_ref()).unwrap();
        assert_eq!(flushes(), 3 * (n + 1));
    }
    let file = bed.file("data");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert_eq!(bed.class.read_at(&file, &mut [0; 100], 0).unwrap(), 100);
    let mut through = File::options();
    through.write(true).create(true).custom_flags(libc::O_DSYNC);
    let through = through.open(bed.dir.path().join("through")).unwrap();
    let through = bed.class.buffered_writer(through).unwrap();
    through.write_all_at(&[7; 4096], 0).unwrap();
    // The name may be given again; the writer is not of that class.
    bed.scheduler.add_class("class", 5).unwrap();
    writer.sync_data().unwrap();
}

#[test]
fn a_thread_that_holds_a_permit_gets_its_flush() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    // more than the window
    let held = bed.class.admit(Op::Read, 512 << 20).unwrap();
    writer.write_all_at(&[7; 4096], 0).unwrap();
    writer.sync_data().unwrap();
    drop(held);
    let counters = bed.scheduler.disk("disk").unwrap().permit_counters();
    assert!(counters.window_bypasses > 0, "it has waited for its own permit");
}

#[test]
fn a_thread_that_holds_a_permit_gets_as_many_parts_and_writes_as_it_wants() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    let mut through = File::options();
    through.write(true).create(true).custom_flags(libc::O_DSYNC);
    let through = through.open(bed.dir.path().join("through")).unwrap();
    let through = bed.class.buffered_writer(through).unwrap();
    for parts in [1, 17, 40, 100] {
        for part in 0..parts {
            writer.write_all_at(&[7; 4096], part * 2 * MIB).unwrap();
        }
        let held = bed.class.admit(Op::Read, 512 << 20).unwrap();
        writer.sync_data().unwrap();
        drop(held);
        let held = bed.class.admit(Op::Read, 512 << 20).unwrap();
        through.write_all_at(&[7; 4096], 0).unwrap();
        drop(held);
        // a permit that is waited for by its holder is given up after a while
        assert_eq!(bed.class.permit_counters().overdue, 0, "{parts} parts");
    }
}

#[test]
fn a_full_queue_makes_writes_and_flushes_wait_for_a_place() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = DiskConfig::new("disk", FAST).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).requests_max(1).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let file = File::create(dir.path().join("data")).unwrap();
    let writer = class.buffered_writer(file).unwrap().with_dirty_max(MIB);
    let data = pattern(4 << 20);
    for _ in 0..3 {
        let held = class.admit(Op::Read, 4096).unwrap().detach();
        let mut write = Box::pin(write_all_in_task(&writer, &data));
        let mut flush = Box::pin(writer.sync_data_async());
        let waker = Waker::noop();
        assert!(write.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        assert!(flush.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        drop(flush);
        drop(held);
        smol::block_on(write).unwrap();
        smol::block_on(writer.sync_data_async()).unwrap();
        writer.sync_data().unwrap();
        class.sync_data(writer.get_ref()).unwrap();
        assert_eq!(contents(&dir.path().join("data")), data);
        assert_eq!(writer.dirty(), 0);
    }
}

async fn write_all_in_task(writer: &BufferedWriter<File>, data: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        done += writer.write_at_async(&data[done..], done as u64).await?;
    }
    Ok(())
}
