//! What was found of requests.

use serde::Serialize;

use super::latencies::LatencySummary;
use super::split_points::SplitCause;
use super::watched::FileSystem;
use crate::block_event::Direction;

/// What was found, device by device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestsSummary {
    /// Those that were asked anything, in the order of what they were asked first.
    pub devices: Vec<DeviceSummary>,
    /// Requests of further devices, beyond the maximum.
    pub uncounted: u64,
    /// Requests of io_uring that threads of the kernel did, by what they do.
    pub async_work: Vec<AsyncWork>,
}

/// Requests of io_uring that would have had to wait, and were given to a thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AsyncWork {
    /// What they do, such as `WRITE`.
    pub operation: String,
    /// How many.
    pub requests: u64,
}

/// What a device was asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// The name of the device.
    pub name: String,
    /// Requests that begin or end inside of a block of this many bytes are misaligned.
    pub block_bytes: u64,
    /// Reads, writes and discards, as far as there were any.
    pub directions: Vec<DirectionSummary>,
    /// The borders at which requests are split, if any are known or found.
    pub border: Option<BorderSummary>,
    /// By member of an array whose chunks and members are known, its part of what was in flight.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<f64>,
    /// Why reads and writes are split where they are, if one cause fits nine of ten splits.
    pub cause: Option<SplitCause>,
    /// The longest request that the kernel sends to it, where that is known.
    pub longest_bytes: Option<u64>,
    /// What a request carries whose memory is as many pages as it may have pieces, where that is
    /// known (`max_segments` of its queue in `/sys`).
    pub pages_bytes: Option<u64>,
    /// The longest request that the kernel can be told to send to it, where that is known.
    pub longest_possible_bytes: Option<u64>,
    /// The file system on it, where that is known; of several the one of the smallest blocks.
    pub file_system: Option<FileSystem>,
    /// Writes that begin or end inside of a block which was read within 100 ms before them.
    pub read_before_misaligned: u64,
    /// Flushes, and commands of zoned disks.
    pub other_requests: u64,
    /// Completions of any kind, of flushes and other commands too.
    pub completions: u64,
    /// How many of them report which error.
    pub errors: Vec<ErrorCount>,
    /// Reads and writes that were split, or that have a border inside.
    pub split_requests: Vec<SplitRequest>,
    /// How many more of these there are.
    pub split_requests_more: u64,
}

/// Completions with one error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// Its number (`errno`), such as 5 for EIO.
    pub error: u16,
    /// How many.
    pub completions: u64,
}

/// The event by which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBasis {
    /// Those that were handed to the device.
    Queued,
    /// Those that went to its driver, merged and split, for none was recorded earlier.
    Issued,
}

/// Requests of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Which.
    pub direction: Direction,
    /// Which requests the next figures count.
    pub counted: CountBasis,
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many begin at multiples of which power of two.
    pub alignment: Vec<AlignedRequests>,
    /// How many begin or end inside of a block.
    pub misaligned: u64,
    /// How many failed, or a part of them.
    pub failed: u64,
    /// How many the disk completed in parts, though they were sent to it at once.
    pub partial: u64,
    /// Latencies of requests that were done at once, in microseconds from when they were handed
    /// over.
    pub whole_us: LatencySummary,
    /// Of requests that were split, until all of them was done.
    pub split_us: LatencySummary,
    /// The part of each split request that was done first.
    pub first_part_us: LatencySummary,
    /// Latencies in the disk: from when something went to the driver until all of it was done.
    pub disk_us: LatencySummary,
    /// How many had not ended.
    pub unfinished: u64,
}

/// Borders at multiples of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BorderSummary {
    /// That length.
    pub bytes: u64,
    /// How it is known.
    pub known: BorderKnown,
    /// Reads and writes that were split at one.
    pub split: u64,
    /// Reads and writes with one inside that were not split.
    pub whole: u64,
}

/// How the borders of a device are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BorderKnown {
    /// The user said so.
    Stated,
    /// The kernel says so.
    System,
    /// From where requests were split.
    Splits,
    /// The same, from so few that it may be a smaller power of two.
    FewSplits,
}

/// A request that was split, or has a border inside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitRequest {
    /// When it was handed over, in seconds since the beginning.
    pub at_s: f64,
    /// Which way it goes.
    pub direction: Direction,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Whether it was split; otherwise it has a border inside and was done at once.
    pub split: bool,
    /// Where it was split, or else where the borders are, in bytes; the first few.
    pub points: Vec<u64>,
    /// What was done at once; the first few.
    pub parts: Vec<SplitPart>,
}

/// A part of a request that was done at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SplitPart {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// How long it took, in microseconds since the request was handed over.
    pub latency_us: f64,
}

/// The powers of two that are counted: from 512 bytes to 1 MiB and more.
const LEAST: u32 = 9;
const MOST: u32 = 20;

/// How many requests begin at multiples of which power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    counts: [u64; (MOST - LEAST + 1) as usize],
}

/// The requests whose offset is a multiple of a power of two, and of no greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AlignedRequests {
    /// The power of two, in bytes; the last one stands for all that are greater.
    pub bytes: u64,
    /// How many requests.
    pub requests: u64,
}

impl Alignment {
    pub(super) fn add(&mut self, offset: u64) {
        let power = offset.trailing_zeros().clamp(LEAST, MOST);
        if let Some(count) = self.counts.get_mut((power - LEAST) as usize) {
            *count += 1;
        }
    }

    /// From the least power to the greatest.
    pub(super) fn histogram(&self) -> Vec<AlignedRequests> {
        let powers = self.counts.iter().zip(LEAST..);
        powers.map(|(&requests, power)| AlignedRequests { bytes: 1 << power, requests }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_counted_by_their_greatest_power_of_two() {
        let mut alignment = Alignment::default();
        for offset in [0, 512, 1024, 3 << 10, 4096, 12 << 10, 64 << 10, 1 << 20, 3 << 30] {
            alignment.add(offset);
        }
        let histogram = alignment.histogram();
        let found: Vec<_> = histogram.iter().filter(|part| part.requests > 0).collect();
        let found: Vec<_> = found.iter().map(|part| (part.bytes >> 9, part.requests)).collect();
        assert_eq!(found, [(1, 1), (2, 2), (8, 2), (128, 1), (2048, 3)]);
        assert_eq!((histogram.len(), histogram[0].bytes, histogram[11].bytes), (12, 512, 1 << 20));
    }
}
