//! Readers at a fixed rate, and writers that write all they can.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use forebay_load::Rng;

use crate::engine::{Failure, ROWS, Store};
use crate::mode::Mode;
use crate::outcome::Outcome;

const READERS: u64 = 4;
/// A reader wants a row so often, and counts from when it wanted it.
const READ_EVERY: Duration = Duration::from_millis(5);
/// Not counted.
const WARM_UP: Duration = Duration::from_secs(3);

pub(crate) struct Load {
    pub(crate) writers: u64,
    pub(crate) measured: Duration,
}

impl Load {
    /// The store under this load.
    pub(crate) fn run(&self, store: &dyn Store, mode: &Mode) -> Result<Outcome, Failure> {
        let (is_over, loaded) = (AtomicBool::new(false), AtomicU64::new(0));
        let begin = Instant::now();
        let first = begin + WARM_UP;
        thread::scope(|scope| {
            let writers: Vec<_> = (0..self.writers)
                .map(|number| {
                    scope.spawn({
                        let all = (&is_over, &loaded);
                        move || write(store, mode, number, all)
                    })
                })
                .collect();
            let readers: Vec<_> = (0..READERS)
                .map(|number| {
                    scope.spawn(move || read(store, mode, number, [first, first + self.measured]))
                })
                .collect();
            thread::sleep(first.saturating_duration_since(Instant::now()));
            let before = loaded.load(Ordering::Relaxed);
            let counted = Instant::now();
            thread::sleep(self.measured);
            let bytes = loaded.load(Ordering::Relaxed) - before;
            let rate = bytes as f64 / counted.elapsed().as_secs_f64();
            let latencies: Result<Vec<_>, _> = readers.into_iter().map(joined).collect();
            is_over.store(true, Ordering::Relaxed);
            writers.into_iter().try_for_each(joined)?;
            let mut latencies = latencies?.concat();
            latencies.sort_unstable();
            Ok(Outcome { latencies, rate })
        })
    }
}

/// Writes batches until it is over.
fn write(
    store: &dyn Store,
    mode: &Mode,
    number: u64,
    (is_over, loaded): (&AtomicBool, &AtomicU64),
) -> Result<(), Failure> {
    let _entered = mode.enter_commits();
    let mut rng = Rng::new(1, &[number]);
    while !is_over.load(Ordering::Relaxed) {
        loaded.fetch_add(store.write(number, &mut rng)?, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads rows from now on; how long those took that were wanted within this time.
fn read(
    store: &dyn Store,
    mode: &Mode,
    number: u64,
    [first, end]: [Instant; 2],
) -> Result<Vec<Duration>, Failure> {
    let _entered = mode.enter_reads();
    let mut rng = Rng::new(2, &[number]);
    let mut latencies = Vec::new();
    // the readers by turns
    let mut due = Instant::now() + READ_EVERY * number as u32 / READERS as u32;
    while due < end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        store.read(rng.below(ROWS))?;
        if due >= first {
            latencies.push(due.elapsed());
        }
        due += READ_EVERY;
    }
    Ok(latencies)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
}
