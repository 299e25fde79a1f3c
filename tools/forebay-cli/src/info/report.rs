//! All that is known of the disks, as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use forebay_core::Op;
use forebay_report::paragraph;
use serde::Serialize;

use super::budget::{Budget, GoalReason, Mixes};
use super::costs::{CostFigures, CostRow, rows};
use super::disk::{DescribedDisk, DiskFigures};
use super::queues::{Queues, Threads, recommended};
use super::unmet_rates::{bytes_per_second, explained, size};

/// Version of the JSON.
const VERSION: u32 = 1;

/// The disks.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    #[serde(flatten)]
    threads: Threads,
    disks: Vec<DiskReport>,
}

/// One disk.
#[derive(Debug, Serialize)]
struct DiskReport {
    name: String,
    source: String,
    figures: Option<FiguresReport>,
    /// None where nothing is known of the disk, and nothing binds.
    budget: Option<Budget>,
    /// None where mixes cost what their parts do.
    mixes: Option<Mixes>,
    queues: Option<Queues>,
    read_costs: Vec<CostRow>,
    write_costs: Vec<CostRow>,
    remarks: Vec<String>,
}

/// The figures as stated.
#[derive(Debug, Serialize)]
struct FiguresReport {
    read_iops: u64,
    read_bandwidth: u64,
    write_iops: u64,
    write_bandwidth: u64,
    base_latency_us: Option<f64>,
    /// Requests in flight that keep the disk busy: reads, writes.
    knee: [Option<f64>; 2],
    /// Sizes of which the cost was measured: of reads, of writes.
    measured_sizes: [usize; 2],
    flush_us: Option<f64>,
    discard_us: Option<f64>,
    discard_gib_us: Option<f64>,
}

impl Report {
    /// The report on these disks under these threads.
    pub(super) fn new(disks: &[DescribedDisk], threads: Threads, latency_goal: Duration) -> Self {
        let describe = |disk: &DescribedDisk| DiskReport::new(disk, threads, latency_goal);
        Self { version: VERSION, threads, disks: disks.iter().map(describe).collect() }
    }

    /// How many I/O queues to have for each disk of which figures are known.
    pub(super) fn queues(&self) -> Vec<String> {
        self.disks.iter().filter_map(|disk| disk.queues(self.threads)).collect()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for disk in &self.disks {
            disk.write(&mut text, self.threads);
        }
        text
    }
}

impl DiskReport {
    fn new(disk: &DescribedDisk, threads: Threads, latency_goal: Duration) -> Self {
        let stated =
            disk.figures.as_ref().map(|figures| FiguresReport::new(figures, disk.base_latency));
        let budget = stated.as_ref().map(|_| Budget::of(disk, latency_goal));
        let mixes = disk
            .figures
            .as_ref()
            .and_then(|figures| Mixes::of(&figures.properties, latency_goal, disk.base_latency));
        Self {
            mixes,
            name: disk.name.clone(),
            source: disk.source.clone(),
            queues: budget.as_ref().map(|budget| recommended(budget.queue_depth, threads)),
            read_costs: rows(disk, Op::Read),
            write_costs: rows(disk, Op::Write),
            remarks: budget.as_ref().map_or_else(unmeasured, |budget| explained(disk, budget)),
            figures: stated,
            budget,
        }
    }

    fn queues(&self, threads: Threads) -> Option<String> {
        let (budget, queues) = (self.budget.as_ref()?, self.queues?);
        let why = queues.explain(budget.queue_depth, threads);
        Some(format!("{}, local depth {}: {why}", queues.count, queues.local_depth))
    }

    fn write(&self, text: &mut String, threads: Threads) {
        paragraph(text, &format!("{}  ", self.name), &format!("({})", self.source));
        if let Some(figures) = &self.figures {
            text.push('\n');
            figures.write(text);
        }
        if let (Some(budget), Some(said)) = (&self.budget, self.queues(threads)) {
            write_budget(text, budget);
            item(text, "I/O queues", &said);
        }
        if let Some(mixes) = &self.mixes {
            item(text, "mixes", &mixes.said());
        }
        for (name, rows) in [("reads", &self.read_costs), ("writes", &self.write_costs)] {
            write_rows(text, name, rows);
        }
        text.push('\n');
        for remark in &self.remarks {
            paragraph(text, "- ", remark);
        }
        text.push('\n');
    }
}

impl FiguresReport {
    fn new(figures: &DiskFigures, base_latency: Option<Duration>) -> Self {
        let (rates, measured) = (&figures.rates, &figures.properties.measured);
        let us = |time: Option<Duration>| time.map(|time| time.as_nanos() as f64 / 1e3);
        let directions = [&measured.read, &measured.write];
        Self {
            read_iops: rates.read_iops,
            read_bandwidth: rates.read_bandwidth,
            write_iops: rates.write_iops,
            write_bandwidth: rates.write_bandwidth,
            base_latency_us: us(base_latency),
            knee: directions.map(|direction| direction.knee),
            measured_sizes: directions.map(|direction| direction.cost.len()),
            flush_us: us(measured.flush),
            discard_us: us(measured.discard.map(|discard| discard.command)),
            discard_gib_us: us(measured.discard.map(|discard| discard.gib)),
        }
    }

    fn write(&self, text: &mut String) {
        for (name, iops, bandwidth) in [
            ("reads", self.read_iops, self.read_bandwidth),
            ("writes", self.write_iops, self.write_bandwidth),
        ] {
            item(text, name, &format!("{iops} per second, {}", bytes_per_second(bandwidth as f64)));
        }
        let base = match self.base_latency_us {
            Some(us) => time(us),
            None => "not stated; learnt while the disk has little to do".into(),
        };
        item(text, "base latency", &base);
        if let [Some(read), Some(write)] = self.knee {
            let said = format!("{read} reads or {write} writes in flight do 95 % of the rate");
            item(text, "knee", &said);
        }
        let [read, write] = self.measured_sizes;
        if read + write > 0 {
            let said = format!("measured at {read} sizes of reads and {write} of writes");
            item(text, "costs", &said);
        }
        if let Some(us) = self.flush_us {
            item(text, "flush", &time(us));
        }
        if let (Some(command), Some(gib)) = (self.discard_us, self.discard_gib_us) {
            let said = format!("{} for each, and {} per GiB", time(command), time(gib));
            item(text, "discard", &said);
        }
    }
}

fn unmeasured() -> Vec<String> {
    [
        "nothing limits requests: they go to the disk at once, and queue inside it; waits are \
         unbounded",
        "they still have prices, for shares and limits to count; the prices are not properties of \
         the disk",
        "`forebay tune DIR` measures the disk; --properties FILE shows the settings for it, and \
         --disk NAME those for a disk with published figures",
    ]
    .map(str::to_owned)
    .into()
}

/// The latency target, and what it does.
fn target_text(budget: &Budget) -> String {
    match &budget.latency_target {
        Some(target) if budget.latency_target_below_base => format!(
            "{target} cannot be met, because it is not above the base latency. Set a longer one; \
             `forebay explore DIR` shows which latencies the disk meets under load"
        ),
        Some(target) => {
            let of = match target.starts_with("disk:") {
                true => "in the disk",
                false => "from enqueueing to completion",
            };
            format!(
                "{target}, {of}; while it is missed the window is smaller, as long as that helps"
            )
        }
        None => "none: the window is the smallest with which the disk reaches its full throughput"
            .into(),
    }
}

fn write_budget(text: &mut String, budget: &Budget) {
    let reason = match budget.goal_reason {
        GoalReason::LatencyGoal => "the latency goal".into(),
        GoalReason::BaseLatency => {
            format!("the disk's base latency{}", in_place_of(budget, "with which it would idle"))
        }
        GoalReason::LargeRequest => format!(
            "the cost of 128 KiB in the dearer direction{}",
            in_place_of(budget, "which is shorter")
        ),
    };
    item(text, "effective goal", &format!("{}, {reason}", time(budget.effective_goal_us)));
    item(text, "burst", &format!("{} of disk time at once after a pause", time(budget.burst_us)));
    let window = format!(
        "found by trials, which begin at {} of disk time unfinished in the disk: {} requests of \
         4 KiB, or {} of 128 KiB",
        time(budget.window_us),
        budget.depth,
        budget.depth_large
    );
    item(text, "window", &window);
    if budget.is_ceiling {
        item(text, "ceiling", "the disk never gets more than its rates, whatever the trials find");
    } else if budget.is_ceiling_after_burst {
        let what = "once trials show that the disk does no more than its rates, it gets no more \
                    until the queues are empty";
        item(text, "ceiling", what);
    }
    item(text, "latency target", &target_text(budget));
    let [read, write] = budget.largest_request_bytes.map(size);
    let largest = format!("{read} read, {write} written; longer ones go in parts");
    item(text, "largest request", &largest);
    if let Some(run) = budget.run_us {
        let run = format!("a stream keeps the head of the disk for at most {}", time(run));
        item(text, "runs", &run);
    }
    let or_run = if budget.run_us.is_some() { ", or a run if that is longer" } else { "" };
    let wait = format!(
        "{} for a small request of the heaviest class, if the disk is as fast as stated and nothing \
         else of that class waits: five windows of the size at the beginning (a trial while all \
         classes are backlogged){or_run}, and {} for a largest request that went last. A longer \
         permit adds its own cost",
        time(budget.longest_wait_us),
        time(budget.largest_request_us)
    );
    item(text, "longest wait", &wait);
}

/// The stated latency goal, where the disk needs a longer one.
fn in_place_of(budget: &Budget, reason: &str) -> String {
    match budget.latency_goal_us {
        0.0 => String::new(),
        goal => format!(", in place of the latency goal of {}, {reason}", time(goal)),
    }
}

fn write_rows(text: &mut String, name: &str, rows: &[CostRow]) {
    let has_sum = rows.iter().any(|row| row.sum.is_some());
    let sums = if has_sum { format!("{:>32}", "Seastar's sum") } else { String::new() };
    let heads = |price: &str| format!("{price:>10}{:>11}{:>11}", "IOPS", "MB/s");
    let _ = writeln!(text, "\n  {name:<8}{:>32}{sums}", "cost");
    let more = if has_sum { heads("us") } else { String::new() };
    let _ = writeln!(text, "  {:<8}{}{more}", "size", heads("us"));
    for row in rows {
        let shown = |price: &CostFigures| {
            let CostFigures { us, iops, bytes_per_second } = price;
            format!(" {us:>9.2} {iops:>10.0} {:>10.1}", bytes_per_second / 1e6)
        };
        let sum = row.sum.as_ref().map(shown).unwrap_or_default();
        let _ = writeln!(text, "  {:<8}{}{sum}", size(row.bytes), shown(&row.cost));
    }
}

/// A length of time for people.
fn time(us: f64) -> String {
    if us < 1000.0 { format!("{us:.0} us") } else { format!("{:.2} ms", us / 1e3) }
}

fn item(text: &mut String, name: &str, said: &str) {
    paragraph(text, &format!("  {name:<17}"), said);
}
