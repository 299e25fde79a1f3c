//! Files that the program wrote at commit 15957d5 are read by this one. `old-files` has one of each
//! kind: measurements, figures, regions, results, a surface, and what interrupted runs leave. Old names
//! of options are taken too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::process::{Ended, run};

fn old(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/old-files").join(name)
}

/// Runs a command in a folder of its own, where some leave files.
fn forebay(arguments: &[&str]) -> Ended {
    let dir = TempDir::new().unwrap();
    run(Command::new(env!("CARGO_BIN_EXE_forebay")).args(arguments).current_dir(dir.path()))
}

/// Runs a command that succeeds.
#[track_caller]
fn output(arguments: &[&str]) -> String {
    let Ended { code, stdout, stderr } = forebay(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    stdout
}

#[test]
fn old_figures_and_regions_are_read() {
    for name in ["io-properties.yaml", "forebay.yaml", "region.yaml"] {
        let text = output(&["info", "--properties", old(name).to_str().unwrap()]);
        assert!(!text.is_empty(), "{name}");
    }
}

#[test]
fn an_old_measurement_is_compared_and_fitted_again() {
    let dir = TempDir::new().unwrap();
    let measured = old("tune.json");
    let measured = measured.to_str().unwrap();
    let text = output(&["tune", "--diff", measured, measured]);
    assert!(text.contains("read bandwidth"), "{text}");
    output(&["tune", "--fit-from", measured, "--out", dir.path().to_str().unwrap()]);
    assert!(dir.path().join("forebay.yaml").exists());
}

#[test]
fn an_old_measurement_is_a_part_of_a_history() {
    let dir = TempDir::new().unwrap();
    let history = dir.path().join("history");
    fs::create_dir(&history).unwrap();
    fs::copy(old("tune.json"), history.join("2026-01-01-00-00-quick-000.json")).unwrap();
    let history = history.to_str().unwrap();
    let arguments = ["tune", "--simulate", "nvme-2022", "--budget", "quick", "--history", history];
    let text = output(&arguments);
    assert!(text.contains("There are no new losses"), "{text}");
}

#[test]
fn old_results_are_compared_and_shown() {
    let dir = TempDir::new().unwrap();
    let results = old("results.json");
    let results = results.to_str().unwrap();
    output(&["bench", "--diff", results, results]);
    let page = dir.path().join("page.html");
    output(&["report", results, "--out", page.to_str().unwrap()]);
    assert!(fs::read_to_string(page).unwrap().contains("writes"));
}

#[test]
fn an_old_surface_is_fitted_and_is_a_disk() {
    let surface = old("surface.csv");
    let surface = surface.to_str().unwrap();
    let Ended { code, stderr, .. } = forebay(&["explore", "--from", surface]);
    assert!(matches!(code, Some(0 | 3)), "{stderr}");
    let jobs = old("jobs.yaml");
    let arguments =
        ["sim", "run", "--disk", surface, "--duration", "100ms", jobs.to_str().unwrap()];
    assert!(output(&arguments).contains("reads"));
}

/// They are of a directory that is not there, and that is all that is wrong.
#[test]
fn files_of_old_interrupted_runs_are_read() {
    let dir = TempDir::new().unwrap();
    let partial = old("tune.partial.json");
    let out = dir.path().join("out");
    let arguments = ["tune", "--resume", partial.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let Ended { code, stderr, .. } = forebay(&arguments);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("cannot find `/nowhere`"), "{stderr}");

    let partial = dir.path().join("surface.csv.partial.json");
    let text = fs::read_to_string(old("surface.csv.partial.json")).unwrap();
    let place = dir.path().to_str().unwrap();
    fs::write(partial, text.replace("/nowhere", place)).unwrap();
    let saved = dir.path().join("surface.csv");
    let arguments = ["explore", place, "--grid", "5", "--seconds", "1s", "--data-size", "64M"];
    let arguments = [&arguments[..], &["--save", saved.to_str().unwrap(), "--resume"]].concat();
    let Ended { code, stderr, .. } = forebay(&arguments);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("grid"), "{stderr}");
}

/// Each command fails for what it was given, and not for the name of the option.
#[test]
fn old_names_of_options_are_taken() {
    let [jobs, properties, surface] = ["jobs.yaml", "forebay.yaml", "surface.csv"].map(old);
    let jobs = ["sim", "run", jobs.to_str().unwrap(), "--disk", "gp3", "--duration", "10ms"];
    for control in ["knee", "figures"] {
        output(&[&jobs[..], &["--control", control]].concat());
    }
    let properties = properties.to_str().unwrap();
    let goal = ["--goal", "db:p95=2ms", "--class", "db=a:1000", "--properties", properties];
    let govern = [&["govern", "--disk", "no-such-disk"][..], &goal].concat();
    let surface = ["explore", "--from", surface.to_str().unwrap()];
    let another = ["--output", "/nowhere/forebay.yaml", "--another-disk"];
    for (arguments, words) in [
        (&["tune", "--destroy-device-data", "/nowhere"][..], "cannot find `/nowhere`"),
        (&["explore", "--disk", "no-such-disk"], "no such disk"),
        (&[&surface[..], &another].concat(), "`/nowhere/forebay.yaml` does not exist"),
        (&govern, "unknown disk no-such-disk"),
    ] {
        forebay(arguments).complains(2, &[words]);
    }
    let in_class = ["run", "--class", "tests", "--require", "--disk", "no-such-disk", "--", "true"];
    forebay(&in_class).complains(125, &["unknown disk no-such-disk"]);
}

#[test]
fn files_left_by_an_old_delete_are_deleted() {
    let dir = TempDir::new().unwrap();
    let trash = dir.path().join(".forebay-trash");
    fs::create_dir(&trash).unwrap();
    fs::write(trash.join("forebay-bfe02067b6b03335-1"), vec![7; 100_000]).unwrap();
    let text = output(&["rm", "--finish", dir.path().to_str().unwrap()]);
    assert!(text.contains("deleted 1 file"), "{text}");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}
