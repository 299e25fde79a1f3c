//! When the disk gets the discards of files that are unlinked at a steady rate.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use forebay_core::{DiskRates, Op, Time};
use forebay_report::Table;
use forebay_sim::disk::{Command, Completion, SimDisk};

use crate::articles::y2024::deletes::{Run, disk_spec, file_system};
use crate::articles::y2024::tables::high_extents;
use crate::articles::y2024::{DISK, SOURCE};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::run as simulate;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-bursts",
    alias: "S4-6",
    title: "When discards are sent",
    source: SOURCE,
};

/// Discards this far apart are of two bursts.
const BETWEEN_NANOS: u64 = 1_000_000_000;
const SECONDS: u64 = 95;

/// Notes when a disk gets discards.
struct Traced {
    disk: Box<dyn SimDisk>,
    discards: Arc<Mutex<Vec<Time>>>,
}

impl SimDisk for Traced {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        if command.op == Op::Discard
            && let Ok(mut discards) = self.discards.lock()
        {
            discards.push(now);
        }
        self.disk.submit(now, id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.disk.poll_completion(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.disk.next_event()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}

/// Discards one after the other: when they begin and end, in nanoseconds, and how many they are.
#[derive(Clone, Copy, Debug)]
struct Burst {
    from: u64,
    to: u64,
    count: u64,
}

fn bursts(seed: Seed) -> Result<Vec<Burst>, String> {
    let discards = Arc::new(Mutex::new(Vec::new()));
    let disk = Traced { disk: disk_spec()?.build(seed.0), discards: discards.clone() };
    let file_system = file_system(Duration::from_secs(30))?;
    let (deletes, seconds) = (high_extents(4), SECONDS);
    let run = Run { deletes, file_system, reads: 500, waiting_fibers: None, seconds, seed };
    simulate(run.config(Box::new(disk))?)?;
    let mut bursts: Vec<Burst> = Vec::new();
    for at in discards.lock().map_err(|_| "the trace is lost")?.iter().map(|at| at.as_nanos()) {
        match bursts.last_mut().filter(|burst| at - burst.to < BETWEEN_NANOS) {
            Some(burst) => (burst.to, burst.count) = (at, burst.count + 1),
            None => bursts.push(Burst { from: at, to: at, count: 1 }),
        }
    }
    Ok(bursts)
}

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    let mut report = Report::default();
    report.parameter("disk", DISK);
    report.parameter("load", "4 files of 32 MB (1 MB extents) unlinked a second");
    report.parameter("measured", format!("{SECONDS} s; the log is written each 30 s"));
    let columns = ["burst", "published", "begins (s)", "lasts (ms)", "discards"];
    let mut table = Table::new("Bursts of discards", &columns);
    let bursts = bursts(seed)?;
    let published = ["28.78 s, 101 ms", "59.50 s, 102 ms"];
    for (number, burst) in bursts.iter().enumerate() {
        let Burst { from, to, count } = *burst;
        table.row([
            (number + 1).to_string(),
            (*published.get(number).unwrap_or(&"-")).to_owned(),
            format!("{:.2}", from as f64 / 1e9),
            format!("{:.0}", (to - from) as f64 / 1e6),
            count.to_string(),
        ]);
    }
    report.figures = figures(&bursts);
    report.tables.push(table);
    Ok(report)
}

/// Of the bursts after the first, which begins with the run.
fn figures(bursts: &[Burst]) -> Vec<Figure> {
    let [_, first, second, ..] = bursts else { return Vec::new() };
    let millis = |nanos: u64| nanos as f64 / 1e6;
    vec![
        Figure::new("from burst to burst", "s", 30.72, millis(second.from - first.from) / 1e3),
        Figure::new("length of a burst", "ms", 101.0..=102.0, millis(first.to - first.from))
            .compared_with("all at once", 0.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn bursts_of_a_tenth_of_a_second_are_half_a_minute_apart() {
        for seed in seeds() {
            let bursts = bursts(seed).unwrap();
            assert_eq!(bursts.len(), 4, "{bursts:?}");
            for pair in bursts.windows(2) {
                assert!((pair[1].from - pair[0].from).abs_diff(30_000_000_000) < 1_000_000);
                // four files of 32 extents, for 30 s
                assert_eq!(pair[1].count, 3840);
                assert!(
                    (90_000_000..95_000_000).contains(&(pair[1].to - pair[1].from)),
                    "{pair:?}"
                );
            }
        }
    }
}
