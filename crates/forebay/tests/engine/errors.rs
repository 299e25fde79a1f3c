//! Errors arrive with the operation that caused them.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use forebay::DirectFile;
use forebay::engine::{BackendChoice, Operation, PushError};
use rustix::io::Errno;

use crate::bench::{BLOCK, Bench, engine, filled};

tests_of! {
    IoUring io_uring, LinuxAio linux_aio, Threads threads;
    the_kernels_errors_are_reported,
    errors_leave_the_engine_usable,
    a_failing_operation_does_not_hold_others_back,
    the_cursor_of_a_buffered_file_is_no_offset,
}

fn the_kernels_errors_are_reported(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));

    let read_only = DirectFile::options().read(true).open(bench.path("data")).unwrap();
    let write = Operation::write(read_only.clone(), 0, filled(BLOCK, 1));
    assert_eq!(bench.errno(write), Errno::BADF.raw_os_error());
    let hole = Operation::PunchHole { file: read_only, offset: 0, len: 1 };
    assert_eq!(bench.errno(hole), Errno::BADF.raw_os_error());

    let write_only = DirectFile::options().write(true).open(bench.path("data")).unwrap();
    let read = Operation::read(write_only, 0, filled(BLOCK, 1));
    assert_eq!(bench.errno(read), Errno::BADF.raw_os_error());

    let full = DirectFile::options().write(true).open("/dev/full").unwrap();
    let write = Operation::write(full, 0, filled(BLOCK, 1));
    assert_eq!(bench.errno(write), Errno::NOSPC.raw_os_error());

    let unlink = Operation::unlink(bench.path("missing"), 0).unwrap();
    assert_eq!(bench.errno(unlink), Errno::NOENT.raw_os_error());

    let empty = Operation::Allocate { file, offset: 0, len: 0 };
    assert_eq!(bench.errno(empty), Errno::INVAL.raw_os_error());
}

fn errors_leave_the_engine_usable(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    for _ in 0..100 {
        let unlink = Operation::unlink(bench.path("missing"), 0).unwrap();
        assert_eq!(bench.errno(unlink), Errno::NOENT.raw_os_error());
    }
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));
    assert_eq!(bench.engine.in_flight(), 0);
}

fn a_failing_operation_does_not_hold_others_back(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));
    let read_only = DirectFile::options().read(true).open(bench.path("data")).unwrap();
    for token in 0..20 {
        let operation = if token % 2 == 0 {
            Operation::write(read_only.clone(), 0, filled(BLOCK, 1))
        } else {
            Operation::read(read_only.clone(), 0, filled(BLOCK, 0))
        };
        bench.engine.push(token, operation).unwrap();
    }
    for _ in 0..20 {
        let completed = crate::bench::next(&mut bench.engine);
        assert_eq!(completed.result.is_ok(), completed.token % 2 == 1);
    }
}

#[test]
fn an_operation_that_makes_no_sense_comes_back() {
    let mut engine = engine(BackendChoice::Null, 1);
    let file = DirectFile::options().read(true).open("/dev/null").unwrap();
    let read =
        Operation::Read { file, offset: 7, buffer: filled(BLOCK, 0).into(), range: 0..BLOCK + 1 };
    let (error, operation) = engine.push(1, read).unwrap_err();
    assert_eq!(error, PushError::RangeOutsideBuffer);
    assert!(matches!(operation, Operation::Read { offset: 7, .. }));
    assert_eq!(engine.in_flight(), 0);
}

/// To `preadv2` and `pwritev2`, which try buffered requests first, and to io_uring the largest offset
/// is the cursor of the descriptor.
fn the_cursor_of_a_buffered_file_is_no_offset(backend: BackendChoice) {
    let mut engine = engine(backend, 1);
    let dir = tempfile::tempdir().unwrap();
    let mut cursor = File::options();
    let cursor = cursor.read(true).write(true).create(true).truncate(false);
    let mut cursor = cursor.open(dir.path().join("data")).unwrap();
    cursor.set_len(4 * BLOCK as u64).unwrap();
    cursor.seek(SeekFrom::Start(BLOCK as u64)).unwrap();
    let file = DirectFile::from_fd(cursor.try_clone().unwrap()).unwrap();
    for offset in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let buffers = || vec![filled(BLOCK, 1)];
        for operation in [
            Operation::read(file.clone(), offset, filled(BLOCK, 1)),
            Operation::write(file.clone(), offset, filled(BLOCK, 1)),
            Operation::ReadVectored { file: file.clone(), offset, buffers: buffers() },
            Operation::WriteVectored { file: file.clone(), offset, buffers: buffers() },
        ] {
            let (error, _) = engine.push(1, operation).unwrap_err();
            assert_eq!(error, PushError::OffsetTooLarge);
        }
    }
    assert_eq!((engine.in_flight(), engine.retries()), (0, Default::default()));
    assert_eq!(cursor.stream_position().unwrap(), BLOCK as u64);
    let mut unchanged = Vec::new();
    std::io::Read::read_to_end(&mut cursor, &mut unchanged).unwrap();
    assert_eq!(unchanged, [0; 3 * BLOCK]);
}
