//! The page of the published experiments, with the datastore examples over time.

use std::fs;
use std::ops::Range;

use serde_json::Value;

use crate::loop_mount::Lab;
use crate::process::{Ended, run};
use crate::report::{charts, dom, forebay, numbers, shows};

/// What the page has under this id for programs.
fn embedded(dom: &str, id: &str) -> Value {
    let text = dom.split(&format!("id=\"{id}\">")).nth(1).unwrap();
    serde_json::from_str(text.split("</script>").next().unwrap()).unwrap()
}

/// What of jobs is drawn, in results, and whether it adds up.
#[derive(Clone, Copy)]
enum Column {
    Bandwidth,
    QueueP99,
    QueueMedian,
    DiskMedian,
}

/// A line of a chart as the results have it; of latencies without the samples in which nothing was
/// done.
fn line(results: &Value, jobs: &[&str], column: Column, within: &Range<f64>) -> Vec<f64> {
    let series = &results["series"];
    let ends = numbers(&series["ends_seconds"]);
    let mut sum = vec![0.0; ends.len()];
    for job in series["jobs"].as_array().unwrap() {
        if !jobs.contains(&job["name"].as_str().unwrap()) {
            continue;
        }
        let values = numbers(match column {
            Column::Bandwidth => &job["bandwidth_bytes_per_second"],
            Column::QueueP99 => &job["queue_us"]["p99"],
            Column::QueueMedian => &job["queue_us"]["p50"],
            Column::DiskMedian => &job["disk_us"]["p50"],
        });
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum = if matches!(column, Column::Bandwidth) { *sum + value } else { sum.max(value) };
        }
    }
    let drawn = ends.iter().zip(sum).filter(|(end, _)| within.contains(end));
    let drawn = drawn.map(|(_, value)| value);
    drawn.filter(|value| matches!(column, Column::Bandwidth) || *value > 0.0).collect()
}

/// The page of one experiment and of the datastore examples.
fn page_of_shares(lab: &Lab) -> String {
    let [page, out] = ["page.html", "out"].map(|name| lab.dir.path().join(name));
    let mut command = forebay(&["reproduce", "2016-shares", "--out"]);
    let ended = run(command.arg(&out).arg("--report").arg(&page));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    dom(&page)
}

const ONCE: [&str; 3] =
    ["figure 3: requests served", "figure 3: pending requests", "figure 4: new request"];

/// What two lines of a chart are of: jobs, and a column of their results.
type Lines<'a> = [(&'a [&'a str], Column); 2];

/// The charts of each title show these lines, one chart for each of `runs`.
fn are_drawn(dom: &str, figures: &[(&str, Lines<'_>, &Range<f64>)], runs: &[&Value]) {
    for (title, lines, seconds) in figures {
        let found = charts(dom, title);
        assert_eq!(found.len(), runs.len(), "{title}");
        for (chart, results) in found.iter().zip(runs) {
            let column = |(jobs, column): &(&[&str], _)| line(results, jobs, *column, seconds);
            shows(chart, &lines.iter().map(column).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_charts_of_2016_and_2022_are_on_the_page_and_show_what_its_results_say() {
    let lab = Lab::new();
    let dom = page_of_shares(&lab);
    for title in ONCE {
        assert_eq!(charts(&dom, &format!("2016, {title}")).len(), 1, "{title}");
    }
    let queries = ["query", "query-half", "query-three-quarters"];
    let compaction = ["compaction", "compaction-write"];
    let ingested = ["commitlog", "memtable", "compaction-write"];
    let (all, first, later) = (0.0..f64::INFINITY, 0.0..5.0, 6.0..f64::INFINITY);
    // title, lines, seconds
    let of_2016: [(&str, Lines<'_>, _); 3] = [
        (
            "2016, figure 5: new request delay",
            [(&["query"], Column::QueueP99), (&["commitlog"], Column::QueueP99)],
            &all,
        ),
        (
            "2016, figure 5: bandwidth",
            [(&["query"], Column::Bandwidth), (&["commitlog"], Column::Bandwidth)],
            &all,
        ),
        (
            "2016, figure 6: new request delay",
            [(&["memtable"], Column::QueueP99), (&compaction, Column::QueueP99)],
            &all,
        ),
    ];
    let of_2022: [(&str, Lines<'_>, _); 4] = [
        (
            "2022: throughput of ingestion",
            [(&ingested, Column::Bandwidth), (&["compaction"], Column::Bandwidth)],
            &first,
        ),
        (
            "2022: throughput of queries",
            [(&queries, Column::Bandwidth), (&compaction, Column::Bandwidth)],
            &later,
        ),
        (
            "2022: latency of ingestion",
            [(&["memtable"], Column::DiskMedian), (&["memtable"], Column::QueueMedian)],
            &first,
        ),
        (
            "2022: latency of queries",
            [(&queries, Column::DiskMedian), (&queries, Column::QueueMedian)],
            &later,
        ),
    ];
    let (little, ours) = (embedded(&dom, "datastore-2022-1"), embedded(&dom, "datastore-2022-2"));
    let write_load = embedded(&dom, "datastore-2016-1");
    are_drawn(&dom, &of_2016, &[&write_load]);
    are_drawn(&dom, &of_2022, &[&little, &ours]);
    // the commit log waits for some milliseconds at most, whatever the queries do
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let wait = |job: &str| mean(line(&write_load, &[job], Column::QueueP99, &(6.0..f64::INFINITY)));
    assert!(wait("commitlog") < 5_000.0 && wait("query") > 10_000.0);
    // the article: in the disk 1.45 ms before, 0.44 ms then
    let in_disk = |results| mean(line(results, &["memtable"], Column::DiskMedian, &first));
    assert!(in_disk(&ours) < 0.6 * in_disk(&little));
}

#[test]
fn the_values_of_each_experiments_charts_are_on_the_page() {
    let lab = Lab::new();
    let [page, out] = ["out/page.html", "out"].map(|name| lab.dir.path().join(name));
    let mut command = forebay(&["reproduce", "2016-shares", "S0-19", "--out"]);
    assert_eq!(run(command.arg(&out).arg("--report").arg(&page)).code, Some(0));
    let dom = dom(&page);
    assert!(dom.contains("Made by forebay reproduce 2016-shares S0-19 --report"), "{dom}");
    for experiment in ["2016-shares", "2016-bursts"] {
        let all = embedded(&dom, &format!("{experiment}-charts"));
        for chart in all.as_array().unwrap() {
            let title = chart["title"].as_str().unwrap();
            assert_eq!(charts(&dom, title).len(), 1, "{title}");
            assert!(!chart["series"][0]["points"].as_array().unwrap().is_empty(), "{title}");
        }
    }
}

/// `reproduce` with these arguments.
fn reproduced(lab: &Lab, arguments: &[&str]) -> Ended {
    let mut command = forebay(&["reproduce"]);
    run(command.args(arguments).arg("--out").arg(lab.dir.path().join("out")))
}

#[test]
fn met_figures_come_first_and_missed_figures_are_named() {
    let lab = Lab::new();
    let text = reproduced(&lab, &["2018-littles-law", "design-window"]).stdout;
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("1 of 2 predicted figures are met"), "{text}");
    let one = lines.next().unwrap();
    assert!(one.contains("2018-littles-law (S1-3): 1 of 2 predictions met, 3 null"), "{text}");
    let near = "within a factor of 2: 128 KiB reads in the disk (4.00, published 3.00";
    assert!(one.contains(near), "{text}");
    assert!(lines.next().unwrap().contains("no figures were published"), "{text}");
}

#[test]
fn the_summary_of_one_experiment_says_nothing_of_none() {
    let lab = Lab::new();
    let first = |name| {
        let text = reproduced(&lab, &[name]).stdout;
        text.lines().next().unwrap().to_owned()
    };
    let none = "Of 1 experiment no figures were published.";
    assert_eq!(first("design-window"), none);
    let some = first("2018-littles-law");
    assert!(some.ends_with("and 3 a null model meets too: they do not count."), "{some}");
}

#[test]
fn programs_are_told_each_figure_and_whether_it_was_put_in() {
    let lab = Lab::new();
    let both = reproduced(&lab, &["2025-chunk-border", "S1-5", "--seed", "2", "--json"]).results();
    assert_eq!((&both["version"], &both["seed"]), (&1.into(), &2.into()));
    let border = &both["experiments"][0];
    assert_eq!(
        (&border["name"], &border["number"]),
        (&"2025-chunk-border".into(), &"S3-21".into())
    );
    let figure = |experiment: usize, name: &str| {
        let all = both["experiments"][experiment]["figures"].as_array().unwrap();
        all.iter().find(|figure| figure["name"] == name).unwrap().clone()
    };
    let idle = figure(0, "not split");
    assert_eq!(idle["published"], serde_json::json!({"from": 52.0, "to": 52.0}));
    assert_eq!((&idle["unit"], &idle["input"]), (&"us".into(), &true.into()));
    let parts = figure(0, "completions of parts");
    assert_eq!((&parts["input"], &parts["met"]), (&false.into(), &false.into()));
    assert_eq!((&parts["state"], &parts["near"]), (&"predicted".into(), &true.into()));
    assert_eq!(parts["null_models"], serde_json::json!([{"name": "none is split", "value": 0.0}]));
    assert_eq!(figure(0, "before it")["state"], "null");
    let knee = figure(1, "knee of 128 KiB");
    assert_eq!(knee["published"], serde_json::json!({"from": null, "to": 20.0}));
    assert_eq!((&knee["met"], &knee["seed"]), (&true.into(), &2.into()));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let lab = Lab::new();
    let with = |threads| {
        let names = ["2018-littles-law", "2024-bursts", "2025-chunk-border", "2018-knee"];
        let ended = reproduced(&lab, &[&names[..], &["--threads", threads]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let one = with("1");
    assert!(one.contains("2018-littles-law (S1-3)"), "{one}");
    assert_eq!([with("2"), with("7")], [one.clone(), one]);
}

#[test]
fn an_array_is_as_the_options_say() {
    let lab = Lab::new();
    let options = ["--shards", "12", "--fibers", "4", "--chunk", "128kB", "--members", "3"];
    let text = reproduced(&lab, &[&["S3-15"], &options[..]].concat()).stdout;
    assert!(text.contains("RAID0 of 3, chunk 128 kB"), "{text}");
    assert!(text.contains("4 fibers per shard") && text.contains("12 shards"), "{text}");
    let page = fs::read_to_string(lab.dir.path().join("out/index.html")).unwrap();
    let command = "reproduce S3-15 --shards 12 --fibers 4 --chunk 131072 --members 3";
    assert!(page.contains(command), "{page}");
}

#[test]
fn options_of_an_array_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        reproduced(&lab, arguments).complains(2, words);
    };
    refused(&["S3-15", "--members", "1"], &["--members", "from 2 to 64"]);
    refused(&["S3-15", "--shards", "0"], &["--shards", "from 1 to"]);
    refused(&["S3-15", "--chunk", "1000"], &["--chunk", "multiple of 4kB"]);
    let names = "2025-parallelism and 2025-raid0-placement";
    refused(&["S3-12", "S0-12", "--fibers", "4"], &["2016-shares has no --fibers", names]);
    refused(&["--chunk", "1MB"], &["has no --chunk", names]);
}

#[test]
fn a_page_that_cannot_be_written_is_said_before_anything_is_run() {
    let lab = Lab::new();
    let mut command =
        forebay(&["reproduce", "2016-shares", "--report", "/nowhere/x.html", "--out"]);
    let ended = run(command.arg(lab.dir.path().join("out")));
    ended.complains(2, &["/nowhere/x.html", "another place"]);
    assert!(ended.stdout.is_empty(), "{}", ended.stdout);
}
