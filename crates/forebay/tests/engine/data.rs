//! Data arrives where it should.

use forebay::AlignedBuf;
use forebay::engine::{BackendChoice, Operation, SEGMENTS_MAX};

use crate::bench::{BLOCK, Bench, engine, filled, next};

tests_of! {
    IoUring io_uring, LinuxAio linux_aio, Threads threads;
    what_is_written_is_read_back,
    a_range_of_a_buffer_is_transferred,
    vectored_requests_join_their_buffers,
    a_read_ends_at_the_end_of_the_file,
    a_buffered_file_takes_any_length,
    synced_and_unlinked,
    a_punched_hole_reads_as_zeros,
    allocation_grows_a_file,
    a_file_is_truncated_to_any_length,
    ten_thousand_random_operations,
}

const BLOCK_U64: u64 = BLOCK as u64;

fn what_is_written_is_read_back(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    for block in [2, 0, 1] {
        bench.write(&file, block * BLOCK_U64, filled(BLOCK, block as u8 + 1));
    }
    for block in 0..3 {
        let data = bench.read(&file, block * BLOCK_U64, BLOCK);
        assert_eq!(data, [block as u8 + 1; BLOCK]);
    }
}

fn a_range_of_a_buffer_is_transferred(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    let range = BLOCK..2 * BLOCK;
    let mut buffer = filled(3 * BLOCK, 1);
    buffer[range.clone()].fill(2);
    let write = Operation::Write {
        file: file.clone(),
        offset: 0,
        buffer: buffer.into(),
        range: range.clone(),
    };
    assert_eq!(bench.run(write).result.unwrap(), BLOCK);

    let buffer = filled(3 * BLOCK, 9);
    let completed = bench.run(Operation::Read { file, offset: 0, buffer: buffer.into(), range });
    assert_eq!(completed.result.unwrap(), BLOCK);
    let buffer = completed.operation.into_buffer::<AlignedBuf>().unwrap();
    let expected = [[9; BLOCK], [2; BLOCK], [9; BLOCK]].concat();
    assert_eq!(*buffer, *expected);
}

fn vectored_requests_join_their_buffers(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    let buffers = (0..SEGMENTS_MAX).map(|i| filled(BLOCK, i as u8)).collect();
    let write = Operation::WriteVectored { file: file.clone(), offset: BLOCK_U64, buffers };
    assert_eq!(bench.run(write).result.unwrap(), SEGMENTS_MAX * BLOCK);

    let buffers = vec![filled(BLOCK, 9), filled(2 * BLOCK, 9)];
    let read = Operation::ReadVectored { file, offset: 3 * BLOCK_U64, buffers };
    let completed = bench.run(read);
    assert_eq!(completed.result.unwrap(), 3 * BLOCK);
    let Operation::ReadVectored { buffers, .. } = completed.operation else {
        panic!("another operation came back");
    };
    assert_eq!(*buffers[0], [2; BLOCK]);
    assert_eq!(*buffers[1], *[[3; BLOCK], [4; BLOCK]].concat());
}

fn a_read_ends_at_the_end_of_the_file(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));
    assert_eq!(bench.read(&file, 0, 4 * BLOCK).len(), BLOCK);
    assert_eq!(bench.read(&file, BLOCK_U64, BLOCK).len(), 0);
    assert_eq!(bench.read(&file, 1 << 40, BLOCK).len(), 0);
}

fn a_buffered_file_takes_any_length(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    drop(bench.file());
    let options = forebay::DirectFile::options().read(true).write(true).direct(false);
    let file = options.open(bench.path("data")).unwrap();
    let mut odd = AlignedBuf::new(7, 1).unwrap();
    odd.copy_from_slice(b"forebay");
    bench.write(&file, 3, odd);
    assert_eq!(bench.read(&file, 0, 100), b"\0\0\0forebay");
}

fn synced_and_unlinked(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(BLOCK, 1));
    assert_eq!(bench.run(Operation::SyncData { file: file.clone() }).result.unwrap(), 0);
    assert_eq!(bench.run(Operation::SyncAll { file }).result.unwrap(), 0);
    let path = bench.path("data");
    assert!(path.exists());
    assert_eq!(bench.run(Operation::unlink(&path, 0).unwrap()).result.unwrap(), 0);
    assert!(!path.exists());
}

fn a_punched_hole_reads_as_zeros(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(4 * BLOCK, 5));
    let hole = Operation::PunchHole { file: file.clone(), offset: BLOCK_U64, len: 2 * BLOCK_U64 };
    bench.run(hole).result.unwrap();
    let expected = [[5; BLOCK], [0; BLOCK], [0; BLOCK], [5; BLOCK]].concat();
    assert_eq!(bench.read(&file, 0, 5 * BLOCK), expected);
}

fn allocation_grows_a_file(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    let allocate = Operation::Allocate { file: file.clone(), offset: 0, len: 2 * BLOCK_U64 };
    bench.run(allocate).result.unwrap();
    assert_eq!(bench.read(&file, 0, 4 * BLOCK), [0; 2 * BLOCK]);
}

fn a_file_is_truncated_to_any_length(backend: BackendChoice) {
    let mut bench = Bench::new(backend);
    let file = bench.file();
    bench.write(&file, 0, filled(2 * BLOCK, 5));
    for len in [100, 3 * BLOCK_U64] {
        let truncate = Operation::Truncate { file: file.clone(), len };
        assert_eq!(bench.run(truncate).result.unwrap(), 0);
        assert_eq!(bench.path("data").metadata().unwrap().len(), len);
    }
    let data = bench.read(&file, 0, 3 * BLOCK);
    assert_eq!((data[99], data[100]), (5, 0));
}

/// A file of blocks that each carry a version number, as the test believes
/// it; operations on different blocks overlap.
fn ten_thousand_random_operations(backend: BackendChoice) {
    const BLOCKS: usize = 200;
    const OPERATIONS: u64 = 10_000;
    let bench = Bench::new(backend);
    let mut engine = engine(backend, 32);
    let file = bench.file();
    let mut versions = [0u64; BLOCKS];
    let mut busy = [false; BLOCKS];
    let mut buffers: Vec<_> = (0..32).map(|_| filled(BLOCK, 0)).collect();
    let mut random = Random(42);
    let mut pushed = 0;
    while pushed < OPERATIONS || engine.in_flight() > 0 {
        while pushed < OPERATIONS && engine.in_flight() < 32 {
            let block = random.below(BLOCKS);
            if busy[block] {
                continue;
            }
            busy[block] = true;
            let mut buffer = buffers.pop().unwrap();
            let offset = block as u64 * BLOCK_U64;
            let operation = if versions[block] == 0 || random.below(2) == 0 {
                pushed += 1;
                versions[block] = pushed;
                stamp(&mut buffer, block as u64, pushed);
                Operation::write(file.clone(), offset, buffer)
            } else {
                pushed += 1;
                buffer.fill(0xee);
                Operation::read(file.clone(), offset, buffer)
            };
            engine.push(block as u64, operation).unwrap();
        }
        let completed = next(&mut engine);
        assert_eq!(completed.result.unwrap(), BLOCK);
        let block = completed.token as usize;
        busy[block] = false;
        let buffer = completed.operation.into_buffer::<AlignedBuf>().unwrap();
        assert!(is_stamped(&buffer, block as u64, versions[block]), "block {block}");
        buffers.push(buffer);
    }
    assert_eq!(engine.in_flight(), 0);
}

fn stamp(buffer: &mut [u8], block: u64, version: u64) {
    for pair in buffer.chunks_exact_mut(16) {
        pair[..8].copy_from_slice(&block.to_ne_bytes());
        pair[8..].copy_from_slice(&version.to_ne_bytes());
    }
}

fn is_stamped(buffer: &[u8], block: u64, version: u64) -> bool {
    let pair = [block.to_ne_bytes(), version.to_ne_bytes()].concat();
    buffer.chunks_exact(16).all(|chunk| chunk == pair)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}
