//! How files grew, in a table and in charts.

use forebay_growth::{Grown, Strategy};
use forebay_report::{Chart, Mark, Table, size};

/// What the columns of [`table`] are.
pub(crate) const EXTENTS: &str = "Extents are those of FIEMAP after a flush; the last columns \
                                  have the number of extents that begin at multiples of that size \
                                  on the device of the file system. Fewer and aligned extents are \
                                  better: requests are split at their ends.";

/// A row for each way.
pub(crate) fn table(growth: &[Grown]) -> Table {
    let first = growth.first();
    let request = first.map_or(0, |grown| u64::from(grown.request_bytes));
    let bytes = first.map_or(0, |grown| grown.file_bytes);
    let title = format!("files that grow to {} with writes of {}", size(bytes), size(request));
    let columns = ["", "files", "MB/s", "extents per file", "at 4 KiB", "at 64 KiB", "at 1 MiB"];
    let mut table = Table::new(&title, &columns);
    for grown in growth {
        let part = |count: u64| match grown.extents {
            Some(extents) if extents > 0 => {
                format!("{:.0} %", count as f64 / extents as f64 * 100.0)
            }
            _ => "-".to_owned(),
        };
        table.row([
            grown.strategy.to_string(),
            grown.files.to_string(),
            format!("{:.0}", grown.bytes_per_second / 1e6),
            per_file(grown).map_or_else(|| "-".to_owned(), |extents| format!("{extents:.1}")),
            part(grown.extents_at_4kib),
            part(grown.extents_at_64kib),
            part(grown.extents_at_1mib),
        ]);
    }
    table
}

fn per_file(grown: &Grown) -> Option<f64> {
    Some(grown.extents? as f64 / f64::from(grown.files))
}

/// How fast they were, and in how many extents they lie.
pub(crate) fn charts(growth: &[Grown]) -> [Chart; 2] {
    let speed = |grown: &Grown| Some(grown.bytes_per_second / 1e6);
    [
        chart(growth, "Files that grow", "MB/s", speed),
        chart(growth, "Extents of files that grow", "extents per file", per_file),
    ]
}

/// A line for each way, by how many files grow at once.
fn chart(growth: &[Grown], title: &str, y: &str, of: fn(&Grown) -> Option<f64>) -> Chart {
    let chart = Chart::new(title, "files that grow at once", y).doubling();
    Strategy::ALL.into_iter().fold(chart, |chart, strategy| {
        let grown = growth.iter().filter(|grown| grown.strategy == strategy);
        let points: Vec<_> =
            grown.filter_map(|grown| Some((f64::from(grown.files), of(grown)?))).collect();
        match points.is_empty() {
            true => chart,
            false => chart.with(strategy.name(), Mark::Line, points),
        }
    })
}
