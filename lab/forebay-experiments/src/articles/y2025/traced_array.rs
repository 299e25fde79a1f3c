//! An array whose requests are traced, as blktrace does: where requests go, and which are split.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_core::{DiskRates, Time};
use forebay_load::recorder::Latencies;
use forebay_sim::disk::{Command, Completion, Raid0, SimDisk};

/// Members of the published array.
pub(crate) const MEMBERS: usize = 4;
/// Bytes of its chunks.
pub(crate) const CHUNK: u64 = 1 << 20;
/// Growing files of a simulation are so far apart.
pub(crate) const FILE_SPACING: u64 = 1 << 40;

/// What was recorded of the requests to an array.
pub(crate) struct ArrayTrace {
    slice_nanos: u64,
    /// Parts under way on each member.
    in_flight: Vec<u64>,
    /// Of each slice of time: the sum of the busiest member's parts of all under way, and how
    /// many there are.
    busiest: Vec<(f64, u64)>,
    /// Requests that fell on one member.
    pub(crate) whole: Latencies,
    /// Requests that were split.
    pub(crate) split: Latencies,
}

impl ArrayTrace {
    /// The busiest member's part of what is under way, over time in seconds.
    pub(crate) fn busiest_over_time(&self) -> Vec<(f64, f64)> {
        let slices = self.busiest.iter().enumerate().filter(|(_, (_, count))| *count > 0);
        let seconds = self.slice_nanos as f64 / 1e9;
        slices.map(|(at, (sum, count))| (at as f64 * seconds, sum / *count as f64)).collect()
    }

    fn submitted(&mut self, now: Time, members: &[usize]) {
        for &member in members {
            self.in_flight[member] += 1;
        }
        let total: u64 = self.in_flight.iter().sum();
        let most = self.in_flight.iter().max().copied().unwrap_or(0);
        let at = (now.as_nanos() / self.slice_nanos) as usize;
        if self.busiest.len() <= at {
            self.busiest.resize(at + 1, (0.0, 0));
        }
        self.busiest[at].0 += most as f64 / total.max(1) as f64;
        self.busiest[at].1 += 1;
    }

    fn finished(&mut self, nanos: u64, members: &[usize]) {
        for &member in members {
            self.in_flight[member] -= 1;
        }
        let latencies = if members.len() > 1 { &mut self.split } else { &mut self.whole };
        latencies.record(nanos);
    }
}

/// An array of equal members whose growing files begin at given offsets.
pub(crate) struct TracedArray {
    array: Raid0,
    chunk: u64,
    members: u64,
    /// The first byte of each growing file, beyond a multiple of all chunks; the last one stands
    /// for all files after it.
    starts: Vec<u64>,
    trace: Arc<Mutex<ArrayTrace>>,
    under_way: HashMap<u64, (Time, Vec<usize>)>,
}

impl TracedArray {
    /// An array of these members with chunks of `chunk` bytes, and what is recorded of it in slices
    /// of this length.
    pub(crate) fn new(
        chunk: u64,
        members: Vec<Box<dyn SimDisk>>,
        starts: Vec<u64>,
        slice_nanos: u64,
    ) -> Result<(Self, Arc<Mutex<ArrayTrace>>), String> {
        let latencies = || Latencies::new().map_err(|error| error.to_string());
        let trace = ArrayTrace {
            slice_nanos: slice_nanos.max(1),
            in_flight: vec![0; members.len()],
            busiest: Vec::new(),
            whole: latencies()?,
            split: latencies()?,
        };
        let trace = Arc::new(Mutex::new(trace));
        let count = members.len() as u64;
        let array = Raid0::new(chunk, members);
        let (recorded, under_way) = (Arc::clone(&trace), HashMap::new());
        let traced = Self { array, chunk, members: count, starts, trace: recorded, under_way };
        Ok((traced, trace))
    }

    fn record(&self, record: impl FnOnce(&mut ArrayTrace)) {
        record(&mut self.trace.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Which of `members` members a range falls on, each once per chunk.
fn members_of(offset: u64, len: u64, chunk: u64, members: u64) -> Vec<usize> {
    let chunks = offset / chunk..=(offset + len.max(1) - 1) / chunk;
    chunks.map(|chunk| (chunk % members) as usize).collect()
}

impl SimDisk for TracedArray {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let file = (command.offset / FILE_SPACING) as usize;
        let start = self.starts.get(file).or_else(|| self.starts.last()).copied().unwrap_or(0);
        let command = Command { offset: command.offset + start, ..command };
        let members = members_of(command.offset, command.len, self.chunk, self.members);
        self.record(|trace| trace.submitted(now, &members));
        self.under_way.insert(id, (now, members));
        self.array.submit(now, id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        let finished = self.array.poll_completion(now)?;
        if let Some((since, members)) = self.under_way.remove(&finished.id) {
            self.record(|trace| trace.finished(finished.at.nanos_since(since), &members));
        }
        Some(finished)
    }

    fn next_event(&self) -> Option<Time> {
        self.array.next_event()
    }

    fn rates(&self) -> DiskRates {
        self.array.rates()
    }

    fn base_latency(&self) -> Duration {
        self.array.base_latency()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_falls_on_the_members_of_its_chunks() {
        let members = |offset, len| members_of(offset, len, CHUNK, 4);
        assert_eq!(members(0, 131_072), [0]);
        assert_eq!(members(5 * CHUNK - 512, 1024), [0, 1]);
        assert_eq!(members(3 * CHUNK, CHUNK + 1), [3, 0]);
    }
}
