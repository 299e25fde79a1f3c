use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use forebay_report::Table;

use super::*;
use crate::experiment::{ARRAYS, ArraySetting, LONGEST};
use crate::figure::number;
use crate::known::Known;

/// With which tests repeat what chance hardly changes, and all of those that are recorded.
pub(crate) const SEED: Seed = Seed(1);
const SEEDS: [Seed; 3] = [SEED, Seed(2), Seed(3)];

/// With which seeds assertions hold: as many as `SEEDS` says in the environment, or those that are
/// recorded.
pub(crate) fn seeds() -> impl Iterator<Item = Seed> {
    let count = std::env::var("SEEDS").map_or(SEEDS.len() as u64, |count| count.parse().unwrap());
    (1..=count).map(Seed)
}

fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

/// What is recorded of an experiment in its folder; with `UPDATE_SNAPSHOTS` set, it is written there.
fn is_as_recorded(experiment: &Experiment, file: &str, text: &str) {
    let path = sources().join(experiment.name).join(file);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, recorded, "{} differs; see UPDATE_SNAPSHOTS", path.display());
}

/// All numbers of at least three digits in the disks and loads of an experiment and its article.
fn numbers_of(experiment: &Experiment) -> Vec<f64> {
    let year = experiment.name.split('-').next().unwrap();
    let folders = [sources().join(experiment.name), sources().join(format!("articles/y{year}"))];
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let files = files.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".yaml") && !["known.yaml", "published.yaml"].contains(&name)
    });
    let mut numbers = Vec::new();
    for path in files {
        let text = fs::read_to_string(path).unwrap();
        let values = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for word in values.flat_map(|line| line.split(|c: char| !c.is_ascii_digit() && c != '.')) {
            let digits = word.replace('.', "");
            if digits.trim_matches('0').len() >= 3 {
                numbers.extend(word.trim_matches('.').parse::<f64>());
            }
        }
    }
    numbers
}

/// The published figures alongside ours with each seed.
fn figures_by_seed(reports: &[Report]) -> Table {
    let seeds = SEEDS.map(|Seed(seed)| format!("seed {seed}"));
    let columns = ["", "unit", "published", "tolerance", "state"];
    let mut table = Table::new("Published figures", &columns);
    table.columns.extend(seeds);
    table.columns.push("met".to_owned());
    for (at, figure) in reports[0].figures.iter().enumerate() {
        let same = reports.iter().map(|report| &report.figures[at]);
        let met = same.clone().filter(|figure| figure.is_met()).count();
        let Figure { name, unit, published, state, .. } = figure;
        let mut row = vec![
            name.clone(),
            (*unit).to_owned(),
            published.to_string(),
            figure.tolerance(),
            state.name().to_owned(),
        ];
        row.extend(same.map(|same| number(same.ours)));
        row.push(format!("{met} of {}", reports.len()));
        table.rows.push(row);
    }
    table
}

/// The short report with one seed, and the published figures alongside ours with three.
fn is_recorded(experiment: &Experiment) {
    let array = ArraySetting::default();
    let repeat = |seed| experiment.repeat(Setting { scale: Scale::Short, seed, array }).unwrap();
    let first = repeat(SEED);
    let known = Known::parse(experiment.known).unwrap();
    assert_eq!(
        known.leaks(&first.figures, &numbers_of(experiment)),
        [""; 0],
        "{}",
        experiment.name
    );
    is_as_recorded(experiment, "report.txt", &first.to_string());
    if !first.figures.is_empty() {
        let reports = [first, repeat(SEEDS[1]), repeat(SEEDS[2])];
        is_as_recorded(experiment, "figures.txt", &figures_by_seed(&reports).to_string());
    }
}

/// A test of each, so that they run side by side, and one can be recorded alone.
macro_rules! recorded {
    ($($experiment:ident)*) => {
        mod reports_are_as_recorded {
            $(#[test]
            fn $experiment() {
                super::is_recorded(&crate::$experiment::EXPERIMENT);
            })*

            pub(super) const ALL: &[&str] = &[$(crate::$experiment::EXPERIMENT.name),*];
        }
    };
}

recorded! {
    io_queues_2016 shares_2016 write_load_2016 bursts_2016
    littles_law_2018 knee_2018 knee_by_size_2018 deep_writes_2018
    stages_2022 half_duplex_2022 second_disk_2022 hard_disk_2022 gc_stall_2022 ingestion_2022
    queries_2022 latency_2022 compaction_2022
    discard_off_2024 low_extents_2024 high_extents_2024 trim_job_2024 bursts_2024 sync_period_2024
    file_size_2024 extent_size_2024 paced_2024
    capacity_2025 allocation_2025 parallelism_2025 growth_2025 raid0_collisions_2025 raid0_placement_2025 chunk_border_2025
    older_disks_2025
    design_cost design_window design_target design_shards design_settling
}

#[test]
fn the_report_of_every_experiment_is_recorded() {
    let all: Vec<&str> = all().iter().map(|experiment| experiment.name).collect();
    assert_eq!(reports_are_as_recorded::ALL, all);
}

#[test]
fn every_folder_with_a_report_is_an_experiment_of_its_name() {
    let folders = fs::read_dir(sources()).unwrap().map(|entry| entry.unwrap().path());
    let with_report = folders.filter(|folder| folder.join("report.txt").exists());
    let name =
        |folder: std::path::PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let folders: BTreeSet<String> = with_report.map(name).collect();
    let listed = all().iter().map(|experiment| experiment.name.to_owned()).collect();
    assert_eq!(folders, listed);
}

#[test]
fn the_longest_are_experiments() {
    for (place, name) in LONGEST.iter().enumerate() {
        assert_eq!(find(name).map(|found| found.place_by_length()), Some(place), "{name}");
    }
}

#[test]
fn experiments_whose_array_can_be_set_are_there() {
    for name in ARRAYS {
        assert_eq!(find(name).map(|found| found.name), Some(name));
    }
}

#[test]
fn an_experiment_is_found_by_either_name() {
    for experiment in all() {
        for name in [experiment.name, experiment.alias] {
            assert_eq!(find(&name.to_lowercase()).map(|found| found.name), Some(experiment.name));
        }
    }
}
