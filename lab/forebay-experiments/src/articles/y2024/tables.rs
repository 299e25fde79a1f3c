//! The published tables of read latencies alongside deletes, and ours.

use core::time::Duration;

use forebay_report::Table;
use forebay_sim::file_system::FileSystem;

use super::DISK;
use super::deletes::{Deletes, MIB, READS, Run, file_system};
use crate::experiment::{Seed, Setting};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::side_by_side;

/// One table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    /// What its rows are.
    pub(crate) rows_are: &'static str,
    /// Whether the file system discards.
    pub(crate) discard: bool,
    /// Bytes of metadata that a delete writes. Where deletes are discarded, the fitted costs of
    /// discards include it.
    pub(crate) metadata: u64,
    /// How often it writes its log.
    pub(crate) sync_seconds: u64,
    /// How long a run is: at least two of these.
    pub(crate) seconds: u64,
    /// A row's value, and its 99th and 99.9th percentile and maximum in microseconds.
    pub(crate) rows: &'static [(u64, [u32; 3])],
    /// What is deleted in a row.
    pub(crate) deletes: fn(u64) -> Deletes,
}

/// Files of 128 MiB in extents of 32 MiB are unlinked.
pub(crate) fn low_extents(files: u64) -> Deletes {
    unlink(files, 128 * MIB, 32 * MIB)
}

/// Files of 32 MiB in extents of 1 MiB are unlinked.
pub(crate) fn high_extents(files: u64) -> Deletes {
    unlink(files, 32 * MIB, MIB)
}

fn unlink(files: u64, file_size: u64, extent_size: u64) -> Deletes {
    match files {
        0 => Deletes::None,
        _ => Deletes::Unlink { files, file_size, extent_size },
    }
}

/// Files of this many MiB are punched, 16 times 32 MiB a second.
pub(crate) fn by_file_size(mib: u64) -> Deletes {
    punch(mib, 32)
}

/// Files of 1 GiB in extents of this many MiB are.
pub(crate) fn by_extent_size(mib: u64) -> Deletes {
    punch(1024, mib)
}

fn punch(file_mib: u64, extent_mib: u64) -> Deletes {
    if file_mib == 0 {
        return Deletes::None;
    }
    let (file_size, extent_size) = (file_mib * MIB, extent_mib * MIB);
    Deletes::Punch { holes: 16, hole: 32 * MIB, file_size, extent_size, flush: false }
}

pub(crate) const LOW_EXTENTS: Published = Published {
    rows_are: "unlinks/s",
    discard: true,
    metadata: 0,
    sync_seconds: 30,
    seconds: 60,
    rows: &[
        (0, [260, 268, 294]),
        (4, [305, 1542, 8463]),
        (8, [398, 2252, 7890]),
        (16, [363, 3119, 11_362]),
        (32, [727, 4569, 13_362]),
        (64, [712, 12_181, 31_892]),
    ],
    deletes: low_extents,
};

pub(crate) const HIGH_EXTENTS: Published = Published {
    rows: &[
        (0, [260, 268, 294]),
        (4, [291, 6016, 18_484]),
        (8, [211, 6122, 19_785]),
        (16, [495, 7349, 17_365]),
        (32, [887, 8083, 17_605]),
        (64, [6219, 56_063, 64_571]),
    ],
    deletes: high_extents,
    ..LOW_EXTENTS
};

pub(crate) const DISCARD_OFF: Published = Published {
    discard: false,
    // XFS of Linux 6.18 writes 138 sectors of 512 bytes for 128 unlinked files of 4 extents
    metadata: 552,
    rows: &[
        (0, [205, 239, 360]),
        (4, [214, 238, 311]),
        (8, [239, 302, 530]),
        (16, [181, 300, 468]),
        (32, [185, 232, 328]),
        (64, [222, 231, 715]),
    ],
    ..LOW_EXTENTS
};

pub(crate) const BY_FILE_SIZE: Published = Published {
    rows_are: "file size (MB)",
    discard: true,
    metadata: 0,
    sync_seconds: 1,
    seconds: 20,
    rows: &[
        (0, [260, 268, 294]),
        (32, [283, 1481, 2718]),
        (128, [254, 1586, 4967]),
        (1024, [251, 1356, 3498]),
        (7168, [241, 1518, 2927]),
    ],
    deletes: by_file_size,
};

pub(crate) const BY_EXTENT_SIZE: Published = Published {
    rows_are: "extent size (MB)",
    rows: &[
        (1, [6697, 11_331, 15_569]),
        (8, [245, 1551, 2601]),
        (32, [241, 1119, 2329]),
        (512, [258, 1117, 2687]),
    ],
    deletes: by_extent_size,
    ..BY_FILE_SIZE
};

/// A row's figure, published and ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    row: u64,
    /// Which row of how many it is.
    place: usize,
    rows: usize,
    seed: Seed,
    figure: &'static str,
    published: f64,
    pub(crate) ours: f64,
}

impl Cell {
    /// How many times off ours is, at least 1.
    pub(crate) fn off(&self) -> f64 {
        (self.ours / self.published).max(self.published / self.ours)
    }

    /// The maximum is shown, but of single reads.
    pub(crate) fn counts(&self) -> bool {
        self.figure != "max"
    }

    fn figure(&self, rows_are: &str) -> Figure {
        let name = format!("{} {rows_are}: {}", self.row, self.figure);
        Figure::new(name, "us", self.published, self.ours).at(self.figure, self.place, self.rows)
    }

    pub(crate) fn describe(&self, rows_are: &str) -> String {
        let Self { row, seed, figure, published, ours, .. } = self;
        format!(
            "{rows_are} {row}, seed {}, {figure}: {} us, published {}",
            seed.0,
            thousands(*ours),
            thousands(*published)
        )
    }
}

impl Published {
    pub(crate) fn file_system(&self) -> Result<FileSystem, String> {
        let usual = file_system(Duration::from_secs(self.sync_seconds))?;
        Ok(FileSystem { discard: self.discard, metadata: self.metadata, ..usual })
    }

    /// The cells of the table with this many seeds from this one on, by row.
    pub(crate) fn cells(&self, first: Seed, seeds: u64) -> Result<Vec<Cell>, String> {
        let file_system = self.file_system()?;
        let rows = self.rows.iter().enumerate();
        let runs: Vec<_> =
            rows.flat_map(|row| first.and_following(seeds).map(move |seed| (row, seed))).collect();
        let cells = side_by_side(&runs, |&((place, &(row, published)), seed)| {
            let deletes = (self.deletes)(row);
            let (reads, seconds) = (READS, self.seconds);
            let run = Run { deletes, file_system, reads, waiting_fibers: None, seconds, seed };
            let reads = run.latencies()?;
            let figures = ["p99", "p99.9", "max"];
            let ours = [reads.p99, reads.p999, reads.max];
            let cells = figures.into_iter().zip(published).zip(ours);
            Ok(cells
                .map(|((figure, published), ours)| Cell {
                    row,
                    place,
                    rows: self.rows.len(),
                    seed,
                    figure,
                    published: f64::from(published),
                    ours,
                })
                .collect::<Vec<_>>())
        })?;
        Ok(cells.into_iter().flatten().collect())
    }

    /// The table alongside the published one.
    pub(crate) fn report(&self, setting: Setting, title: &str) -> Result<Report, String> {
        let Setting { scale, seed: first, .. } = setting;
        let seeds = scale.seconds(1, 5);
        let cells = self.cells(first, seeds)?;
        let mut report = Report::default();
        report.parameter("disk", DISK);
        report.parameter("load", "reads of 512 bytes, Poisson, 4,000/s");
        let (seconds, period) = (self.seconds, self.sync_seconds);
        report.parameter("measured", format!("{seconds} s (not published for how long)"));
        report.parameter("log", format!("written each {period} s"));
        let counted = cells.iter().filter(|cell| cell.seed == first && cell.counts());
        report.figures = counted.map(|cell| cell.figure(self.rows_are)).collect();
        let columns = [
            self.rows_are,
            "",
            "published (us)",
            &format!("ours, seed {} (us)", first.0),
            "times",
            "times, all seeds",
        ];
        let mut table = Table::new(title, &columns);
        for of_figure in cells.iter().filter(|cell| cell.seed == first) {
            let same = |cell: &&Cell| (cell.row, cell.figure) == (of_figure.row, of_figure.figure);
            let times = cells.iter().filter(same).map(|cell| cell.ours / cell.published);
            let (least, most) = times.fold((f64::MAX, 0.0_f64), |(a, b), t| (a.min(t), b.max(t)));
            table.row([
                of_figure.row.to_string(),
                of_figure.figure.to_owned(),
                thousands(of_figure.published),
                thousands(of_figure.ours),
                format!("{:.2}", of_figure.ours / of_figure.published),
                format!("{least:.2} to {most:.2}"),
            ]);
        }
        report.tables.push(table);
        let counted: Vec<&Cell> = cells.iter().filter(|cell| cell.counts()).collect();
        let within = |times: f64| counted.iter().filter(|cell| cell.off() <= times).count();
        let of = counted.len();
        let text = format!("{} within 2 x, {} within 4 x", within(2.0), within(4.0));
        report.parameter("cells", format!("{of} of p99 and p99.9 with {seeds} seeds: {text}"));
        for miss in counted.iter().filter(|cell| cell.off() > 2.0) {
            report.parameter("off by more than 2 x", miss.describe(self.rows_are));
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{SEED, seeds};

    /// 42 cells; the figures without deletes stand in three of the tables.
    #[test]
    fn a_disk_of_first_and_last_rows_is_near_most_of_four_tables() {
        let tables = [LOW_EXTENTS, HIGH_EXTENTS, BY_FILE_SIZE, BY_EXTENT_SIZE];
        for seed in seeds() {
            let cells = tables.iter().flat_map(|table| table.cells(seed, 1).unwrap());
            let off: Vec<f64> = cells.filter(Cell::counts).map(|cell| cell.off()).collect();
            let near = off.iter().filter(|&&off| off <= 2.0).count();
            assert_eq!(off.len(), 42);
            // 32 files a second of many extents: 9.6 ms, published 0.9
            let farthest = off.iter().copied().fold(0.0, f64::max);
            assert!(near >= 32 && farthest <= 12.0, "{near}, {farthest}");
        }
    }

    #[test]
    fn without_discard_deletes_cost_reads_nothing() {
        let cells = DISCARD_OFF.cells(SEED, 1).unwrap();
        let none: Vec<f64> = cells[..3].iter().map(|cell| cell.ours).collect();
        for cell in &cells {
            assert!(!cell.counts() || cell.ours <= 1.05 * none[1], "{cell:?}");
        }
    }
}
