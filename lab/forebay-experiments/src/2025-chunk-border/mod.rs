//! Requests across the border of two chunks, and how a trace shows them.

use std::sync::PoisonError;

use forebay_core::{Op, Policy, Time};
use forebay_load::recorder::Latencies;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::disk::{Command, Raid0, SimDisk};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2025;
use crate::articles::y2025::traced_array::{CHUNK, MEMBERS, TracedArray};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{jobs, pace_window, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-chunk-border",
    alias: "S3-21",
    title: "Requests that are split at the border of a chunk",
    source: y2025::SOURCE,
};

const MEMBER: &str = include_str!("disk.yaml");
const SECTOR: u64 = 512;
/// The traced request: its first sector, its sectors, and the sectors before the split.
const TRACED_SECTOR: u64 = 21_057_335_224;
const TRACED_SECTORS: u64 = 256;
const TRACED_FIRST_PART: u64 = 72;
const PUBLISHED_BORDER: u64 = 0x9CE_3AE0_0000;
const REQUEST: u64 = TRACED_SECTORS * SECTOR;

/// The first border of chunks within a range, if there is one.
fn border(offset: u64, len: u64) -> Option<u64> {
    let border = (offset + 1).next_multiple_of(CHUNK);
    (border < offset + len).then_some(border)
}

/// Latencies in microseconds of the traced request as one, and of either part, while this many
/// bytes wait on the member of the first and of the second part.
fn traced(seed: Seed, waiting: (u64, u64)) -> Result<(f64, f64, f64), String> {
    let start = TRACED_SECTOR * SECTOR;
    let first_len = TRACED_FIRST_PART * SECTOR;
    let border = start + first_len;
    let parts = [(start, first_len), (border, REQUEST - first_len)];
    let [first, second] = parts.map(|part| latency(seed, waiting, border, part));
    Ok((latency(seed, waiting, border, (start, REQUEST))?, first?, second?))
}

fn latency(seed: Seed, waiting: (u64, u64), border: u64, part: (u64, u64)) -> Result<f64, String> {
    let members = (0..MEMBERS).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let mut array = Raid0::new(CHUNK, members);
    let write = |(offset, len)| Command { op: Op::Write, offset, len };
    // earlier writes to other rows of the same two members
    let row = CHUNK * MEMBERS as u64;
    let ahead = [(border - CHUNK, waiting.0), (border, waiting.1)];
    let mut id = 1;
    for (chunk, bytes) in ahead {
        let (mut left, mut at) = (bytes, chunk + row);
        while left > 0 {
            let len = left.min(REQUEST);
            array.submit(Time::ZERO, id, write((at, len)));
            (id, left, at) = (id + 1, left - len, at + row);
        }
    }
    array.submit(Time::ZERO, 0, write(part));
    while let Some(now) = array.next_event() {
        while let Some(finished) = array.poll_completion(now) {
            if finished.id == 0 {
                return Ok(finished.at.as_nanos() as f64 / 1e3);
            }
        }
    }
    Err("the traced request was never finished".to_owned())
}

/// What was seen of a stream that begins this many sectors before a border.
struct Stream {
    split: Latencies,
    whole: Latencies,
}

fn stream(seed: Seed, open: bool, millis: u64) -> Result<Stream, String> {
    let members = (0..MEMBERS).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let start = CHUNK - TRACED_FIRST_PART * SECTOR;
    let (array, seen) = TracedArray::new(CHUNK, members, vec![start], 1_000_000)?;
    let array = Box::new(array);
    let policy = if open { Policy::Unlimited } else { pace_window(&*array) };
    let mut config = seed.config(jobs(include_str!("load.yaml"), 64)?, array, millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..SchedulerConfig::by_figures() };
    simulate(config)?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Stream { split: seen.split.clone(), whole: seen.whole.clone() })
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(100, 1000);
    let mut report = Report::default();
    report.parameter("disk", "RAID0 of 4, chunk 1 MB; 128 KiB take 52 us on an idle member");
    report.parameter(
        "stream",
        format!(
            "64 shards x 8 fibers of 128 KiB appends, 72 sectors before a border; {measured} ms"
        ),
    );
    add_border(&mut report);
    add_latencies(seed, &mut report)?;
    add_stream(seed, &mut report, measured)?;
    Ok(report)
}

fn add_border(report: &mut Report) {
    let mut table = Table::new("The traced request", &["", "published", "forebay"]);
    let (start, len) = (TRACED_SECTOR * SECTOR, REQUEST);
    let found = border(start, len);
    let hex = |border: u64| format!("0x{border:X}");
    table.row([
        format!("border in sectors {TRACED_SECTOR} + {TRACED_SECTORS}"),
        hex(PUBLISHED_BORDER),
        found.map_or_else(|| "none".to_owned(), hex),
    ]);
    let before = found.map_or(0, |border| (border - start) / SECTOR);
    table.row(["sectors before it".into(), TRACED_FIRST_PART.to_string(), before.to_string()]);
    let multiple = found.is_some_and(|border| border.is_multiple_of(CHUNK));
    table.row([
        "a multiple of 0x100000".into(),
        "yes".into(),
        if multiple { "yes" } else { "no" }.into(),
    ]);
    report.tables.push(table);
    let (start, arithmetic) = (found.unwrap_or(0) as f64, "arithmetic on what was given");
    report.figures.extend([
        Figure::new("the border", "bytes", PUBLISHED_BORDER as f64, start)
            .exactly()
            .compared_with(arithmetic, start),
        Figure::new("before it", "sectors", TRACED_FIRST_PART as f64, before as f64)
            .exactly()
            .compared_with(arithmetic, before as f64),
    ]);
}

/// Bytes that pass a member in this many microseconds.
fn bytes_in(micros: f64) -> u64 {
    (micros / 52.0 * REQUEST as f64) as u64
}

fn add_latencies(seed: Seed, report: &mut Report) -> Result<(), String> {
    let mut table =
        Table::new("Latency, us", &["request", "published", "whole", "first part", "second part"]);
    let first_part = 52.0 * TRACED_FIRST_PART as f64 / TRACED_SECTORS as f64;
    let ahead = (bytes_in(161.0 - first_part), bytes_in(5249.0 - (52.0 - first_part)));
    let cases = [
        ("split, members busy", "max(161, 5,249) = 5,249", ahead),
        ("split, members idle", "-", (0, 0)),
    ];
    for (name, published, ahead) in cases {
        let (whole, first, second) = traced(seed, ahead)?;
        if ahead != (0, 0) {
            report.figures.extend([
                Figure::new("split: first part", "us", 161.0, first),
                Figure::new("split: second part", "us", 5_249.0, second),
                Figure::new("split", "us", 5_249.0, whole)
                    .compared_with("as the second part", second),
            ]);
        }
        let [whole, first, second] = [whole, first, second].map(thousands);
        table.row([name.to_owned(), published.to_owned(), whole, first, second]);
    }
    let idle = latency(seed, (0, 0), CHUNK, (2 * CHUNK, REQUEST))?;
    report.figures.push(Figure::new("not split", "us", 52.0, idle));
    table.row([
        "not split, member idle".into(),
        "52".into(),
        thousands(idle),
        "-".into(),
        "-".into(),
    ]);
    report.tables.push(table);
    Ok(())
}

fn add_stream(seed: Seed, report: &mut Report, millis: u64) -> Result<(), String> {
    let mut table = Table::new(
        "A stream of misaligned requests",
        &["scheduler", "split", "of completions", "whole: mean us", "p99", "split: mean us", "p99"],
    );
    table.row(["published", "-", "25 %", "52", "-", "5,249 (one)", "-"].map(str::to_owned));
    let mut chart = Chart::new("Latency in the disk by quantile", "quantile", "ms");
    for (name, open) in [("no scheduler", true), ("pace+window", false)] {
        let Stream { split, whole } = stream(seed, open, millis)?;
        let (splits, wholes) = (split.count() as f64, whole.count() as f64);
        let of_completions = 2.0 * splits / (2.0 * splits + wholes);
        if open {
            let figure = Figure::new("completions of parts", "%", 25.0, of_completions * 100.0);
            report.figures.push(figure.compared_with("none is split", 0.0));
        }
        let p99 = |latencies: &Latencies| thousands(latencies.quantile_ns(0.99) as f64 / 1e3);
        table.row([
            name.to_owned(),
            percent(splits / (splits + wholes)),
            percent(of_completions),
            thousands(whole.mean_ns() / 1e3),
            p99(&whole),
            thousands(split.mean_ns() / 1e3),
            p99(&split),
        ]);
        for (kind, latencies) in [("whole", &whole), ("split", &split)] {
            let point = |step: u64| {
                let quantile = step as f64 / 100.0;
                (quantile, latencies.quantile_ns(quantile) as f64 / 1e6)
            };
            let mark = if kind == "split" { Mark::Line } else { Mark::Dashed };
            chart = chart.with(&format!("{kind}, {name}"), mark, (1..100).map(point).collect());
        }
    }
    report.tables.push(table);
    report.charts.push(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn the_border_is_the_published_one() {
        let start = TRACED_SECTOR * SECTOR;
        assert_eq!(border(start, REQUEST), Some(PUBLISHED_BORDER));
        assert_eq!(PUBLISHED_BORDER, (TRACED_SECTOR + TRACED_FIRST_PART) * SECTOR);
        assert_eq!(border(PUBLISHED_BORDER, CHUNK), None);
    }

    #[test]
    fn the_slowest_part_decides() {
        for seed in seeds() {
            let (whole, first, second) = traced(seed, (bytes_in(146.0), bytes_in(5212.0))).unwrap();
            assert_eq!(whole, second);
            assert!(first < second / 10.0);
            assert!((whole / 5249.0 - 1.0).abs() < 0.01, "{whole}");
        }
    }

    #[test]
    fn one_request_in_eight_crosses_a_border_and_takes_longer() {
        for seed in seeds() {
            let Stream { split, whole } = stream(seed, true, 100).unwrap();
            let part = split.count() as f64 / (split.count() + whole.count()) as f64;
            assert!((0.122..=0.125).contains(&part), "{part}");
            assert!(split.mean_ns() > 1.8 * whole.mean_ns());
        }
    }
}
