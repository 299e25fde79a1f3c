use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

/// With which tests repeat what chance does not change much.
pub(crate) const SEED: Seed = Seed(1);

fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

/// The short reports are those of the folders; with `UPDATE_SNAPSHOTS` set, they are written there.
#[test]
fn reports_are_as_recorded() {
    let (experiments, next) = (all(), AtomicUsize::new(0));
    let repeat = || {
        while let Some(experiment) = experiments.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report =
                experiment.repeat(Setting { scale: Scale::Short, seed: SEED }).unwrap().to_string();
            let path = sources().join(experiment.name).join("report.txt");
            if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
                fs::write(&path, &report).unwrap();
            }
            let recorded = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(report, recorded, "{} differs; see UPDATE_SNAPSHOTS", path.display());
        }
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(repeat))));
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
fn an_experiment_is_found_by_either_name() {
    for experiment in all() {
        for name in [experiment.name, experiment.alias] {
            assert_eq!(find(&name.to_lowercase()).map(|found| found.name), Some(experiment.name));
        }
    }
}
