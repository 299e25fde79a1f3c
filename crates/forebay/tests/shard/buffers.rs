//! Buffers of the caller's own.

use forebay::engine::{BackendChoice, Operation};
use forebay::{AlignedBuf, DirectFile, IoBuf};

use crate::fixture::Bed;

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads, Null null;
    initialised_bytes_are_known_after_a_transfer,
}

fn initialised_bytes_are_known_after_a_transfer(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let options = DirectFile::options().read(true).write(true).create(true).direct(false);
    let file = options.open(bed.path("buffered")).unwrap();
    let nothing_is_done = backend == BackendChoice::Null;
    // Of several parts, one, and a few bytes.
    for len in [1 << 20, 5000, 3] {
        let byte = if nothing_is_done { 0 } else { 7 };
        let write = Operation::write(file.clone(), 0, vec![7u8; len]);
        let finished = bed.run(write);
        assert_eq!(finished.result.unwrap(), len);
        assert_eq!(finished.operation.into_buffer::<Vec<u8>>().unwrap(), vec![7; len]);

        let finished = bed.run(Operation::read(file.clone(), 0, Vec::with_capacity(len)));
        assert_eq!(finished.result.unwrap(), len);
        let data = finished.operation.into_buffer::<Vec<u8>>().unwrap();
        assert_eq!(data, vec![byte; len]);

        let part = Vec::with_capacity(2 * len).slice(..len).unwrap();
        let mut read = Operation::read(file.clone(), 0, part);
        // What is read behind a gap is there, but not known to be.
        if let Operation::Read { range, .. } = &mut read {
            *range = 1..len;
        }
        let finished = bed.run(read);
        assert_eq!(finished.result.unwrap(), len - 1);
        assert!(finished.operation.into_buffer::<AlignedBuf>().is_none(), "another kind");
    }
    if nothing_is_done {
        return;
    }
    let read = Operation::read(file.clone(), (1 << 20) - 1000, Vec::with_capacity(1 << 20));
    let finished = bed.run(read);
    assert_eq!(finished.result.unwrap(), 1000);
    let data = finished.operation.into_buffer::<Vec<u8>>().unwrap();
    assert_eq!(data, [7; 1000], "no longer than what was read");
}
