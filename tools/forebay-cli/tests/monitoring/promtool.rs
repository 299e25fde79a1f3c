//! Stories, as `promtool test rules` sees them.

use std::process::Command;

use serde_json::{Value, json};

use crate::files::{ALERTS, alerts, panels, path};
use crate::has_prometheus;
use crate::provoked::PROVOKED;
use crate::stories::STORIES;
use crate::story::{SCRAPE_SECONDS, STORY_SECONDS, Story};

/// An expression, and what it says at the end of a story: labels and values.
type Expected = (String, Vec<(String, f64)>);

/// Runs expressions at the end of the story.
fn check(story: &Story, expected: &[Expected]) {
    let interval = format!("{SCRAPE_SECONDS}s");
    let series = story.series().into_iter();
    let series = series.map(|(name, values)| json!({"series": name, "values": values.join(" ")}));
    let tests = expected.iter().map(|(expr, samples)| {
        let samples = samples.iter().map(|(labels, value)| json!({"labels": labels, "value": value}));
        let samples: Vec<Value> = samples.collect();
        json!({"expr": expr, "eval_time": format!("{}s", STORY_SECONDS - SCRAPE_SECONDS), "exp_samples": samples})
    });
    let file = json!({
        "rule_files": [path(ALERTS).canonicalize().unwrap()],
        "evaluation_interval": interval,
        "tests": [{
            "name": story.name,
            "interval": interval,
            "input_series": series.collect::<Vec<_>>(),
            "promql_expr_test": tests.collect::<Vec<_>>(),
        }],
    });
    let dir = tempfile::tempdir().unwrap();
    let test = dir.path().join("test.yml");
    std::fs::write(&test, file.to_string()).unwrap();
    let output = Command::new("promtool").args(["test", "rules"]).arg(&test).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", story.name);
}

#[test]
fn the_rules_are_valid() {
    if has_prometheus() {
        let mut promtool = Command::new("promtool");
        let output = promtool.args(["check", "rules"]).arg(path(ALERTS)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn each_alert_has_a_story() {
    for (alert, _) in alerts() {
        let has_story = STORIES.iter().any(|story| story.fires.contains(&alert.as_str()));
        let has_story = has_story || PROVOKED.iter().any(|(provoked, _)| *provoked == alert);
        assert!(has_story, "{alert} fires in no story");
    }
}

#[test]
fn each_alert_fires_in_its_story_and_in_no_other() {
    if !has_prometheus() {
        return;
    }
    for story in STORIES {
        let firing = "group by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[1h]))";
        let named = |alert: &&str| (format!("{{alertname=\"{alert}\"}}"), 1.0);
        check(story, &[(firing.into(), story.fires.iter().map(named).collect())]);
    }
}

#[test]
fn each_panel_shows_something_of_a_healthy_run() {
    if !has_prometheus() {
        return;
    }
    let queries = panels("2m").into_iter().flat_map(|panel| panel.queries);
    let has_data =
        queries.map(|query| (format!("count({query}) > bool 0"), vec![("{}".into(), 1.0)]));
    let with_target = STORIES.iter().find(|story| story.name.contains("with a latency target"));
    check(with_target.unwrap(), &has_data.collect::<Vec<_>>());
}
