//! Deletes in steps by their cost on the disk, alongside those of the article.

use core::time::Duration;

use forebay_report::Table;

use crate::articles::y2024::deletes::{Deletes, MIB, READS, Run, file_system};
use crate::articles::y2024::tables::{by_extent_size, low_extents};
use crate::articles::y2024::{DISK, SOURCE};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::side_by_side;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-paced",
    alias: "D4-paced",
    title: "Deletes in steps that count bytes and extents",
    source: SOURCE,
};

const BYTES_PER_SECOND: u64 = 512 * MIB;
const FILE: u64 = 1024 * MIB;

/// A way to delete: what it is called, what was published, what is done and how often the log is
/// written.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    /// The 99.9th percentile that was published, in multiples of that without deletes, and in which row
    /// of how many it stands.
    times: Option<(f64, usize, usize)>,
    deletes: Deletes,
    sync_seconds: u64,
    seconds: u64,
}

/// Holes of `hole` bytes at the rate of all, each followed by a flush.
const fn flushed(hole: u64, extent_size: u64) -> Deletes {
    let holes = BYTES_PER_SECOND / hole;
    Deletes::Punch { holes, hole, file_size: FILE, extent_size, flush: true }
}

fn variants() -> [Variant; 8] {
    let variant =
        |name, times, deletes| Variant { name, times, deletes, sync_seconds: 30, seconds: 20 };
    let gathered = |name, times, extent_mib| Variant {
        sync_seconds: 1,
        ..variant(name, times, by_extent_size(extent_mib))
    };
    let unlinked = variant("64 files of 128 MB/s unlinked", Some((45.0, 5, 6)), low_extents(64));
    [
        variant("no deletes", None, Deletes::None),
        variant("paced: 4 MB steps, 32 MB extents", None, flushed(4 * MIB, 32 * MIB)),
        variant("paced: 1 MB steps, 1 MB extents", None, flushed(MIB, MIB)),
        variant("32 MB steps, flushed, 32 MB extents", None, flushed(32 * MIB, 32 * MIB)),
        variant("32 MB steps, flushed, 1 MB extents", None, flushed(32 * MIB, MIB)),
        gathered("32 MB steps, log each second, 32 MB extents", Some((5.5, 1, 5)), 32),
        gathered("32 MB steps, log each second, 1 MB extents", Some((42.0, 0, 4)), 1),
        Variant { seconds: 60, ..unlinked },
    ]
}

/// The 99.9th percentile of reads in microseconds of each variant, by seed.
fn percentiles(first: Seed, seeds: u64) -> Result<Vec<Vec<f64>>, String> {
    let variants = variants();
    let runs: Vec<(Variant, Seed)> = variants
        .iter()
        .flat_map(|&v| first.and_following(seeds).map(move |seed| (v, seed)))
        .collect();
    let all = side_by_side(&runs, |&(variant, seed)| {
        let file_system = file_system(Duration::from_secs(variant.sync_seconds))?;
        let Variant { deletes, seconds, .. } = variant;
        Ok(Run { deletes, file_system, reads: READS, waiting_fibers: None, seconds, seed }
            .latencies()?
            .p999)
    })?;
    Ok(all.chunks(seeds as usize).map(<[f64]>::to_vec).collect())
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let seeds = scale.seconds(1, 5);
    let mut report = Report::default();
    report.parameter("disk", DISK);
    report.parameter("a discard of 1 MB", "keeps the disk busy for 30 us, one of 4 MB for 43 us");
    report.parameter("load", "reads of 512 bytes, Poisson, 4,000/s; deletes of 512 MB/s");
    report.parameter("measured", format!("20 s, unlinks 60 s; {seeds} seeds"));
    let columns = [
        "deletes",
        "published",
        &format!("p99.9 (us), seed {}", seed.0),
        "times no deletes, all seeds",
    ];
    let mut table = Table::new("Reads alongside deletes", &columns);
    let all = percentiles(seed, seeds)?;
    let none = all.first().cloned().unwrap_or_default();
    for (variant, ours) in variants().iter().zip(&all) {
        let times = ours.iter().zip(&none).map(|(ours, none)| ours / none);
        let (least, most) = times.fold((f64::MAX, 0.0_f64), |(a, b), t| (a.min(t), b.max(t)));
        if let (Some((published, row, rows)), &[ours, ..], &[none, ..]) =
            (variant.times, &ours[..], &none[..])
        {
            let figure = Figure::new(variant.name, "x no deletes", published, ours / none);
            let figure = figure.at(variant.name, row, rows);
            report.figures.push(figure.compared_with("no deletes", 1.0));
        }
        table.row([
            variant.name.to_owned(),
            variant.times.map_or_else(|| "-".to_owned(), |(times, ..)| format!("{times} x")),
            thousands(ours.first().copied().unwrap_or_default()),
            format!("{least:.1} to {most:.1}"),
        ]);
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SEED;

    #[test]
    fn steps_by_cost_are_not_felt_and_unlinks_are() {
        let all = percentiles(SEED, 5).unwrap();
        for (seed, none) in all[0].iter().enumerate() {
            let times = |variant: usize| all[variant][seed] / none;
            for paced in [1, 2] {
                assert!(times(paced) <= 1.2, "seed {seed}: {}", times(paced));
            }
            assert!(times(5) > 4.0 && times(6) > 22.0, "{} and {}", times(5), times(6));
            assert!(times(7) >= 10.0, "seed {seed}: {}", times(7));
        }
    }
}
