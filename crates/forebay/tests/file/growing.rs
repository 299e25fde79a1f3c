//! Files that are made longer ahead of the writes behind their end.

use std::fs;

use forebay::engine::BackendChoice;
use forebay::{BufResult, File, FileOptions};

use crate::fixture::{BLOCK, Bed, STUCK, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    it_is_doubled_ahead_of_its_writes_and_trimmed_to_them,
    writes_from_many_threads_lose_nothing_to_its_growth,
    why_it_cannot_grow_is_told_to_the_write_that_needed_it,
    its_length_stays_when_it_is_dropped_and_follows_what_the_program_does,
    a_write_after_a_cancelled_truncation_cuts_nothing_off,
}

const HINT: u64 = 4 * BLOCK as u64;

fn growing(bed: &Bed, hint: u64) -> File {
    let options = FileOptions::new().read(true).write(true).create(true).growing(hint);
    bed.scheduler.open(bed.path("data"), &options).unwrap()
}

fn len(bed: &Bed) -> u64 {
    fs::metadata(bed.path("data")).unwrap().len()
}

fn write(bed: &Bed, file: &File, block: u64) {
    let at = block * BLOCK as u64;
    let written = file.write_at(&bed.class, filled(BLOCK, block as u8), at).wait();
    assert_eq!(written.into_result().unwrap().0, BLOCK);
}

fn it_is_doubled_ahead_of_its_writes_and_trimmed_to_them(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = growing(&bed, HINT);
    assert_eq!(len(&bed), 0, "nothing before the first write");
    let mut lengths = Vec::new();
    for block in 0..33 {
        write(&bed, &file, block);
        lengths.push(len(&bed) / BLOCK as u64);
    }
    lengths.dedup();
    assert_eq!(lengths, [4, 8, 16, 32, 64]);
    let buffers = vec![filled(BLOCK, 0), filled(BLOCK, 0)];
    let at = 63 * BLOCK as u64;
    file.write_vectored_at(&bed.class, buffers, at).wait().into_result().unwrap();
    assert_eq!(len(&bed) / BLOCK as u64, 128);
    file.truncate_to_written(&bed.class).wait().unwrap();
    assert_eq!(len(&bed) / BLOCK as u64, 65);
    write(&bed, &file, 65);
    assert_eq!(len(&bed) / BLOCK as u64, 130, "it grows again");
}

fn writes_from_many_threads_lose_nothing_to_its_growth(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = growing(&bed, 1);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bed, file) = (&bed, &file);
            scope.spawn(move || (0..50).for_each(|n| write(bed, &file.clone(), n * 4 + thread)));
        }
    });
    file.truncate_to_written(&bed.class).wait().unwrap();
    assert_eq!(len(&bed), 200 * BLOCK as u64);
    let data = fs::read(bed.path("data")).unwrap();
    assert!(data.chunks(BLOCK).zip(0..).all(|(block, n)| block.iter().all(|&byte| byte == n)));
}

fn why_it_cannot_grow_is_told_to_the_write_that_needed_it(backend: BackendChoice) {
    let bed = Bed::new(backend);
    write(&bed, &bed.file(), 0);
    let options = FileOptions::new().read(true).growing(HINT);
    let file = bed.scheduler.open(bed.path("data"), &options).unwrap();
    let BufResult(written, buffer) =
        file.write_at(&bed.class, filled(BLOCK, 9), BLOCK as u64).wait();
    let error = written.unwrap_err().to_string();
    assert!(error.contains("cannot make the file"), "{error}");
    assert_eq!((buffer.len(), buffer[0]), (BLOCK, 9), "the buffer comes back");
    assert_eq!(len(&bed), BLOCK as u64);
    let error = bed.file().truncate_to_written(&bed.class).wait().unwrap_err().to_string();
    assert!(error.contains("growing"), "{error}");
}

fn its_length_stays_when_it_is_dropped_and_follows_what_the_program_does(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = growing(&bed, HINT);
    write(&bed, &file, 0);
    drop(file);
    assert_eq!(len(&bed), HINT);
    let file = growing(&bed, HINT);
    file.truncate_to_written(&bed.class).wait().unwrap();
    assert_eq!(len(&bed), HINT, "nobody knows what was written before");
    file.truncate(&bed.class, 2 * BLOCK as u64).wait().unwrap();
    write(&bed, &file, 2);
    assert_eq!(len(&bed), HINT);
    file.allocate(&bed.class, 0, 4 * HINT).wait().unwrap();
    write(&bed, &file, 5);
    assert_eq!(len(&bed), 4 * HINT, "it is long enough");
    // Refused, it makes nothing longer.
    file.write_at(&bed.class, filled(BLOCK, 0), 1 + (1 << 30)).wait().into_result().unwrap_err();
    assert_eq!(len(&bed), 4 * HINT);
    file.truncate_to_written(&bed.class).wait().unwrap();
    assert_eq!(len(&bed), 6 * BLOCK as u64);
}

fn a_write_after_a_cancelled_truncation_cuts_nothing_off(backend: BackendChoice) {
    let bed = Bed::with(backend, STUCK, 1);
    let data = vec![7; 10 * BLOCK];
    fs::write(bed.path("data"), &data).unwrap();
    let file = growing(&bed, HINT);
    let other = bed.scheduler.file_from_fd(fs::File::open(bed.path("data")).unwrap()).unwrap();
    // A burst lets 32 through, and nothing comes after for an hour.
    let read = |_| other.read_at(&bed.class, filled(BLOCK, 0), 0);
    let _before: Vec<_> = (0..100).map(read).collect();
    drop(file.truncate(&bed.class, 0));
    let _write = file.write_at(&bed.class, filled(BLOCK, 9), 0);
    assert_eq!(fs::read(bed.path("data")).unwrap(), data);
}
