//! `forebay bench --grow`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use super::process::run;

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("bench").args(arguments);
    command
}

#[test]
fn files_that_grow_are_compared_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let place = dir.path().join("files");
    std::fs::create_dir(&place).unwrap();
    let place = place.to_str().unwrap();
    let size = ["--grow-size", "1MiB", "--grow-files", "3", "--dir", place];
    let report = ["--grow", "--format", "json", "--report", page.to_str().unwrap()];
    let found = run(&mut bench(&[&report[..], &size].concat())).results();
    let growth = found["growth"].as_array().unwrap();
    let pairs: Vec<_> = growth.iter().map(|grown| (&grown["strategy"], &grown["files"])).collect();
    assert_eq!(pairs.len(), 8, "{pairs:?}");
    assert!(
        pairs[..4].iter().all(|pair| *pair.1 == 1) && pairs[4..].iter().all(|pair| *pair.1 == 3)
    );
    assert!(growth.iter().all(|grown| grown["bytes_per_second"].as_f64().unwrap() > 0.0));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("extents per file") && html.matches("<svg").count() == 2);
    let ended = run(&mut bench(&[&["--grow=fallocate,append"], &size[..]].concat()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 6, "{}", ended.stdout);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 0);
}

#[test]
fn a_format_that_growth_does_not_have_is_refused_before_anything_grows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let ended = run(&mut bench(&["--grow", "--format", "yaml", "--dir", dir]));
    ended.complains(2, &["--format text and json"]);
    assert!(!ended.stderr.contains("growing"), "{}", ended.stderr);
}

#[test]
fn a_directory_whose_name_is_no_text_is_in_results_as_it_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(OsStr::from_bytes(b"n\xff"));
    std::fs::create_dir(&place).unwrap();
    let mut command = bench(&["--grow=append", "--grow-size", "128KiB", "--grow-files", "2"]);
    let found = run(command.args(["--format", "json", "--dir"]).arg(&place)).results();
    assert_eq!(found["dir"], place.display().to_string());
}

#[test]
fn strategies_that_fail_are_named() {
    run(&mut bench(&["--grow", "--dir", "/none-such"])).complains(2, &["`/none-such`"]);
    run(&mut bench(&["--grow", "--dir", "/proc"])).complains(2, &["takes no new files", "--dir"]);
    run(&mut bench(&["--grow", "jobs.yaml"])).complains(2, &["--grow"]);
    run(&mut bench(&["--grow=sideways"])).complains(2, &["sideways", "append"]);
    run(&mut bench(&["--grow-files", "3"])).complains(2, &["--grow"]);
    run(&mut bench(&["--grow", "--grow-files", "1"])).complains(2, &["--grow-files"]);
    run(&mut bench(&["--grow", "--grow-request", "1000"])).complains(2, &["multiple of 512"]);
    run(&mut bench(&["--grow", "--grow-size", "1KiB"])).complains(2, &["--grow-size"]);
    run(&mut bench(&["--grow", "--grow-size", "9999999GB"])).complains(2, &["free", "--grow-size"]);
    run(&mut bench(&[])).complains(2, &["JOBS.yaml"]);
}
