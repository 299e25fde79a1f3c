//! Threads that submit in one class share it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay::engine::BackendChoice;
use forebay::{DiskRates, FileOptions};

use crate::fixture::{BLOCK, Bed, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads; a_greedy_thread_does_not_starve_a_modest_one }

/// One thread keeps 200 requests waiting, another one: the latter is served
/// each time it comes round, not after the 200.
fn a_greedy_thread_does_not_starve_a_modest_one(backend: BackendChoice) {
    const MODEST: usize = 100;
    let rates = DiskRates { read_iops: 4_000, write_iops: 4_000, ..crate::fixture::RATES };
    let bed = Bed::with(backend, rates, 1);
    let options = FileOptions::new().read(true).write(true);
    let null = bed.disk().open("/dev/null", &options.direct(false)).unwrap();
    let (greedy, over, start) = (AtomicU64::new(0), AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let write = || null.write_at(&bed.class, filled(BLOCK, 0), 0);
            let mut requests: std::collections::VecDeque<_> = (0..200).map(|_| write()).collect();
            start.wait();
            while !over.load(Ordering::Relaxed) {
                if let Some(first) = requests.pop_front() {
                    first.wait().into_result().unwrap();
                    greedy.fetch_add(1, Ordering::Relaxed);
                }
                requests.push_back(write());
            }
        });
        start.wait();
        let served_alongside = || {
            let before = greedy.load(Ordering::Relaxed);
            null.write_at(&bed.class, filled(BLOCK, 0), 0).wait().into_result().unwrap();
            greedy.load(Ordering::Relaxed) - before
        };
        let mut alongside: Vec<u64> = (0..MODEST).map(|_| served_alongside()).collect();
        over.store(true, Ordering::Relaxed);
        alongside.sort_unstable();
        // In one line it would be 200 of the other's to each of its own. What the I/O queue was fed
        // already, and a window, come between: 11. The median, since either thread may be late.
        let median = alongside[MODEST / 2];
        assert!(median <= 14, "{alongside:?} of the greedy thread to one each");
    });
}
