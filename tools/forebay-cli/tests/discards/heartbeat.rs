//! Whether the machine let programs run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A thread that wants to run so often.
const BEAT: Duration = Duration::from_millis(10);
/// It was kept from it if it ran that much later.
const LATE: Duration = Duration::from_millis(40);

/// Such a thread.
pub(crate) struct Heartbeat {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Heartbeat {
    pub(crate) fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut late = 0;
            while !seen.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(BEAT);
                late += u32::from(began.elapsed() > BEAT + LATE);
            }
            late
        });
        Self { ends, thread }
    }

    /// How often it was kept from running.
    pub(crate) fn end(self) -> u32 {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
