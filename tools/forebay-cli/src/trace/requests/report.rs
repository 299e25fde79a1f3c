//! What was seen of requests, as JSON and in tables.

use forebay_report::{Table, size};
use forebay_trace::{
    BorderKnown, BorderSummary, CountBasis, DeviceSummary, Direction, DirectionSummary, Finding,
    LatencySummary, NotRead, RequestsSummary, SplitRequest,
};
use serde::Serialize;

const MIB: f64 = (1 << 20) as f64;

/// What was seen.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) version: u32,
    /// What was traced, or the file.
    pub(super) source: String,
    pub(super) seconds: f64,
    /// In words.
    pub(super) findings: Vec<Finding>,
    #[serde(flatten)]
    pub(super) summary: RequestsSummary,
    /// Events that are missing above.
    pub(super) lost_events: u64,
    /// Lines that were not understood, and in a file the first of them.
    pub(super) unknown_lines: u64,
    pub(super) unknown_first: Option<u64>,
    /// Events that a file has and that are not read.
    pub(super) not_read: Vec<NotRead>,
}

impl Report {
    /// What is missing, in sentences.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.lost_events > 0 {
            missing.push(format!(
                "LOST: {} events are missing, because the buffer was full: figures are too low, \
                 and some requests have no end.",
                self.lost_events
            ));
        }
        if self.unknown_lines > 0 {
            let first = self.unknown_first;
            let first =
                first.map_or_else(String::new, |line| format!(", the first is line {line}"));
            let lines = if self.unknown_lines == 1 { "line" } else { "lines" };
            missing.push(format!("{} {lines} could not be parsed{first}.", self.unknown_lines));
        }
        missing
    }

    /// Events that were recorded, but not read; nothing without any.
    pub(super) fn not_read(&self) -> Option<String> {
        let kinds = self.not_read.iter().map(|kind| format!("{} {}", kind.count, kind.event));
        let kinds: Vec<String> = kinds.collect();
        (!kinds.is_empty()).then(|| format!("recorded but not parsed: {}", kinds.join(", ")))
    }
}

pub(super) fn plural(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Discard => "discards",
        Direction::Other => "others",
    }
}

/// How many there were of each direction.
pub(super) fn counts(device: &DeviceSummary) -> Table {
    let mut table = table("", device);
    let mut row = |name: String, cell: &dyn Fn(&DirectionSummary) -> String| {
        table.row([vec![name], device.directions.iter().map(cell).collect()].concat());
    };
    row("requests".into(), &|found| match found.counted {
        CountBasis::Queued => found.requests.to_string(),
        CountBasis::Issued => format!("{} issued", found.requests),
    });
    row("MiB".into(), &|found| format!("{:.1}", found.bytes as f64 / MIB));
    row("split".into(), &|found| part(found.split_us.count, found.requests));
    let inside = format!("begin or end inside of {}", size(device.block_bytes));
    row(inside, &|found| part(found.misaligned, found.requests));
    if device.directions.iter().any(|found| found.failed > 0) {
        row("failed".into(), &|found| part(found.failed, found.requests));
    }
    if device.directions.iter().any(|found| found.partial > 0) {
        row("completed in parts".into(), &|found| part(found.partial, found.requests));
    }
    if device.directions.iter().any(|found| found.unfinished > 0) {
        row("not ended".into(), &|found| found.unfinished.to_string());
    }
    table
}

/// At multiples of which power requests begin.
pub(super) fn alignment(device: &DeviceSummary) -> Table {
    let mut table = table("begin at multiples of", device);
    let powers = device.directions.first().map_or(0, |found| found.alignment.len());
    for place in 0..powers {
        let of = |found: &DirectionSummary| found.alignment.get(place).copied();
        let Some(power) = device.directions.first().and_then(of) else { continue };
        let more = if place + 1 == powers { " and more" } else { "" };
        let cells = device
            .directions
            .iter()
            .map(|found| part(of(found).map_or(0, |power| power.requests), found.requests));
        table.row([vec![size(power.bytes) + more], cells.collect()].concat());
    }
    table
}

fn table(title: &str, device: &DeviceSummary) -> Table {
    let directions = device.directions.iter().map(|found| plural(found.direction));
    let columns: Vec<&str> = [""].into_iter().chain(directions).collect();
    Table::new(title, &columns)
}

/// How long requests took.
pub(super) fn latencies(device: &DeviceSummary) -> Table {
    let mut table = Table::new("latency in us", &["", "count", "p50", "p95", "p99", "max"]);
    let mut row = |name: String, latency: &LatencySummary| {
        if latency.count > 0 {
            let us = |value: f64| format!("{value:.0}");
            let LatencySummary { count, p50, p95, p99, max } = *latency;
            table.row([name, count.to_string(), us(p50), us(p95), us(p99), us(max)]);
        }
    };
    for found in &device.directions {
        let name = plural(found.direction);
        row(format!("whole {name}"), &found.whole_us);
        row(format!("split {name}"), &found.split_us);
        row("  their first part".to_owned(), &found.first_part_us);
        row(format!("{name} in the disk"), &found.disk_us);
    }
    table
}

/// What is known of the borders of a device.
pub(super) fn border(border: &BorderSummary) -> String {
    let BorderSummary { bytes, known, split, whole } = *border;
    let how = match known {
        BorderKnown::Stated => "as stated",
        BorderKnown::System => "as the kernel says",
        BorderKnown::Splits => "as the splits have in common",
        BorderKnown::FewSplits => "or a smaller power of two: few splits were seen",
    };
    format!(
        "borders at multiples of {} ({how}): requests split there {split}, not split over one \
         {whole}",
        size(bytes)
    )
}

/// A request that was split, and its parts.
pub(super) fn split(request: &SplitRequest) -> String {
    let SplitRequest { at_s, direction, offset, bytes, .. } = *request;
    let kind = match direction {
        Direction::Read => "read",
        _ => "write",
    };
    let at = if request.split { "split at" } else { "whole, over" };
    let points: Vec<String> = request.points.iter().map(|point| format!("{point:#X}")).collect();
    let parts: Vec<String> = request
        .parts
        .iter()
        .map(|part| format!("{} {:.0} us", size(part.bytes), part.latency_us))
        .collect();
    format!(
        "{at_s:.6} s: {kind} of {} at {offset:#X}, {at} {}; {}",
        size(bytes),
        points.join(", ").replace("0X", "0x"),
        parts.join(", ")
    )
    .replace("0X", "0x")
}

/// A number and its share.
fn part(count: u64, all: u64) -> String {
    match count {
        0 => "-".to_owned(),
        count => format!("{count} ({:.1} %)", count as f64 / all.max(1) as f64 * 100.0),
    }
}
