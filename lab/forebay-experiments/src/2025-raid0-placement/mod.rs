//! Whether it matters on which member of an array files begin.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2025::SOURCE;
use crate::articles::y2025::placement::{
    ArrayLoad, LOST, Placement, PlacementResult, measure, report,
};
use crate::experiment::{Experiment, Setting};
use crate::report::Report;
use crate::scenario::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2025-raid0-placement",
    alias: "S3-15",
    title: "RAID0: where files begin",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::Same, "all on one member"),
    (Placement::Random, "at random"),
    (Placement::InTurn, "in turn"),
];
const SCHEDULERS: [(&str, bool); 2] = [("none", true), ("pace+window", false)];
/// Shards that are simulated unless others are set.
const SHARDS: [u32; 2] = [8, 64];

/// The runs of a placement and a scheduler, one for each number of shards.
struct Row {
    placement: &'static str,
    scheduler: &'static str,
    results: Vec<PlacementResult>,
}

fn run(Setting { scale, seed, array }: Setting) -> Result<Report, String> {
    let of = |shards| ArrayLoad::published(shards).with(array);
    let loads = array.shards.map_or_else(|| SHARDS.map(of).to_vec(), |shards| vec![of(shards)]);
    let most = of(SHARDS[1]);
    let (mut report, measured) = report(scale, most);
    let mut rows = Vec::new();
    let title = format!("{} shards, no scheduler: the busiest member's part", most.shards);
    let mut chart = Chart::new(&title, "ms", "%");
    for (placement, name) in PLACEMENTS {
        for (scheduler, open) in SCHEDULERS {
            let run = |&load| measure(seed, placement, load, open, measured);
            let results = loads.iter().map(run).collect::<Result<Vec<_>, _>>()?;
            if let Some(last) = results.last().filter(|_| open) {
                let shown = last.busiest.iter().filter(|(at, _)| *at < 0.05);
                let points = shown.map(|(at, part)| (at * 1e3, part * 100.0)).collect();
                chart = chart.with(name, Mark::Line, points);
            }
            rows.push(Row { placement: name, scheduler, results });
        }
    }
    report.tables.push(table(&loads, &rows));
    let each = loads.iter().enumerate();
    report.findings = each.flat_map(|(at, load)| findings(*load, at, &rows)).collect();
    report.charts.push(chart);
    Ok(report)
}

fn table(loads: &[ArrayLoad], rows: &[Row]) -> Table {
    let together = loads.first().map_or(0.0, |load| 3.22 * f64::from(load.members));
    let title = format!(
        "GB/s (the members together: {together:.1}), and the busiest member's part of the requests \
         in flight"
    );
    let mut table = Table::new(&title, &["files begin", "scheduler"]);
    for load in loads {
        table.columns.extend([format!("{} shards", load.shards), "busiest".to_owned()]);
    }
    for Row { placement, scheduler, results } in rows {
        let mut row = vec![(*placement).to_owned(), (*scheduler).to_owned()];
        for result in results {
            row.push(format!("{:.1}", result.gb_per_second));
            row.push(percent(result.busiest_mean(0.1, 1.0)));
        }
        table.rows.push(row);
    }
    table
}

/// Which placements lose bandwidth under this load, whose results are at this place of each row.
fn findings(load: ArrayLoad, at: usize, rows: &[Row]) -> Vec<String> {
    let ArrayLoad { shards, members, .. } = load;
    let results = rows.iter().filter_map(|row| Some((row, row.results.get(at)?)));
    let best = results.clone().map(|(_, result)| result.gb_per_second).fold(0.0, f64::max);
    let loses = |result: &PlacementResult| result.gb_per_second < (1.0 - LOST) * best;
    let text = |(row, result): (&Row, &PlacementResult)| {
        let Row { placement, scheduler, .. } = row;
        format!(
            "{shards} shards, files {placement}, scheduler {scheduler}: {:.1} GB/s, {} less than the \
             best placement; the busiest member has {} of the requests in flight ({} would be even).",
            result.gb_per_second,
            percent(1.0 - result.gb_per_second / best),
            percent(result.busiest_mean(0.1, 1.0)),
            percent(1.0 / f64::from(members)),
        )
    };
    let lost: Vec<String> = results.filter(|(_, result)| loses(result)).map(text).collect();
    if lost.is_empty() {
        return vec![format!(
            "{shards} shards: no placement loses more than 5 % of {best:.1} GB/s."
        )];
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;
    use crate::{ArraySetting, Scale, Seed};

    const ALL_GB: f64 = 4.0 * 3.22;
    const MANY: ArrayLoad = ArrayLoad::published(64);

    #[test]
    fn files_at_random_are_nearly_even() {
        for seed in seeds() {
            let figures = measure(seed, Placement::Random, MANY, true, 100).unwrap();
            // a quarter is even
            let busiest = figures.busiest_mean(0.1, 1.0);
            assert!(busiest < 0.42, "{busiest}");
            assert!(figures.gb_per_second > 0.99 * ALL_GB, "{}", figures.gb_per_second);
        }
    }

    #[test]
    fn a_window_can_wait_for_one_member() {
        for seed in seeds() {
            let gb = |placement| measure(seed, placement, MANY, false, 100).unwrap().gb_per_second;
            assert!(gb(Placement::Random) > 0.99 * ALL_GB);
            assert!(gb(Placement::Same) < 0.43 * ALL_GB);
        }
    }

    #[test]
    fn the_array_and_its_load_can_be_set() {
        let array = ArraySetting {
            shards: Some(24),
            fibers: Some(4),
            chunk: Some(64 << 10),
            members: Some(6),
        };
        let report =
            EXPERIMENT.repeat(Setting { scale: Scale::Short, seed: Seed(1), array }).unwrap();
        let parameters: Vec<&str> = report.parameters.iter().map(|(_, of)| of.as_str()).collect();
        assert!(parameters[0].starts_with("RAID0 of 6, chunk 64 kB"), "{parameters:?}");
        assert_eq!(parameters[1], "128 KiB appends, 4 fibers per shard");
        let [table] = &report.tables[..] else { panic!("{:?}", report.tables) };
        assert!(table.title.contains("together: 19.3"), "{}", table.title);
        assert_eq!(table.columns, ["files begin", "scheduler", "24 shards", "busiest"]);
        assert!(!report.findings.is_empty());
    }
}
