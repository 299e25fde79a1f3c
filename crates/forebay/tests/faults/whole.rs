//! A whole disk that hangs: it gets two windows and probes, other disks notice
//! nothing, and dropping the scheduler ends.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forebay::engine::{BackendChoice, Operation};
use forebay::{AdmitError, Op};

use crate::bench::{BLOCK, Bench, ends, filled};
use crate::disk::Disk;

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    shards_on_a_disk_that_hangs,
    files_on_a_disk_that_hangs,
    permits_on_a_disk_that_hangs,
}

/// Far more than it gets.
const REQUESTS: u64 = 500;

fn bench(backend: BackendChoice) -> Option<Bench> {
    Bench::new(backend, Disk::hanging())
}

fn shards_on_a_disk_that_hangs(backend: BackendChoice) {
    let Some(bench) = bench(backend) else { return };
    let file = bench.direct_file();
    let mut shards = [bench.shard(), bench.shard()];
    for n in 0..REQUESTS {
        let read = Operation::read(file.clone(), n * BLOCK as u64, filled(0));
        let shard = &mut shards[n as usize % 2];
        shard.submit(&bench.class, read).map_err(|(error, _)| error).unwrap();
    }
    while !bench.has_probed() {
        for shard in &mut shards {
            shard.run_once(Some(Duration::from_millis(1))).unwrap();
            assert!(shard.pop().is_none());
        }
    }
    bench.assert_two_windows_and_probes();
    bench.assert_other_disk_notices_nothing();
    let disk = bench.scheduler.disk("served").unwrap();
    ends("dropping two shards", || drop(shards));
    assert_eq!(disk.in_flight(), Duration::ZERO);
}

fn files_on_a_disk_that_hangs(backend: BackendChoice) {
    let Some(bench) = bench(backend) else { return };
    let file = bench.file();
    let read = |n: u64| file.read_at(&bench.class, filled(0), n * BLOCK as u64);
    let requests: Vec<_> = (0..REQUESTS).map(read).collect();
    while !bench.has_probed() {
        thread::sleep(Duration::from_millis(1));
    }
    bench.assert_two_windows_and_probes();
    bench.assert_other_disk_notices_nothing();
    ends("dropping the requests", || drop(requests));
    let Bench { scheduler, class, served, .. } = bench;
    ends("dropping the scheduler", || drop((file, class, scheduler)));
    drop(served);
}

/// Threads that do their I/O themselves, on whatever backend.
fn permits_on_a_disk_that_hangs(backend: BackendChoice) {
    let Some(bench) = bench(backend) else { return };
    let over = Arc::new(AtomicBool::new(false));
    let file = Arc::new(std::fs::File::open(bench.served.path()).unwrap());
    let threads: Vec<_> = (0..64)
        .map(|n| {
            let (class, over, file) = (bench.class.clone(), Arc::clone(&over), Arc::clone(&file));
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match class.admit_timeout(Op::Read, BLOCK as u64, Duration::from_millis(50)) {
                        Ok(permit) => permit.complete(&file.read_at(&mut [0; BLOCK], n * 4096)),
                        Err(error) => assert!(matches!(error, AdmitError::TimedOut)),
                    }
                }
            })
        })
        .collect();
    while !bench.has_probed() {
        thread::sleep(Duration::from_millis(1));
    }
    bench.assert_two_windows_and_probes();
    bench.assert_other_disk_notices_nothing();
    over.store(true, Ordering::Relaxed);
    let Bench { scheduler, class, served, .. } = bench;
    ends("dropping the scheduler", || drop((class, scheduler)));
    // the reads fail, and their threads give their permits back
    drop(served);
    for thread in threads {
        thread.join().unwrap();
    }
}
