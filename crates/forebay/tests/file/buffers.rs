//! Buffers of the caller's own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay::engine::BackendChoice;
use forebay::{
    AlignedBuf, BufResult, DirectFile, File, FileOptions, IoBuf, IoBufMut, RequestError, Slice,
};

use crate::fixture::{BLOCK, Bed, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    a_vector_grows_by_what_is_read,
    every_kind_of_buffer_is_written_and_read_back,
    a_part_of_a_buffer_leaves_the_rest_alone,
    a_large_buffer_goes_in_parts_and_comes_back_whole,
    a_buffer_in_the_wrong_place_is_refused_and_comes_back,
    a_buffer_that_nobody_waits_for_is_dropped_once_and_not_before_its_end,
}

/// A file that takes buffers at any address.
fn buffered(bed: &Bed) -> File {
    let options = FileOptions::new().read(true).write(true).create(true).direct(false);
    bed.scheduler.open(bed.path("buffered"), &options).unwrap()
}

fn a_vector_grows_by_what_is_read(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = buffered(&bed);
    let text: &'static [u8] = b"forebay";
    let BufResult(written, text) = file.write_at(&bed.class, text, 0).wait();
    assert_eq!((written.unwrap(), text), (7, &b"forebay"[..]));

    let (read, data) =
        file.read_at(&bed.class, Vec::with_capacity(100), 3).wait().into_result().unwrap();
    assert_eq!((read, &*data), (4, &b"ebay"[..]));
    // What it had already stays, and it does not become shorter.
    let (read, data) = file.read_at(&bed.class, vec![b'x'; 6], 4).wait().into_result().unwrap();
    assert_eq!((read, &*data), (3, &b"bayxxx"[..]));
    let BufResult(read, data) = file.read_at(&bed.class, Vec::with_capacity(9), 100).wait();
    assert_eq!((read.unwrap(), data.len()), (0, 0));
}

fn every_kind_of_buffer_is_written_and_read_back(backend: BackendChoice) {
    fn round_trip<B: IoBufMut>(bed: &Bed, file: &File, mut buffer: B, look: fn(&B) -> Vec<u8>) {
        let len = buffer.bytes_total();
        for byte in [1, 7] {
            // SAFETY: there are this many, and then they are initialised.
            unsafe {
                buffer.stable_mut_ptr().write_bytes(byte, len);
                buffer.set_init(len);
            }
            let BufResult(written, same) = file.write_at(&bed.class, buffer, 0).wait();
            assert_eq!(written.unwrap(), len);
            let mut same = same;
            // SAFETY: there are this many.
            unsafe { same.stable_mut_ptr().write_bytes(0, len) };
            let BufResult(read, same) = file.read_at(&bed.class, same, 0).wait();
            assert_eq!((read.unwrap(), look(&same)), (len, vec![byte; len]));
            buffer = same;
        }
    }
    let bed = Bed::new(backend);
    let file = &buffered(&bed);
    for len in [1, 7, 4096, 300_000] {
        round_trip(&bed, file, vec![0; len], Vec::clone);
        round_trip(&bed, file, Vec::with_capacity(len), Vec::clone);
        round_trip(&bed, file, vec![0; len].into_boxed_slice(), |buffer| buffer.to_vec());
        round_trip(&bed, file, AlignedBuf::new(len, 512).unwrap(), |buffer| buffer.to_vec());
        round_trip(&bed, file, vec![0; len + 2].slice(1..=len).unwrap(), |part| part.to_vec());
        let aligned = AlignedBuf::new(len + 9, 512).unwrap();
        let part = aligned.slice(3..).unwrap().slice(2..len + 2).unwrap();
        round_trip(&bed, file, part, |part| part.to_vec());
        round_trip(&bed, file, Watched::new(len, &Arc::default()), |buffer| buffer.bytes.clone());
    }
}

fn a_part_of_a_buffer_leaves_the_rest_alone(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = buffered(&bed);
    file.write_at(&bed.class, vec![7; 100], 0).wait().into_result().unwrap();
    let part = vec![1; 50].slice(10..20).unwrap();
    let BufResult(read, part) = file.read_at(&bed.class, part, 0).wait();
    assert_eq!((read.unwrap(), part.range()), (10, 10..20));
    assert_eq!(part.into_inner(), [[1; 10], [7; 10], [1; 10], [1; 10], [1; 10]].concat());

    let BufResult(written, part) =
        file.write_at(&bed.class, vec![1, 2, 3, 4].slice(1..3).unwrap(), 0).wait();
    assert_eq!((written.unwrap(), part.into_inner()), (2, vec![1, 2, 3, 4]));
    let (_, data) = file.read_at(&bed.class, vec![0; 3], 0).wait().into_result().unwrap();
    assert_eq!(data, [2, 3, 7]);
}

fn a_large_buffer_goes_in_parts_and_comes_back_whole(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = buffered(&bed);
    let data: Vec<_> = (0..(2 << 20) + 5).map(|n: u32| (n / 1000) as u8).collect();
    let (written, data) = file.write_at(&bed.class, data, 0).wait().into_result().unwrap();
    assert_eq!(written, data.len());
    let (read, back) =
        file.read_at(&bed.class, Vec::with_capacity(4 << 20), 0).wait().into_result().unwrap();
    assert_eq!((read, back.len()), (data.len(), data.len()));
    assert!(back == data);
}

fn a_buffer_in_the_wrong_place_is_refused_and_comes_back(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let alignment = file.direct_file().memory_alignment();
    if alignment == 1 {
        eprintln!("skipped: no direct I/O here");
        return;
    }
    let aligned = filled(2 * BLOCK, 3);
    let address = aligned.stable_ptr().addr() + 1;
    let part = aligned.slice(1..=BLOCK).unwrap();
    let BufResult(refused, part) = file.write_at(&bed.class, part, 0).wait();
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref::<RequestError>());
    assert_eq!(reason, Some(&RequestError::Buffer { address, alignment }));
    assert!(error.to_string().contains("AlignedBuf"), "{error}");
    assert_eq!(*part.into_inner(), [3; 2 * BLOCK]);

    // An aligned part of any buffer is as good as an AlignedBuf.
    let vector = vec![5; 3 * BLOCK];
    let start = vector.as_ptr().align_offset(BLOCK);
    let part = vector.slice(start..start + BLOCK).unwrap();
    let BufResult(written, _) = file.write_at(&bed.class, part, 0).wait();
    assert_eq!(written.unwrap(), BLOCK);
    let part = Vec::with_capacity(BLOCK).slice(0..0).unwrap();
    let BufResult(empty, _): BufResult<Slice<Vec<u8>>> = file.read_at(&bed.class, part, 0).wait();
    assert!(empty.unwrap_err().to_string().contains("0 bytes"));
}

/// A buffer of a program's own, too large to be kept without a box, that
/// knows how many of its kind there are.
struct Watched {
    bytes: Vec<u8>,
    alive: Arc<AtomicUsize>,
    _more: [usize; 20],
}

impl Watched {
    fn new(len: usize, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { bytes: vec![0; len], alive: Arc::clone(alive), _more: [0; 20] }
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self::new(0, &Arc::default())
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: a vector that is not touched keeps its memory where it is.
unsafe impl IoBuf for Watched {
    fn stable_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.bytes.len()
    }

    fn bytes_total(&self) -> usize {
        self.bytes.len()
    }
}

// SAFETY: it owns the vector alone.
unsafe impl IoBufMut for Watched {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    // SAFETY: all bytes are initialised from the beginning, so there is nothing to note.
    unsafe fn set_init(&mut self, _len: usize) {}
}

fn a_buffer_that_nobody_waits_for_is_dropped_once_and_not_before_its_end(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let alive = Arc::new(AtomicUsize::new(0));
    // The kernel has these until something is written, or they are cancelled.
    let (reader, writer) = io::pipe().unwrap();
    let pipe = DirectFile::from_fd(reader).unwrap();
    let reads: Vec<_> = (0..8)
        .map(|_| {
            let read =
                forebay::engine::Operation::read(pipe.clone(), 0, Watched::new(64 << 10, &alive));
            bed.disk().submit(&bed.class, read)
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(20));
    drop(reads);
    drop(writer);
    let file = buffered(&bed);
    for round in 0..500usize {
        let len = [1, 5000, 200_000][round % 3];
        let request = file.write_at(&bed.class, Watched::new(len, &alive), 0);
        let read = file.read_at(&bed.class, Watched::new(len, &alive), 0);
        match round % 4 {
            0 => drop((request, read)),
            1 => drop((request.wait(), read)),
            2 => drop((request, read.wait())),
            _ => drop((request.wait(), read.wait())),
        }
    }
    while alive.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(alive.load(Ordering::Relaxed), 0, "not below, and nothing is left");
}
