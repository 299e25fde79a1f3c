//! What `sim run` says of scheduling, over all presets and from short to long runs.

use std::process::Command;

use forebay_load::results::model::{ClassResult, Comparison, Report};
use forebay_load::results::verdict::{Verdict, VerdictKind, verdict};
use forebay_sim::spec::DiskSpec;

use crate::process::run;

const SAMPLES: [&str; 2] = ["served.yaml", "mixed.yaml"];
const DURATIONS: [&str; 3] = ["100ms", "500ms", "2s"];

fn sim_run(jobs: &str, disk: &str, duration: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let jobs = format!("{}/../../examples/{jobs}", env!("CARGO_MANIFEST_DIR"));
    command.args(["sim", "run", &jobs, "--disk", disk, "--duration", duration]);
    command
}

/// What would have been said of classes with 500 requests and more alone: nothing of the one that
/// gained.
#[test]
fn a_class_of_few_requests_that_gains_is_seen() {
    let text = run(&mut sim_run("served.yaml", "four-channels", "2s")).stdout;
    assert!(text.contains("reads gained most: p95 "), "{text}");
    assert!(!text.contains("no contention"), "{text}");
}

#[test]
fn verdicts_are_right_on_all_presets_for_all_durations() {
    for jobs in SAMPLES {
        for disk in DiskSpec::presets() {
            for duration in DURATIONS {
                let mut command = sim_run(jobs, disk, duration);
                command.args(["--warmup", "200ms", "--compare", "none", "--format", "json"]);
                let Report::Comparison(comparison) =
                    serde_json::from_value(run(&mut command).results()).unwrap()
                else {
                    panic!("no comparison");
                };
                assert_fits(&format!("{jobs} {disk} {duration}"), &comparison);
            }
        }
    }
}

/// A class whose latencies all fell or rose is reported, and so is one that is not judged.
fn assert_fits(what: &str, comparison: &Comparison) {
    let said = verdict(comparison);
    let [before, after] = &comparison.runs;
    for pair in before.classes.iter().zip(&after.classes) {
        let name = &pair.0.name;
        let requests = pair.0.requests.min(pair.1.requests);
        let is_named = said.sentences.iter().any(|sentence| {
            sentence.contains(&format!("{name} (")) && sentence.starts_with("Not judged")
        });
        assert_eq!(is_named, requests < 10, "{what}: {name}: {said}");
        if requests >= 10 {
            assert_tells_of(what, &said, pair);
        }
    }
}

fn assert_tells_of(what: &str, said: &Verdict, (before, after): (&ClassResult, &ClassResult)) {
    let (old, new) = (&before.latency_us, &after.latency_us);
    let ratios = [new.p50 / old.p50, new.p95 / old.p95, new.p99 / old.p99];
    let name = &before.name;
    if ratios.iter().all(|&ratio| ratio < 0.7) {
        assert!(matches!(said.kind, VerdictKind::Gain(_)), "{what}: {name}: {said}");
    }
    if ratios.iter().all(|&ratio| ratio > 1.5) {
        assert!(said.to_string().contains("lost most"), "{what}: {name}: {said}");
    }
    let bandwidth =
        after.bandwidth_bytes_per_second as f64 / before.bandwidth_bytes_per_second.max(1) as f64;
    let has_moved = (bandwidth - 1.0).abs() > 0.5 && after.requests.min(before.requests) >= 40;
    if has_moved || ratios.iter().any(|&ratio| !(0.7..1.5).contains(&ratio)) && ratios_agree(ratios)
    {
        assert_ne!(said.kind, VerdictKind::NoContention, "{what}: {name}: {said}");
    }
}

/// Whether all percentiles moved the same way.
fn ratios_agree(ratios: [f64; 3]) -> bool {
    ratios.iter().all(|&ratio| ratio < 0.8) || ratios.iter().all(|&ratio| ratio > 1.2)
}
