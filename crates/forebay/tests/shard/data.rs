//! What is asked for is done, whole or in parts.

use forebay::engine::{BackendChoice, Operation, PushError, SEGMENTS_MAX};
use forebay::shard::SubmitError;
use forebay::{AlignedBuf, DirectFile, Op, RequestError, Scheduler};

use crate::backends::skipped;
use crate::fixture::{BLOCK, Bed, filled, number_blocks};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    what_is_written_is_read_back,
    a_large_request_is_split_and_comes_back_whole,
    a_range_within_a_buffer_is_split,
    a_large_vector_is_split_and_comes_back_whole,
    a_large_read_ends_at_the_end_of_the_file,
    a_buffered_read_ends_at_the_end_of_the_file,
    a_hole_of_more_parts_than_the_queue_holds_is_punched,
    changes_of_the_file_itself,
    an_error_is_that_of_the_disk,
    a_range_that_is_none_is_refused,
    misaligned_requests_are_refused_with_the_value_and_the_alignment,
    a_refused_operation_is_returned,
}

const LARGE: usize = 1 << 20;

fn what_is_written_is_read_back(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    bed.write(&file, 8192, filled(BLOCK, 7));
    let finished = bed.run(Operation::read(file, 8192, filled(BLOCK, 0)));
    assert_eq!(finished.result.unwrap(), BLOCK);
    assert_eq!(*finished.operation.into_buffer::<AlignedBuf>().unwrap(), [7; BLOCK]);
    let counters = bed.shard.queue().counters();
    assert_eq!((counters.dispatched, counters.completed, counters.in_disk), (2, 2, 0));
    assert!(bed.shard.is_empty());
}

fn a_large_request_is_split_and_comes_back_whole(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let mut data = filled(LARGE, 0);
    number_blocks(&mut data, 1);
    let address = data.as_ptr();
    let finished = bed.run(Operation::write(file.clone(), 0, data));
    assert_eq!(finished.result.unwrap(), LARGE);
    let data = finished.operation.into_buffer::<AlignedBuf>().unwrap();
    assert_eq!((data.as_ptr(), data.len()), (address, LARGE));
    assert_eq!(bed.shard.queue().counters().dispatched, 8, "parts of 128 KiB");

    let finished = bed.run(Operation::read(file, 0, filled(LARGE, 0)));
    assert_eq!(finished.result.unwrap(), LARGE);
    assert!(*finished.operation.into_buffer::<AlignedBuf>().unwrap() == *data);
}

fn a_range_within_a_buffer_is_split(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let mut data = filled(LARGE, 0);
    number_blocks(&mut data, 0);
    bed.write(&file, 0, data);
    let range = BLOCK..LARGE - 2 * BLOCK;
    let read = Operation::Read { file, offset: 0, buffer: filled(LARGE, 0xee).into(), range };
    let finished = bed.run(read);
    assert_eq!(finished.result.unwrap(), LARGE - 3 * BLOCK);
    let Operation::Read { offset, buffer, range, .. } = finished.operation else { panic!() };
    assert_eq!((offset, range), (0, BLOCK..LARGE - 2 * BLOCK));
    let mut expected = filled(LARGE, 0xee);
    number_blocks(&mut expected[BLOCK..LARGE - 2 * BLOCK], 0);
    assert!(*buffer.filled() == *expected);
}

fn a_large_vector_is_split_and_comes_back_whole(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let lens: Vec<_> = (0..SEGMENTS_MAX).map(|i| BLOCK * (1 + i % 7)).collect();
    let mut blocks = 0;
    let mut vector = || -> Vec<AlignedBuf> {
        let mut buffer = |len: &usize| {
            let mut buffer = filled(*len, 0);
            number_blocks(&mut buffer, blocks);
            blocks += len / BLOCK;
            buffer
        };
        lens.iter().map(&mut buffer).collect()
    };
    let written = vector();
    let len: usize = lens.iter().sum();
    let write =
        Operation::WriteVectored { file: file.clone(), offset: 0, buffers: vector_copy(&written) };
    assert_eq!(bed.run(write).result.unwrap(), len);

    let buffers = lens.iter().map(|len| filled(*len, 0)).collect();
    let finished = bed.run(Operation::ReadVectored { file, offset: 0, buffers });
    assert_eq!(finished.result.unwrap(), len);
    let Operation::ReadVectored { buffers, .. } = finished.operation else { panic!() };
    assert_eq!(buffers.len(), written.len());
    assert!(buffers.iter().zip(&written).all(|(read, written)| **read == **written));
    assert!(bed.shard.queue().counters().dispatched >= 2 * len as u64 / (128 << 10));
}

fn vector_copy(buffers: &[AlignedBuf]) -> Vec<AlignedBuf> {
    let copy = |buffer: &AlignedBuf| {
        let mut copy = filled(buffer.len(), 0);
        copy.copy_from_slice(buffer);
        copy
    };
    buffers.iter().map(copy).collect()
}

fn a_large_read_ends_at_the_end_of_the_file(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let len = 3 * (128 << 10) + BLOCK;
    bed.write(&file, 0, filled(len, 5));
    let finished = bed.run(Operation::read(file.clone(), 0, filled(LARGE, 1)));
    assert_eq!(finished.result.unwrap(), len);
    let buffer = finished.operation.into_buffer::<AlignedBuf>().unwrap();
    assert!(buffer[..len].iter().all(|&byte| byte == 5));

    // Also where the file ends within a block.
    bed.run(Operation::Truncate { file: file.clone(), len: 1000 }).result.unwrap();
    let finished = bed.run(Operation::read(file, 0, filled(LARGE, 1)));
    assert_eq!(finished.result.unwrap(), 1000);
}

fn a_buffered_read_ends_at_the_end_of_the_file(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let path = bed.path("buffered");
    let options = DirectFile::options().read(true).write(true).create(true).direct(false);
    let file = options.open(&path).unwrap();
    std::fs::write(&path, vec![3; 300_001]).unwrap();
    let read = Operation::read(file, 1, AlignedBuf::new(LARGE, 1).unwrap());
    let finished = bed.run(read);
    assert_eq!(finished.result.unwrap(), 300_000);
    assert!(
        finished.operation.into_buffer::<AlignedBuf>().unwrap()[..300_000]
            .iter()
            .all(|&byte| byte == 3)
    );
    assert!(
        bed.shard.counters().short_transfers.reads > 0,
        "the rest was asked for: {:?}",
        bed.shard.counters()
    );
}

fn a_hole_of_more_parts_than_the_queue_holds_is_punched(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let hole = Operation::PunchHole { file: bed.file(), offset: 0, len: 2 << 40 };
    assert_eq!(bed.run(hole).result.unwrap(), 0);
}

fn changes_of_the_file_itself(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let len = LARGE as u64;
    bed.run(Operation::Allocate { file: file.clone(), offset: 0, len }).result.unwrap();
    bed.write(&file, 0, filled(LARGE, 1));
    bed.run(Operation::SyncData { file: file.clone() }).result.unwrap();
    bed.run(Operation::SyncAll { file: file.clone() }).result.unwrap();
    let hole = Operation::PunchHole { file: file.clone(), offset: BLOCK as u64, len: len / 2 };
    assert_eq!(bed.run(hole).result.unwrap(), 0);
    let read = bed.run(Operation::read(file.clone(), 0, filled(LARGE, 7)));
    let data = read.operation.into_buffer::<AlignedBuf>().unwrap();
    assert_eq!((data[0], data[BLOCK], data[LARGE / 2]), (1, 0, 0));
    assert_eq!(data[LARGE / 2 + BLOCK], 1);
    bed.run(Operation::Truncate { file, len: 100 }).result.unwrap();
    assert_eq!(bed.path("data").metadata().unwrap().len(), 100);
    let discards = |bed: &Bed| {
        let class = &bed.shard.queue().classes()[1];
        (class.operations[Op::Discard.index()], class.bytes[Op::Discard.index()])
    };
    let (operations, bytes) = discards(&bed);
    assert_eq!(bytes, len / 2);
    bed.run(Operation::unlink(bed.path("data"), len).unwrap()).result.unwrap();
    assert!(!bed.path("data").exists());
    // a name cannot go in parts
    assert_eq!(discards(&bed), (operations + 1, bytes + len));
    let class = bed.shard.queue().classes()[1].operations;
    assert_eq!(class[Op::Flush.index()], 2);
}

fn an_error_is_that_of_the_disk(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    drop(bed.file());
    let file = DirectFile::options().read(true).open(bed.path("data")).unwrap();
    let finished = bed.run(Operation::write(file, 0, filled(LARGE, 0)));
    let errno = finished.result.unwrap_err().raw_os_error();
    assert_eq!(errno, Some(rustix::io::Errno::BADF.raw_os_error()));
    assert_eq!(finished.operation.into_buffer::<AlignedBuf>().unwrap().len(), LARGE);
    assert_eq!(bed.shard.queue().counters().in_disk, 0);
}

fn a_range_that_is_none_is_refused(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let hole = Operation::PunchHole { file: file.clone(), offset: u64::MAX - 10, len: 100 };
    let (error, _) = bed.shard.submit(&bed.class, hole).unwrap_err();
    assert_eq!(error, RequestError::Range { offset: u64::MAX - 10, len: 100 }.into());
    let allocate = Operation::Allocate { file: file.clone(), offset: 0, len: 0 };
    let (error, _) = bed.shard.submit(&bed.class, allocate).unwrap_err();
    assert_eq!(error, RequestError::Empty.into());
    let buffer = || filled(BLOCK, 3);
    let read =
        Operation::Read { file: file.clone(), offset: 0, buffer: buffer().into(), range: 0..0 };
    let write = Operation::Write { file, offset: 0, buffer: buffer().into(), range: 0..0 };
    for empty in [read, write] {
        let (error, _) = bed.shard.submit(&bed.class, empty).unwrap_err();
        assert_eq!(error, RequestError::Empty.into());
    }
}

fn misaligned_requests_are_refused_with_the_value_and_the_alignment(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let alignment = file.offset_alignment();
    if alignment == 1 {
        skipped("no direct I/O here");
        return;
    }
    let mut refused = |offset, range| {
        let buffer = filled(2 * BLOCK, 3);
        let address = buffer.as_ptr().addr();
        let read = Operation::Read { file: file.clone(), offset, buffer: buffer.into(), range };
        let (error, operation) = bed.shard.submit(&bed.class, read).unwrap_err();
        assert_eq!(operation.into_buffer::<AlignedBuf>().unwrap().len(), 2 * BLOCK);
        (error, address)
    };
    let offset = alignment as u64 / 2;
    let (error, _) = refused(offset, 0..BLOCK);
    assert_eq!(error, RequestError::Offset { offset, alignment }.into());
    let (error, _) = refused(0, 0..BLOCK - 1);
    assert_eq!(error, RequestError::Length { len: BLOCK - 1, alignment }.into());
    let (error, address) = refused(0, 1..BLOCK + 1);
    let alignment = file.memory_alignment();
    assert_eq!(error, RequestError::Buffer { address: address + 1, alignment }.into());
    let (error, _) = refused(0, BLOCK..2 * BLOCK + 1);
    assert_eq!(error, SubmitError::Operation(PushError::RangeOutsideBuffer));
}

fn a_refused_operation_is_returned(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let read = || Operation::read(file.clone(), 0, filled(BLOCK, 3));
    let other = Scheduler::builder().build().unwrap().add_class("other", 1).unwrap();
    let (error, operation) = bed.shard.submit(&other, read()).unwrap_err();
    assert_eq!(error, SubmitError::OtherScheduler { class: "other".into() });
    assert_eq!(*operation.into_buffer::<AlignedBuf>().unwrap(), [3; BLOCK]);

    let removed = bed.scheduler.add_class("removed", 1).unwrap();
    bed.scheduler.remove_class(&removed).unwrap();
    let (error, _) = bed.shard.submit(&removed, read()).unwrap_err();
    assert_eq!(error, SubmitError::ClassRemoved);
    assert!(bed.shard.is_empty());
}
