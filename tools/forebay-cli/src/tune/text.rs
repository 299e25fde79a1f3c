//! What was found, as text and as JSON.

use std::fmt::Write;

use forebay_growth::Grown;
use forebay_report::{paragraph_within, size};
use forebay_tune::verdicts::{Verdict, advice, verdicts};
use forebay_tune::{Budget, Figure, Fit, LatencyAt, Run, depth_full};
use serde::Serialize;

use crate::growth;

/// A rate that comes so close to the best is as good.
const FULL: f64 = 0.95;

/// So that a terminal shows lines whole.
pub(super) const COLUMNS: usize = 80;

/// What will be done.
pub(super) fn announcement(run: &Run, budget: &Budget) -> String {
    let figures = figures_announcement(run, budget);
    match run.watch_hours {
        0 => figures,
        hours => format!(
            "{figures}; then it is watched for burst credits, for {hours} h at most: at full load \
             while no other program uses the disk, until the credits run out, and otherwise for 2 \
             % of the time"
        ),
    }
}

fn figures_announcement(run: &Run, budget: &Budget) -> String {
    let target = &run.target;
    if target.is_simulated() {
        return format!(
            "measuring {}, a simulated disk, for {:.0} s of virtual time; nothing is written to a \
             real disk",
            target.paths.join(", "),
            budget.seconds()
        );
    }
    let disks = match target.disks.as_slice() {
        [] => String::new(),
        disks => format!(" on {}", disks.join(", ")),
    };
    format!(
        "measuring {}{disks}: about {:.0} s, of which {:.0} to fill a write buffer ({:.0} if the \
         disk is slow), at most {} written, with {} of data at a time, in unnamed files that \
         disappear at the end",
        target.paths.join(", "),
        budget.seconds(),
        budget.watch,
        budget.watch_longest,
        volume(budget.written_max),
        volume(budget.layout_bytes.min(target.room))
    )
}

/// This many bytes, in GiB unless they are few.
pub(super) fn volume(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{gib:.1} GiB") } else { format!("{:.0} MiB", gib * 1024.0) }
}

/// What was found.
pub(super) fn summary(tuned: &[Tuned]) -> String {
    let mut text = String::new();
    for Tuned { run, fit } in tuned {
        // Writing to a String cannot fail.
        let _ = disk(&mut text, run, fit);
    }
    text
}

fn disk(text: &mut String, run: &Run, fit: &Fit) -> std::fmt::Result {
    let (warnings, others): (Vec<Verdict>, Vec<Verdict>) =
        verdicts(run, fit).into_iter().partition(|verdict| verdict.warns);
    writeln!(text, "{}", run.target.paths.join(", "))?;
    paragraph_within(text, "  ", &advice(fit), COLUMNS);
    for verdict in warnings {
        paragraph_within(text, "  ! ", &verdict.text, COLUMNS);
    }
    let lasting = fit.lasting;
    let lasting =
        [lasting.read_iops, lasting.write_iops, lasting.read_bandwidth, lasting.write_bandwidth];
    for ((name, figure, unit, scale), lasts) in figures(fit).into_iter().zip(lasting) {
        // nothing was counted where there was next to nothing to write
        let first = match figure.first {
            0.0 => String::new(),
            first => format!(", at first {:+.1} %", (first / figure.value.max(1.0) - 1.0) * 100.0),
        };
        writeln!(
            text,
            "  {name:<16} {:>12.0} {unit:<5} +- {:.1} %{first}{}",
            figure.value / scale,
            figure.uncertainty() * 100.0,
            if lasts { "" } else { "; may be a burst" }
        )?;
    }
    writeln!(text, "  base latency {:.0} us", fit.base_latency_us)?;
    curves(text, fit)?;
    for step in &fit.below_knee {
        writeln!(
            text,
            "  at {} % of the knee: p50 {:.0} us, p99 {:.0} us",
            step.percent, step.p50_us, step.p99_us
        )?;
    }
    let [reads, writes] = [&fit.read, &fit.write]
        .map(|sizes| sizes.saturation.bytes.map_or_else(|| String::from("a size unknown"), size));
    writeln!(text, "  bandwidth from {reads} on for reads, {writes} for writes")?;
    if let Some(flush) = fit.flush.filter(|flush| flush.count > 0) {
        let taken = fit.flush_us.map_or_else(String::new, |us| format!("; disk time {us:.0} us"));
        writeln!(text, "  a flush takes {:.0} us, p99 {:.0} us{taken}", flush.mean, flush.p99)?;
    }
    if let Some(discard) = fit.discard {
        let (command, gib) = (discard.command_us, discard.gib_us / 1e3);
        writeln!(text, "  a discard takes {command:.0} us of disk time, and {gib:.1} ms per GiB")?;
    }
    writeln!(text, "  written: {}", volume(run.written()))?;
    if !run.growth.is_empty() {
        write!(text, "\n{}", growth::table(&run.growth))?;
    }
    for verdict in others {
        paragraph_within(text, "  - ", &verdict.text, COLUMNS);
    }
    Ok(())
}

/// From how many in flight on large requests come no faster, and what writes cost reads.
fn curves(text: &mut String, fit: &Fit) -> std::fmt::Result {
    let full = |steps: &[LatencyAt]| depth_full(steps, FULL).unwrap_or(0);
    if !fit.large_reads.is_empty() {
        let (reads, writes) = (full(&fit.large_reads), full(&fit.large_writes));
        writeln!(text, "  requests of 128 KiB: full with {reads} reads or {writes} writes")?;
    }
    for bytes in mix_sizes(fit) {
        let mut mixes = fit.mixes.iter().filter(|mix| mix.write_bytes == bytes);
        let Some(last) = mixes.next_back() else { continue };
        writeln!(
            text,
            "  {} in flight, a quarter writes of {}: {:.0} reads per s, p99 {:.0} us",
            last.depth,
            size(bytes.into()),
            last.reads.rate,
            last.reads.p99_us
        )?;
    }
    Ok(())
}

/// The sizes of writes that reads were measured alongside.
pub(super) fn mix_sizes(fit: &Fit) -> Vec<u32> {
    let mut sizes: Vec<u32> = fit.mixes.iter().map(|mix| mix.write_bytes).collect();
    sizes.dedup();
    sizes
}

/// Name, figure, unit, and what the unit is of a second's count.
pub(super) fn figures(fit: &Fit) -> [(&'static str, Figure, &'static str, f64); 4] {
    [
        ("random reads", fit.read_iops, "per s", 1.0),
        ("random writes", fit.write_iops, "per s", 1.0),
        ("read bandwidth", fit.read_bandwidth, "MB/s", 1e6),
        ("write bandwidth", fit.write_bandwidth, "MB/s", 1e6),
    ]
}

#[derive(Serialize)]
pub(super) struct DiskResult<'a> {
    #[serde(rename = "facts")]
    target: &'a forebay_tune::TargetInfo,
    budget: &'a str,
    bytes_written: u64,
    growth: &'a [Grown],
    fit: &'a Fit,
    verdicts: Vec<Verdict>,
}

/// What was found, for programs: one entry for each disk.
pub(super) fn results(tuned: &[Tuned]) -> Vec<DiskResult<'_>> {
    let disks = tuned.iter().map(|Tuned { run, fit }| DiskResult {
        target: &run.target,
        budget: &run.budget,
        bytes_written: run.written(),
        growth: &run.growth,
        fit,
        verdicts: verdicts(run, fit),
    });
    disks.collect()
}

/// What was measured of a disk, and what follows from it.
pub(super) struct Tuned {
    pub(super) run: Run,
    pub(super) fit: Fit,
}

impl Tuned {
    /// The directories that were named on it.
    pub(super) fn name(&self) -> String {
        self.run.target.paths.join(", ")
    }
}
