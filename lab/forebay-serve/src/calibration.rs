//! What the way through the kernel and the server's threads takes by itself.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use forebay_core::{DiskRates, Time};
use forebay_sim::disk::{Command, Completion, SimDisk, Status};

use crate::realtime;

/// Reads timed; the median of them counts.
const READS: usize = 201;

/// Reads before them, so that all threads and caches are warm.
const READS_WARM: usize = 20;

/// A machine that takes longer is too busy to measure.
const OVERHEAD_MAX: Duration = Duration::from_micros(250);

/// Answers everything after the same time: long enough that all threads
/// sleep in between, as they do alongside a real load.
#[derive(Default)]
pub(crate) struct FixedDelay {
    under_way: VecDeque<(Time, u64)>,
}

impl FixedDelay {
    const DELAY: Duration = Duration::from_micros(300);
}

impl SimDisk for FixedDelay {
    fn submit(&mut self, now: Time, id: u64, _: Command) {
        let delay = u64::from(Self::DELAY.subsec_nanos());
        self.under_way.push_back((now.plus_nanos(delay), id));
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        let (at, id) = self.under_way.pop_front_if(|(at, _)| *at <= now)?;
        Some(Completion { id, at, status: Status::Done })
    }

    fn next_event(&self) -> Option<Time> {
        self.under_way.front().map(|&(at, _)| at)
    }

    fn rates(&self) -> DiskRates {
        let most = u64::MAX;
        DiskRates { read_iops: most, write_iops: most, read_bandwidth: most, write_bandwidth: most }
    }

    fn base_latency(&self) -> Duration {
        Self::DELAY
    }
}

/// How much longer than [`FixedDelay`] says a read of `len` bytes of the file
/// takes.
pub(crate) fn measure(path: &Path, len: u32, realtime: bool) -> io::Result<Duration> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let reader = thread::Builder::new().name("forebay-calibration".into());
    let reader = reader.spawn(move || {
        let _ = realtime::enter_if(realtime);
        let mut data = vec![0; len as usize];
        let mut taken = Vec::with_capacity(READS);
        for read in 0..READS_WARM + READS {
            let start = Instant::now();
            file.read_exact_at(&mut data, 0)?;
            if read >= READS_WARM {
                taken.push(start.elapsed());
            }
        }
        taken.sort_unstable();
        Ok(taken[READS / 2].saturating_sub(FixedDelay::DELAY).min(OVERHEAD_MAX))
    })?;
    reader.join().unwrap_or_else(|_| Err(io::Error::other("the self-test ended early")))
}
