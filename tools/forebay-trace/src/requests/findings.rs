//! What is found, in words, and what to do about it.

use forebay_block::uneven_members;
use serde::Serialize;

use super::split_points::SplitCause;
use super::summary::{
    BorderKnown, BorderSummary, DeviceSummary, DirectionSummary, RequestsSummary,
};
use super::watched::FileSystem;
use crate::block_event::Direction;

/// A part of requests that is worth a remedy.
pub(super) const WORTH: f64 = 0.02;

/// Fewer requests say nothing.
pub(super) const REQUESTS_MIN: u64 = 16;

/// Which operations of io_uring move data; others, such as flushes, wait in any case.
const TRANSFERS: [&str; 6] = ["READ", "WRITE", "READV", "WRITEV", "READ_FIXED", "WRITE_FIXED"];

/// A sentence or two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is found, and the remedy if it needs one.
    pub text: String,
    /// Whether it needs one.
    pub warns: bool,
}

impl RequestsSummary {
    /// What is found, in words; what needs a remedy first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = Vec::new();
        for device in &self.devices {
            let texts = device.findings();
            found.extend(texts.into_iter().map(|text| Finding { text, warns: true }));
        }
        let mut notes: Vec<String> = Vec::new();
        self.devices.iter().for_each(|device| notes.extend(device.notes()));
        if found.is_empty() && notes.is_empty() {
            notes.push(self.all_clear().to_owned());
        }
        // of any process, so that nothing follows for what is traced
        notes.extend(self.async_work());
        found.extend(notes.into_iter().map(|text| Finding { text, warns: false }));
        found
    }

    /// Where nothing is found.
    fn all_clear(&self) -> &'static str {
        let directions = self.devices.iter().flat_map(|device| &device.directions);
        match directions.map(|direction| direction.requests).sum() {
            0 => "There were no requests.",
            1..REQUESTS_MIN => "There were too few requests for any finding.",
            _ => {
                "Requests begin and end at blocks, none is split and none failed: there is nothing \
                 to fix."
            }
        }
    }

    fn async_work(&self) -> Option<String> {
        let transfers = self.async_work.iter().filter(|work| {
            let operation = work.operation.strip_prefix("IORING_OP_").unwrap_or(&work.operation);
            TRANSFERS.contains(&operation)
        });
        let count: u64 = transfers.map(|work| work.requests).sum();
        (count > 0).then(|| {
            format!(
                "{count} reads and writes of io_uring, of any process, would have blocked, and \
                 threads of the kernel executed them: file systems block where a write extends a \
                 file or allocates blocks, and where they update its time of change. Allocate \
                 files before writing (fallocate), and overwrite them."
            )
        })
    }
}

impl DeviceSummary {
    /// What needs a remedy.
    fn findings(&self) -> Vec<String> {
        let mut found: Vec<String> = self.failures().into_iter().collect();
        found.extend(self.directions.iter().filter_map(|writes| self.misaligned(writes)));
        found.extend(self.splits());
        found.extend(self.uneven_members());
        found
    }

    /// Members of an array that have much more than their part.
    fn uneven_members(&self) -> impl Iterator<Item = String> {
        let requests: u64 = self.directions.iter().map(|found| found.requests).sum();
        let is_enough = requests >= REQUESTS_MIN.saturating_mul(self.members.len() as u64);
        let uneven = if is_enough { uneven_members(&self.members) } else { Vec::new() };
        uneven.into_iter().map(|uneven| format!("{}: {uneven}.", self.name))
    }

    /// Of splits, what needs a remedy.
    pub(super) fn splits(&self) -> Vec<String> {
        let directions = self.directions.iter();
        let transfers: Vec<_> =
            directions.filter(|found| found.direction != Direction::Discard).collect();
        let all: u64 = transfers.iter().map(|found| found.requests).sum();
        if all < REQUESTS_MIN && self.split_requests.is_empty() {
            return Vec::new();
        }
        let at_borders = self.border.and_then(|border| self.at_borders(border, &transfers));
        at_borders.into_iter().chain(self.by_limit(&transfers)).collect()
    }

    /// Whether this many of these are more than the log of a file system.
    pub(super) fn are_much_misaligned(&self, writes: &DirectionSummary) -> bool {
        let is_much = part(writes.misaligned, writes.requests) >= WORTH;
        writes.direction == Direction::Write
            && writes.misaligned >= REQUESTS_MIN
            && (is_much || self.read_before_misaligned > 0)
    }

    fn misaligned(&self, writes: &DirectionSummary) -> Option<String> {
        if !self.are_much_misaligned(writes) {
            return None;
        }
        let part = part(writes.misaligned, writes.requests);
        let block = size(self.block_bytes);
        let read = match self.read_before_misaligned {
            0 => String::new(),
            count => format!(
                " The first or last block of {count} of these was read within the 100 ms before: \
                 each write needed a read first."
            ),
        };
        let whole = format!("Write whole blocks of {block}, also with direct I/O");
        let remedy = match &self.file_system {
            Some(FileSystem { kind, block_bytes }) if *block_bytes >= self.block_bytes => {
                let pad = match kind.as_str() {
                    "xfs" => format!(" (mkfs.xfs -l su={} pads it)", self.block_bytes),
                    _ => String::new(),
                };
                format!(
                    "The blocks of its file system ({kind}) have {}, so these are direct writes of \
                     parts of blocks, or its log{pad}. {whole}.",
                    size(*block_bytes)
                )
            }
            _ => format!(
                "{whole}, in a file system whose blocks have {block} too (such as by mkfs.xfs -b \
                 size={}): in one with smaller blocks extents begin anywhere, also those of files \
                 that got their size before.",
                self.block_bytes
            ),
        };
        Some(format!(
            "{}: {} of writes begin or end inside of a block of {block}; a disk with such blocks \
             reads, changes and writes them.{read} {remedy}",
            self.name,
            percent(part),
        ))
    }

    fn at_borders(&self, border: BorderSummary, transfers: &[&DirectionSummary]) -> Option<String> {
        let BorderSummary { bytes, split, whole, .. } = border;
        let all: u64 = transfers.iter().map(|found| found.requests).sum();
        if whole > split && part(whole, all) >= WORTH {
            return Some(format!(
                "{}: {whole} requests have a multiple of {} inside and were not split there: this \
                 is not where this device splits. Look at the device of the array, or name its \
                 chunk with --chunk.",
                self.name,
                size(bytes)
            ));
        }
        if split == 0 || (part(split, all) < WORTH && all >= REQUESTS_MIN) {
            return None;
        }
        let costs = costs(transfers);
        if border.known == BorderKnown::FewSplits {
            return Some(format!(
                "{}: {split} of {all} requests were split at a multiple of {}.{costs} Where the borders \
                 are, so few do not tell: it may be a smaller power of two. Trace more requests, or \
                 name the chunk of the array with --chunk.",
                self.name,
                size(bytes)
            ));
        }
        Some(format!(
            "{}: {} of requests were split at multiples of {}, where one disk of an array ends.{costs} \
             Send requests whose size divides that, from offsets that are multiples of their size; \
             tell the file system (mkfs.xfs -d su={},sw=DISKS), and allocate files before they are \
             written, so that their extents begin there.",
            self.name,
            percent(part(split, all)),
            size(bytes),
            bytes
        ))
    }

    /// What to do about the longest request, where more of it would help: not where its memory may
    /// have no more pieces.
    fn raising(&self) -> String {
        let (longest, most) = (self.longest_bytes, self.longest_possible_bytes);
        let more = most.filter(|&most| longest.is_some_and(|longest| longest < most));
        let fits =
            self.pages_bytes.is_none_or(|pages| longest.is_some_and(|longest| longest < pages));
        match more.filter(|_| fits) {
            Some(most) => format!(", or raise it, to {} at most (max_hw_sectors_kb)", size(most)),
            None => String::new(),
        }
    }

    fn by_limit(&self, transfers: &[&DirectionSummary]) -> Option<String> {
        let all: u64 = transfers.iter().map(|found| found.requests).sum();
        let split: u64 = transfers.iter().map(|found| found.split_us.count).sum();
        let part = part(split, all);
        if split == 0 || part < WORTH {
            return None;
        }
        let costs = costs(transfers);
        let why = match self.cause {
            Some(SplitCause::Border { .. }) => return None,
            Some(SplitCause::Length { bytes }) if self.longest_bytes == Some(bytes) => format!(
                "into parts of {}, which is the longest request that the kernel sends to it \
                 (max_sectors_kb in /sys/block/DISK/queue).{costs} Send requests of that size{}.",
                size(bytes),
                self.raising()
            ),
            Some(SplitCause::Length { bytes }) => {
                let longest = match self.longest_bytes {
                    None => "may be the longest request that the kernel sends to it \
                             (max_sectors_kb in /sys/block/DISK/queue), or a chunk"
                        .to_owned(),
                    Some(longest) => format!(
                        "may be a chunk; the longest request that the kernel sends to it is {}",
                        size(longest)
                    ),
                };
                format!(
                    "into parts of {}, which {longest}.{costs} Send requests of that size.",
                    size(bytes)
                )
            }
            Some(SplitCause::Pieces { bytes }) => format!(
                "into parts of {} or more{}: memory of this size has as many pages as a request \
                 to it may have segments (max_segments in /sys/block/DISK/queue, which is \
                 fixed).{costs} Writes of the page cache are such requests. Send requests of that \
                 size, or from contiguous memory (huge pages).",
                size(bytes),
                self.longest_bytes.map_or_else(String::new, |longest| {
                    format!(
                        ", up to {}, the longest request that the kernel sends to it",
                        size(longest)
                    )
                })
            ),
            None if self.border.is_some_and(|border| border.split > 0) => return None,
            None => format!(
                "at no common border, and into parts of no common length.{costs} Compare the \
                 lengths of requests with the limits in /sys/block/DISK/queue (max_sectors_kb, \
                 max_segments), or name the chunk of an array with --chunk."
            ),
        };
        Some(format!("{}: {} of requests were split {why}", self.name, percent(part)))
    }
}

/// What splits cost in the direction that has most of them, in a sentence.
fn costs(transfers: &[&DirectionSummary]) -> String {
    let most = transfers.iter().max_by_key(|found| found.split_us.count);
    let Some(found) = most else { return String::new() };
    let us = |value: f64| format!("{value:.0} us");
    // a few say little
    let whole = match found.whole_us.count * 10 >= found.split_us.count {
        true => format!(", a whole one {}", us(found.whole_us.p50)),
        false => String::new(),
    };
    format!(
        " Their first part took {} in the median, all of a request {}{whole}.",
        us(found.first_part_us.p50),
        us(found.split_us.p50)
    )
}

pub(super) fn part(count: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { count as f64 / all as f64 }
}

pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}
