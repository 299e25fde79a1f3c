//! What is asked for is done.

use forebay::engine::BackendChoice;
use forebay::{AlignedBuf, BufResult, FileOptions};

use crate::fixture::{BLOCK, Bed, RATES, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    what_is_written_is_read_back,
    large_and_vectored_requests_come_back_whole,
    short_reads_are_reported_exactly,
    changes_of_the_file_itself,
    a_buffered_file_takes_any_length,
    tasks_are_woken,
    every_io_thread_serves,
    an_error_is_that_of_the_disk,
}

fn what_is_written_is_read_back(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    assert_eq!(file.disk().name(), "disk");
    let writes: Vec<_> = (0..100u64)
        .map(|n| file.write_at(&bed.class, filled(BLOCK, n as u8), n * BLOCK as u64))
        .collect();
    for write in writes {
        assert_eq!(write.wait().into_result().unwrap().0, BLOCK);
    }
    for n in [0u64, 99, 50] {
        let BufResult(read, data) =
            file.read_at(&bed.class, filled(BLOCK, 0xee), n * BLOCK as u64).wait();
        assert_eq!((read.unwrap(), &*data), (BLOCK, &[n as u8; BLOCK][..]));
    }
}

fn large_and_vectored_requests_come_back_whole(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let buffers: Vec<_> = (0..40).map(|n| filled(BLOCK * (1 + n % 3), n as u8)).collect();
    let lens: Vec<_> = buffers.iter().map(|buffer| buffer.len()).collect();
    let len: usize = lens.iter().sum();
    let (written, _) = file.write_vectored_at(&bed.class, buffers, 0).wait().into_result().unwrap();
    assert_eq!(written, len);

    let (read, data) = file.read_at(&bed.class, filled(len, 0xee), 0).wait().into_result().unwrap();
    assert_eq!(read, len);
    let mut at = 0;
    for (n, len) in lens.iter().enumerate() {
        assert!(data[at..at + len].iter().all(|&byte| byte == n as u8));
        at += len;
    }
    let buffers = lens.iter().map(|len| filled(*len, 0xee)).collect();
    let (read, buffers) =
        file.read_vectored_at(&bed.class, buffers, 0).wait().into_result().unwrap();
    assert_eq!(read, len);
    assert!(buffers.iter().enumerate().all(|(n, b)| b.len() == lens[n] && b[0] == n as u8));
}

fn short_reads_are_reported_exactly(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let len = 2 * (128 << 10) + BLOCK;
    file.write_at(&bed.class, filled(len, 5), 0).wait().into_result().unwrap();
    let BufResult(read, data) = file.read_at(&bed.class, filled(1 << 20, 1), 0).wait();
    assert_eq!((read.unwrap(), data.len()), (len, 1 << 20));
    let BufResult(read, _) = file.read_at(&bed.class, filled(BLOCK, 1), 1 << 30).wait();
    assert_eq!(read.unwrap(), 0);
    file.truncate(&bed.class, 1000).wait().unwrap();
    let BufResult(read, _) = file.read_at(&bed.class, filled(1 << 20, 1), 0).wait();
    assert_eq!(read.unwrap(), 1000);
}

fn changes_of_the_file_itself(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let (file, class) = (bed.file(), &bed.class);
    file.allocate(class, 0, 1 << 20).wait().unwrap();
    assert_eq!(bed.path("data").metadata().unwrap().len(), 1 << 20);
    file.write_at(class, filled(4 * BLOCK, 1), 0).wait().into_result().unwrap();
    file.sync_data(class).wait().unwrap();
    file.sync_all(class).wait().unwrap();
    file.punch_hole(class, BLOCK as u64, BLOCK as u64).wait().unwrap();
    let (_, data) = file.read_at(class, filled(4 * BLOCK, 7), 0).wait().into_result().unwrap();
    assert_eq!((data[0], data[BLOCK], data[2 * BLOCK]), (1, 0, 1));
    file.truncate(class, 10).wait().unwrap();
    assert_eq!(bed.path("data").metadata().unwrap().len(), 10);
}

fn a_buffered_file_takes_any_length(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let options = FileOptions::new().read(true).write(true).create(true).direct(false);
    let file = bed.scheduler.open(bed.path("buffered"), &options).unwrap();
    let mut odd = AlignedBuf::new(7, 1).unwrap();
    odd.copy_from_slice(b"forebay");
    assert_eq!(file.write_at(&bed.class, odd, 3).wait().into_result().unwrap().0, 7);
    let buffer = AlignedBuf::new(100, 1).unwrap();
    let (read, data) = file.read_at(&bed.class, buffer, 0).wait().into_result().unwrap();
    assert_eq!(&data[..read], b"\0\0\0forebay");
}

fn tasks_are_woken(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let file = bed.file();
    let work = |task: u64| {
        let (file, class) = (file.clone(), bed.class.clone());
        async move {
            let mut buffer = filled(BLOCK, task as u8);
            for round in 0..50 {
                let offset = (task * 50 + round) * BLOCK as u64;
                let (written, same) =
                    file.write_at(&class, buffer, offset).await.into_result().unwrap();
                let (read, same) = file.read_at(&class, same, offset).await.into_result().unwrap();
                assert_eq!((written, read, same[0]), (BLOCK, BLOCK, task as u8));
                buffer = same;
            }
            file.sync_data(&class).await.unwrap();
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tasks: Vec<_> = (0..10).map(|task| runtime.spawn(work(task))).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    smol::block_on(work(11));
}

fn every_io_thread_serves(backend: BackendChoice) {
    let bed = Bed::with(backend, RATES, 3);
    let file = bed.file();
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let (file, class) = (&file, &bed.class);
            scope.spawn(move || {
                let mut buffer = filled(BLOCK, thread as u8);
                for round in 0..50 {
                    let offset = (thread * 50 + round) * BLOCK as u64;
                    buffer = file.write_at(class, buffer, offset).wait().into_result().unwrap().1;
                }
            });
        }
    });
    file.sync_all(&bed.class).wait().unwrap();
    assert_eq!(bed.path("data").metadata().unwrap().len(), 300 * BLOCK as u64);
}

fn an_error_is_that_of_the_disk(backend: BackendChoice) {
    let bed = Bed::new(backend);
    drop(bed.file());
    let file = bed.scheduler.open(bed.path("data"), &FileOptions::new().read(true)).unwrap();
    let BufResult(result, buffer) = file.write_at(&bed.class, filled(1 << 20, 3), 0).wait();
    let errno = result.unwrap_err().raw_os_error();
    assert_eq!(errno, Some(rustix::io::Errno::BADF.raw_os_error()));
    assert_eq!((buffer.len(), buffer[0]), (1 << 20, 3));
}
