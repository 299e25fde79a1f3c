//! What files that grow cost, by how their length is made.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2025;
use crate::articles::y2025::appends::{self, MISALIGNED};
use crate::articles::y2025::placement::{ArrayLoad, Placement};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::{self, percent};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-growth",
    alias: "S3-17",
    title: "Files that grow, and files whose length is known before",
    source: y2025::WITH_ISSUE,
};

const SHARDS: u32 = 64;
/// It matters where files begin: the mean of this many seeds.
const SEEDS: u64 = 10;

/// How files grow, the percentage of requests that begin inside of 4 KiB, and that of the missing
/// throughput that came back.
type Published = Vec<(String, f64, f64)>;

fn published() -> Result<Published, String> {
    scenario::published(include_str!("published.yaml"))
}

/// GB/s where this many percent of the files lie off the sectors, the mean of [`SEEDS`].
fn mean_gb(seed: Seed, off_percent: f64, millis: u64) -> Result<f64, String> {
    let each = seed.and_following(SEEDS).map(|seed| gb_per_second(seed, off_percent, millis));
    Ok(each.sum::<Result<f64, _>>()? / SEEDS as f64)
}

fn gb_per_second(seed: Seed, off_percent: f64, millis: u64) -> Result<f64, String> {
    let before = |shard: u32| (f64::from(shard) * off_percent / 100.0) as u64;
    // spread over the shards
    let off = |shard: u32| (before(shard + 1) - before(shard)) * MISALIGNED;
    let load = ArrayLoad::published(SHARDS);
    let starts = (0..).zip(Placement::Random.starts(seed, load));
    let starts = starts.map(|(shard, start)| start + off(shard)).collect();
    Ok(appends::append(seed, load, starts, true, millis)?.gb_per_second)
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(100, 2000);
    let mut report = Report::default();
    report.parameter("disk", appends::array(ArrayLoad::published(SHARDS)));
    report.parameter(
        "load",
        "128 KiB appends, 64 shards x 8 fibers, files at random chunks, no scheduler; of the files \
         as many begin 1 KiB off the sectors as requests did (published)",
    );
    report.parameter("measured", format!("{millis} ms after 100 ms, the mean of {SEEDS} seeds"));
    let all = published()?;
    let ours =
        all.iter().map(|&(_, off, _)| mean_gb(seed, off, millis)).collect::<Result<Vec<_>, _>>()?;
    let whole = mean_gb(seed, 0.0, millis)?;
    let missing = whole - ours.first().copied().unwrap_or(whole);
    let mut table = Table::new(
        "By the blocks of the file system, and how files grow",
        &["blocks", "", "off the sectors", "GB/s", "missing", "came back", "published"],
    );
    let mut points = [Vec::new(), Vec::new()];
    for ((name, off, published), gb) in all.iter().zip(ours) {
        let back = 1.0 - (whole - gb) / missing;
        table.row([
            String::from("1 KiB"),
            name.clone(),
            format!("{off:.1} %"),
            format!("{gb:.2}"),
            percent(1.0 - gb / whole),
            percent(back),
            format!("{published:.0} %"),
        ]);
        points[0].push((*off, *published));
        points[1].push((*off, back * 100.0));
        if *published > 0.0 {
            let name = format!("{name}: came back");
            let figure = Figure::new(name, "%", *published, back * 100.0);
            let of_first = all.first().map_or(0.0, |(_, first, _)| 1.0 - off / first);
            report
                .figures
                .push(figure.compared_with("as requests are on sectors again", of_first * 100.0));
        }
    }
    // all requests are on sectors, however files grow
    for (name, ..) in &all {
        let gb = format!("{whole:.2}");
        table.row(["4 KiB", name, "0.0 %", &gb, "0.0 %", "-", "-"].map(str::to_owned));
    }
    report.tables.push(table);
    let [published, ours] = points;
    let title = "What came back of the throughput that was missing";
    let chart = Chart::new(title, "% of requests off the sectors", "%");
    let chart = chart.with("published", Mark::Dots, published);
    report.charts.push(chart.with("ours", Mark::Line, ours));
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn a_length_known_before_brings_all_back_and_a_doubled_one_little() {
        for seed in seeds() {
            let [appended, doubled, known] =
                [72.1, 60.1, 0.0].map(|off| mean_gb(seed, off, 100).unwrap());
            assert!(known > 12.8, "{known}");
            let back = (doubled - appended) / (known - appended);
            assert!((0.02..0.3).contains(&back), "{appended} {doubled} {known}");
        }
    }
}
