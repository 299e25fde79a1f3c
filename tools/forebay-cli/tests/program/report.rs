//! Pages about runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::loop_mount::{Lab, MIXED, TIMES};
use crate::pages::shown;
use crate::process::{Ended, run};

/// The colours of series, in their order.
const COLOURS: [&str; 5] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"];

pub(crate) fn forebay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(arguments);
    command
}

/// The page in a browser, or where there is none as it was written; it is quiet on the console.
pub(crate) fn dom(page: &Path) -> String {
    let (dom, console) =
        shown(page).unwrap_or_else(|| (fs::read_to_string(page).unwrap(), Vec::new()));
    assert!(console.is_empty(), "{console:?}");
    assert!(!dom.contains("NaN") && !dom.contains("src=\"http"), "it needs nothing alongside it");
    dom
}

/// The charts of the page whose title begins so, in order.
pub(crate) fn charts<'a>(dom: &'a str, title: &str) -> Vec<&'a str> {
    let charts = dom.split("<svg class=\"chart\"").skip(1);
    let charts = charts.filter_map(|rest| rest.split("</svg>").next());
    charts.filter(|chart| chart.contains(&format!(">\n{title}"))).collect()
}

/// The heights of the points of each series of a chart, in pixels from above.
fn heights(chart: &str, colour: &str) -> Vec<f64> {
    let line = chart.split("<polyline").find(|line| line.contains(&format!("stroke=\"{colour}\"")));
    let points = line.and_then(|line| line.split("points=\"").nth(1)).unwrap();
    let points = points.split('"').next().unwrap().split_whitespace();
    points.map(|point| point.split_once(',').unwrap().1.parse().unwrap()).collect()
}

pub(crate) fn numbers(column: &Value) -> Vec<f64> {
    column.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

/// Each point of the chart is as high as its value says: height is linear in it.
pub(crate) fn shows(chart: &str, columns: &[Vec<f64>]) {
    let drawn: Vec<(f64, f64)> = columns
        .iter()
        .zip(COLOURS)
        .flat_map(|(column, colour)| {
            // no line is drawn of a column without values
            let heights = if column.is_empty() { Vec::new() } else { heights(chart, colour) };
            assert_eq!(heights.len(), column.len(), "{colour}");
            column.iter().copied().zip(heights)
        })
        .collect();
    let by_value = |one: &&(f64, f64), other: &&(f64, f64)| one.0.total_cmp(&other.0);
    let (least, most) =
        (drawn.iter().min_by(by_value).unwrap(), drawn.iter().max_by(by_value).unwrap());
    assert!(least.0 < most.0, "nothing to be seen: {least:?}");
    let pixels = (most.1 - least.1) / (most.0 - least.0);
    assert!(pixels < 0.0, "higher is more");
    for (value, height) in &drawn {
        let expected = least.1 + (value - least.0) * pixels;
        assert!((height - expected).abs() <= 1.5, "{value} at {height}, not at {expected}");
    }
}

fn columns(jobs: &Value, of: impl Fn(&Value) -> Vec<f64>) -> Vec<Vec<f64>> {
    jobs.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn the_charts_of_2016_are_on_a_page_and_show_what_the_results_say() {
    let lab = Lab::new();
    let page = lab.dir.path().join("page.html");
    let jobs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/datastore-write-load.yaml");
    let mut command = forebay(&["sim", "run", jobs, "--disk", "gp3"]);
    command.args(["--duration", "8s", "--format", "json", "--report"]).arg(&page);
    let results = run(&mut command).results();
    let dom = dom(&page);
    let series = &results["series"];
    let samples = series["ends_seconds"].as_array().unwrap().len();
    assert!((20..=101).contains(&samples), "{samples}");
    // figure 3: pending requests; 4 and 5: bandwidth and delay; 6: delay of the others
    let pending = columns(&series["classes"], |class| numbers(&class["pending"]));
    shows(charts(&dom, "Pending requests")[0], &pending);
    let jobs = &series["jobs"];
    shows(
        charts(&dom, "Bandwidth")[0],
        &columns(jobs, |job| numbers(&job["bandwidth_bytes_per_second"])),
    );
    shows(charts(&dom, "Requests done")[0], &columns(jobs, |job| numbers(&job["iops"])));
    for (title, place, percentile) in [
        ("Time in the queue, median", "queue_us", "p50"),
        ("Time in the queue, 99th percentile", "queue_us", "p99"),
        ("Time in the disk, median", "disk_us", "p50"),
        ("Time in the disk, 99th percentile", "disk_us", "p99"),
    ] {
        let of = |job: &Value| {
            let known = numbers(&job[place][percentile]).into_iter().zip(numbers(&job["iops"]));
            known.filter(|(_, iops)| *iops > 0.0).map(|(value, _)| value).collect()
        };
        shows(charts(&dom, title)[0], &columns(jobs, of));
    }
    // the write load comes later, and the queries have less and wait longer alongside it
    let sum = |job: usize, seconds: std::ops::Range<f64>| {
        let ends = numbers(&series["ends_seconds"]);
        let rates = numbers(&jobs[job]["bandwidth_bytes_per_second"]);
        let within = ends.iter().zip(rates).filter(|(end, _)| seconds.contains(end));
        within.map(|(_, rate)| rate).sum::<f64>()
    };
    assert_eq!(sum(1, 0.0..5.0), 0.0, "the commit log begins at 5 s");
    assert!(sum(1, 6.0..9.0) > 0.0);
    assert!(sum(0, 6.0..9.0) < sum(0, 2.0..5.0), "{results}");
    // the results are on the page too
    let embedded = dom.split("id=\"results\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(embedded).unwrap(), results);
    for part in ["What was found", "the slowest requests", "Why requests waited", "Flow ratio"] {
        assert!(dom.contains(part), "{part}");
    }
}

/// The results of a short run, in a file.
fn saved(lab: &Lab, name: &str, arguments: &[&str]) -> PathBuf {
    let jobs = lab.file("jobs.yaml", MIXED);
    let page = lab.dir.path().join(format!("{name}.html"));
    let mut command = forebay(&["sim", "run", "--disk", "gp3", "--format", "json"]);
    let ended = run(command.args(TIMES).args(arguments).arg("--report").arg(&page).arg(&jobs));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    lab.file(&format!("{name}.json"), &ended.stdout)
}

#[test]
fn two_runs_are_shown_side_by_side_on_the_same_scales() {
    let lab = Lab::new();
    let (one, other) = (saved(&lab, "one", &[]), saved(&lab, "other", &["--policy", "none"]));
    let page = lab.dir.path().join("both.html");
    let mut command = forebay(&["report"]);
    command.arg(&one).arg("--compare").arg(&other).arg("--out").arg(&page);
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let dom = dom(&page);
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let row = charts(&dom, "Bandwidth");
    assert_eq!(row.len(), 2);
    // on one scale: the heights of both are one line over the values of both
    let all: Vec<(f64, f64)> = [one, other]
        .iter()
        .zip(&row)
        .flat_map(|(path, chart)| {
            let column = numbers(&read(path)["series"]["jobs"][1]["bandwidth_bytes_per_second"]);
            column.into_iter().zip(heights(chart, COLOURS[1]))
        })
        .collect();
    let most =
        all.iter().copied().fold((0.0, 0.0), |most, one| if one.0 > most.0 { one } else { most });
    let least =
        all.iter().copied().fold(most, |least, one| if one.0 < least.0 { one } else { least });
    for (value, height) in &all {
        let expected =
            least.1 + (value - least.0) * (most.1 - least.1) / (most.0 - least.0).max(1.0);
        assert!((height - expected).abs() <= 1.5, "{value} at {height}, not at {expected}");
    }
}

#[test]
fn of_two_files_neither_is_called_unscheduled_and_different_loads_are_said() {
    let lab = Lab::new();
    let one = saved(&lab, "one", &[]);
    let changed = fs::read_to_string(&one).unwrap().replace("\"reads\"", "\"scanner\"");
    let other = lab.file("other.json", &changed);
    let page = lab.dir.path().join("both.html");
    let mut command = forebay(&["report"]);
    command.arg(&one).arg("--compare").arg(&other).arg("--out").arg(&page);
    assert_eq!(run(&mut command).code, Some(0));
    let html = fs::read_to_string(&page).unwrap();
    let shown = html.split("id=\"results\">").next().unwrap();
    assert!(!shown.contains("unscheduled"), "{shown}");
    assert!(shown.contains("The loads differ") && shown.contains("scanner"), "{shown}");
}

#[test]
fn a_file_that_is_no_result_has_no_page() {
    let lab = Lab::new();
    let page = lab.dir.path().join("page.html");
    let report = |results: &Path| -> Ended {
        run(forebay(&["report"]).arg(results).arg("--out").arg(&page))
    };
    report(Path::new("/nowhere.json")).complains(2, &["/nowhere.json", "cannot be read"]);
    report(&lab.file("x.json", "{\"a\": 1}"))
        .complains(2, &["x.json", "no results", "--format json"]);
    assert!(!page.exists());
    let jobs = lab.file("jobs.yaml", MIXED);
    let mut command = forebay(&["sim", "run", "--disk", "gp3", "--report", "/nowhere/x.html"]);
    run(command.arg(jobs)).complains(2, &["/nowhere/x.html", "another place"]);
}

#[test]
fn a_run_on_a_disk_has_a_page_too() {
    let lab = Lab::new();
    let (jobs, properties) = (lab.file("jobs.yaml", MIXED), lab.properties());
    let page = lab.dir.path().join("page.html");
    let mut command = forebay(&["bench", "--format", "json", "--shards", "2", "--dir"]);
    command.arg(lab.dir.path()).args(TIMES).arg("--properties").arg(properties);
    let results = run(command.arg("--report").arg(&page).arg(jobs)).results();
    let series = &results["series"];
    let ends = numbers(&series["ends_seconds"]);
    assert!(ends.array_windows().all(|[one, next]| one < next), "{ends:?}");
    for job in 0..2 {
        let rates = numbers(&series["jobs"][job]["iops"]);
        assert_eq!(rates.len(), ends.len());
        let begins = std::iter::once(0.0).chain(ends.iter().copied());
        let lengths = ends.iter().zip(begins).map(|(end, begin)| end - begin);
        let done: f64 = rates.iter().zip(lengths).map(|(rate, length)| rate * length).sum();
        // the warm-up is in it too
        let measured = results["classes"][job]["requests"].as_f64().unwrap();
        assert!(done + 1.0 >= measured * 0.999, "{done} of {measured}");
    }
    assert!(dom(&page).contains("Pending requests"));
}

#[test]
fn picture_of_a_job_that_was_not_recorded_is_refused() {
    let lab = Lab::new();
    let jobs = lab.file("jobs.yaml", MIXED);
    let sim = |with: &[&str]| {
        let mut command = forebay(&["sim", "run", "--disk", "gp3", "--duration", "1s"]);
        run(command.args(["--format", "json"]).args(with).arg(&jobs)).stdout
    };
    let page = lab.dir.path().join("page.html").display().to_string();
    let (plain, recorded) = (sim(&[]), sim(&["--report", &page]));
    let of = |results: &str, job: &str| -> Ended {
        let results = lab.file("results.json", results);
        let mut command = forebay(&["report", "--latency-of", job, "--out", &page]);
        run(command.arg(results))
    };
    of(&plain, "reads").complains(2, &["no time series of latencies", "--report"]);
    of(&recorded, "queries").complains(2, &["`queries`", "reads, bulk"]);
    assert_eq!(of(&recorded, "reads").code, Some(0));
    assert!(fs::read_to_string(&page).unwrap().contains("pace+window"));
}
