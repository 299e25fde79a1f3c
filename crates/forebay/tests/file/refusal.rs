//! Requests that no disk could execute.

use std::io;

use forebay::engine::{BackendChoice, SEGMENTS_MAX};
use forebay::{AlignedBuf, BufResult, FileOptions, REQUESTS_MAX, Request, RequestError, Scheduler};

use crate::backends::skipped;
use crate::fixture::{BLOCK, Bed, STUCK, filled};

fn reason<T>(result: io::Result<T>) -> RequestError {
    let Err(error) = result else { panic!("it was accepted") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<RequestError>());
    reason.cloned().unwrap()
}

#[test]
fn misaligned_requests_are_refused_with_the_value_and_the_alignment() {
    let bed = Bed::new(BackendChoice::Auto);
    let file = bed.file();
    let alignment = file.direct_file().offset_alignment();
    if alignment == 1 {
        skipped("no direct I/O here");
        return;
    }
    let offset = alignment as u64 / 2;
    let BufResult(read, buffer) = file.read_at(&bed.class, filled(BLOCK, 3), offset).wait();
    assert_eq!(reason(read), RequestError::Offset { offset, alignment });
    assert_eq!(*buffer, [3; BLOCK], "the buffer comes back");

    let mut short = filled(BLOCK, 0);
    short.truncate(BLOCK - 1);
    let BufResult(write, _) = file.write_at(&bed.class, short, 0).wait();
    assert_eq!(reason(write), RequestError::Length { len: BLOCK - 1, alignment });

    let moved = AlignedBuf::new(2 * BLOCK, BLOCK).unwrap().split_off(1);
    let mut moved = moved.unwrap();
    moved.truncate(BLOCK);
    let address = moved.as_ptr().addr();
    let BufResult(read, _) = file.read_vectored_at(&bed.class, vec![moved], 0).wait();
    let alignment = file.direct_file().memory_alignment();
    assert_eq!(reason(read), RequestError::Buffer { address, alignment });
}

#[test]
fn vectors_and_ranges_have_bounds() {
    let bed = Bed::new(BackendChoice::Auto);
    let file = bed.file();
    for count in [0, SEGMENTS_MAX + 1] {
        let buffers = (0..count).map(|_| filled(BLOCK, 0)).collect();
        let BufResult(write, buffers) = file.write_vectored_at(&bed.class, buffers, 0).wait();
        assert_eq!(reason(write), RequestError::BufferCount { count });
        assert_eq!(buffers.len(), count);
    }
    let offset = i64::MAX as u64 + 1 - BLOCK as u64;
    let BufResult(read, _) = file.read_at(&bed.class, filled(BLOCK, 0), offset).wait();
    assert_eq!(reason(read), RequestError::Range { offset, len: BLOCK as u64 });
    let unlink = forebay::engine::Operation::unlink("nothing", u64::MAX).unwrap();
    let (unlink, _) = file.disk().submit(&bed.class, unlink).wait();
    assert_eq!(reason(unlink), RequestError::Range { offset: 0, len: u64::MAX });
    assert_eq!(reason(file.punch_hole(&bed.class, 0, 0).wait()), RequestError::Empty);
    let range = RequestError::Range { offset: u64::MAX, len: 1 };
    assert_eq!(reason(file.allocate(&bed.class, u64::MAX, 1).wait()), range);
}

#[test]
fn a_class_must_be_the_schedulers() {
    let bed = Bed::new(BackendChoice::Auto);
    let file = bed.file();
    let other = Scheduler::builder().build().unwrap().add_class("other", 1).unwrap();
    let class = "other".to_owned();
    assert_eq!(reason(file.sync_all(&other).wait()), RequestError::OtherScheduler { class });
    let gone = bed.scheduler.add_class("gone", 1).unwrap();
    bed.scheduler.remove_class(&gone).unwrap();
    let class = "gone".to_owned();
    assert_eq!(reason(file.sync_all(&gone).wait()), RequestError::ClassRemoved { class });
}

#[test]
fn an_io_thread_has_no_more_requests_than_it_may() {
    let bed = Bed::with(BackendChoice::Auto, STUCK, 1);
    let file = bed.file();
    let full = |request: Request<io::Result<()>>| {
        let refused = request.wait().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        assert!(refused.to_string().contains(&REQUESTS_MAX.to_string()), "{refused}");
    };
    // the first few may be done already
    let sent: Vec<_> = (0..REQUESTS_MAX + 1000).map(|_| file.sync_data(&bed.class)).collect();
    full(file.sync_data(&bed.class));
    drop(sent);
}

#[test]
fn settings_out_of_range_are_errors() {
    let error = Scheduler::builder().io_queues(0).build().unwrap_err();
    assert!(error.to_string().contains("1 to 64"), "{error}");
    let engine = forebay::engine::EngineConfig { depth_max: 0, ..Default::default() };
    let dir = tempfile::tempdir().unwrap();
    let scheduler = Scheduler::builder().engine(engine).build().unwrap();
    let options = FileOptions::new().write(true).create(true);
    let error = scheduler.open(dir.path().join("a"), &options).unwrap_err();
    assert!(error.to_string().contains("depth_max"), "{error}");
}

#[test]
fn writes_are_aligned_to_the_real_sectors_where_a_disk_misreports_them() {
    let dir = tempfile::tempdir().unwrap();
    let rates = "read_iops: 1000, write_iops: 1000, read_bandwidth: 100M, write_bandwidth: 100M";
    let open = |sector: &str| {
        let mountpoint = dir.path().display();
        let text = format!("disks:\n  - {{mountpoint: {mountpoint}, {rates}{sector}}}\n");
        let scheduler: Scheduler = text.parse().unwrap();
        let options = FileOptions::new().read(true).write(true).create(true);
        let file = scheduler.open(dir.path().join("data"), &options).unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        (file, class)
    };
    let (plain, _) = open("");
    if !plain.direct_file().is_direct() {
        skipped("no direct I/O here");
        return;
    }
    assert_eq!(plain.direct_file().write_alignment(), plain.direct_file().offset_alignment());

    let alignment = 4 * BLOCK;
    let (file, class) = open(", physical_block_size: 16384");
    assert_eq!(file.direct_file().write_alignment(), alignment);
    let offset = BLOCK as u64;
    let BufResult(write, buffer) = file.write_at(&class, filled(alignment, 1), offset).wait();
    assert_eq!(reason(write), RequestError::Offset { offset, alignment });
    let BufResult(write, _) = file.write_at(&class, filled(BLOCK, 1), 0).wait();
    assert_eq!(reason(write), RequestError::Length { len: BLOCK, alignment });
    let quarters = || vec![filled(BLOCK, 2), filled(BLOCK, 3), filled(2 * BLOCK, 4)];
    let BufResult(write, _) = file.write_vectored_at(&class, quarters(), 0).wait();
    assert_eq!(write.unwrap(), alignment, "together they are a sector");
    let BufResult(read, block) = file.read_at(&class, filled(BLOCK, 0), offset).wait();
    assert_eq!((read.unwrap(), block[0]), (BLOCK, 3), "a part of a sector is read");
    drop(buffer);
}
