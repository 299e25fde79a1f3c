//! Results for programs, for people, and in words.

use std::collections::BTreeMap;

use forebay_config::Source;
use forebay_core::Time;
use forebay_load::job_file::JobFile;
use forebay_load::recorder::{Completion, MeasuredInterval, Recorder};
use forebay_load::results::model::{
    ClassResult, Comparison, DiskResult, LatencyParts, LatencyResult, LatencyTargetResult,
    Properties, PropertiesSource, Report, RunResult, StallsResult, VERSION,
};
use forebay_load::results::summary::{ShardRecords, by_shard, over_all_shards};
use forebay_load::results::table::{comparison_table, run_table};
use forebay_load::results::text;
use forebay_load::results::verdict::{VerdictKind, verdict};

/// A job with this bandwidth in MB/s and these latencies in us.
fn class(name: &str, shares: u32, bandwidth_mb: u64, p99: f64, queue_p99: f64) -> ClassResult {
    let latency = |p99: f64| LatencyResult {
        mean: p99 / 4.0,
        p50: p99 / 5.0,
        p95: p99 / 2.0,
        p99,
        p999: p99 * 2.0,
        max: p99 * 3.0,
    };
    ClassResult {
        name: name.to_owned(),
        class: name.to_owned(),
        shares,
        requests: 20_000,
        errors: 0,
        unfinished: 4,
        iops: 2000.0,
        bandwidth_bytes_per_second: bandwidth_mb * 1_000_000,
        latency_us: latency(p99),
        service_us: latency(p99),
        queue_us: latency(queue_p99),
        disk_us: latency(p99 - queue_p99),
        flushes: None,
        p99_parts_us: Some(LatencyParts { backlog: 0.0, queue: queue_p99, disk: p99 - queue_p99 }),
        load: String::new(),
        intervals: Vec::new(),
    }
}

fn run(scheduler: &str, classes: Vec<ClassResult>) -> RunResult {
    let none = PropertiesSource::None;
    RunResult {
        version: VERSION,
        duration_seconds: 10.0,
        backend: String::from("simulated"),
        topology: String::from("per-thread"),
        io_queues: 2,
        policy: String::from("pace-window"),
        order: String::from("start-time"),
        properties: Properties {
            source: none,
            read_iops: None,
            read_bandwidth: None,
            write_iops: None,
            write_bandwidth: None,
            region: None,
            warnings: Vec::new(),
        },
        scheduler: scheduler.to_owned(),
        seed: 1,
        classes,
        shards: Vec::new(),
        disk: None,
        cpu_seconds: None,
        processor_wait: None,
        series: None,
    }
}

fn comparison(before: Vec<ClassResult>, after: Vec<ClassResult>) -> Comparison {
    Comparison { version: VERSION, runs: [run("none", before), run("pace-window", after)] }
}

fn contended() -> Comparison {
    comparison(
        vec![class("reads", 1000, 8, 5200.0, 0.0), class("bulk", 100, 3010, 9800.0, 0.0)],
        vec![class("reads", 1000, 8, 410.0, 120.0), class("bulk", 100, 2500, 15_200.0, 14_300.0)],
    )
}

#[test]
fn records_become_results() {
    let text = "
- {name: reads, type: randread, shards: all, shard_info: {parallelism: 1, shares: 70}}
- {name: more, type: randread, shards: [1], shard_info: {parallelism: 1, class: reads}}
";
    let file = JobFile::parse(&Source::new("a.yaml", text), None, 2).unwrap();
    let us = |us: u64| Time::from_nanos(us * 1000);
    let measured = MeasuredInterval { from: us(0), to: us(2_000_000) };
    let recorder = |latency_us: u64| {
        let mut recorder = Recorder::new(measured).unwrap();
        let (intended, enqueued, completed) = (us(10), us(20), us(10 + latency_us));
        for _ in 0..3 {
            let (dispatched, bytes, ok, flush) = (us(25), 1000, true, false);
            let done = Completion { intended, enqueued, dispatched, completed, bytes, ok, flush };
            recorder.record(&done);
        }
        recorder
    };
    let records = [
        ShardRecords { shard: 0, jobs: vec![(0, recorder(100))] },
        ShardRecords { shard: 1, jobs: vec![(0, recorder(300)), (1, recorder(50))] },
    ];
    let all = over_all_shards(&file, &records);
    let names: Vec<_> = all.iter().map(|c| (c.name.as_str(), c.class.as_str(), c.shares)).collect();
    assert_eq!(names, [("reads", "reads", 70), ("more", "reads", 70)]);
    assert_eq!((all[0].requests, all[0].iops), (6, 3.0));
    assert_eq!(all[0].bandwidth_bytes_per_second, 3000);
    assert_eq!((all[0].latency_us.mean, all[0].latency_us.max), (200.0, 300.0));
    assert_eq!(
        (all[0].service_us.max, all[0].queue_us.max, all[0].disk_us.max),
        (290.0, 5.0, 285.0)
    );
    let shards = by_shard(&file, &records);
    let counts: Vec<_> = shards.iter().map(|s| (s.shard, s.classes.len())).collect();
    assert_eq!(counts, [(0, 1), (1, 2)]);
    assert_eq!(shards[0].classes[0].latency_us.max, 100.0);
}

/// The names of the fields are the interface: this file may only grow.
#[test]
fn the_format_stays() {
    let mut result = run("none", vec![class("reads", 1000, 8, 5200.0, 0.0)]);
    result.properties.source = PropertiesSource::Simulated;
    result.properties.read_iops = Some(100_000);
    result.disk = Some(DiskResult {
        consumption_mean: 0.97,
        consumption_max: 1.02,
        flow_ratio: 1.0,
        in_flight_max: 33,
        dispatch_blocked: BTreeMap::from([(String::from("window"), 1.25)]),
        wake_ups: Some(12_345),
        ..DiskResult::default()
    });
    let report = Report::Run(Box::new(result));
    let json = serde_json::to_string_pretty(&report).unwrap() + "\n";
    assert_eq!(json, include_str!("../golden/run.json"));
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);

    let report = Report::Comparison(Box::new(contended()));
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.starts_with(r#"{"version":1,"runs":[{"version":1,"#));
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

#[test]
fn tables_are_as_people_read_them() {
    let comparison = contended();
    let mut single = comparison.runs[1].clone();
    single.classes[1].errors = 3;
    single.classes[1].unfinished = 812;
    single.classes.push(ClassResult { iops: 12.25, requests: 0, ..class("idle", 50, 0, 0.0, 0.0) });
    let text = run_table(&single);
    assert_eq!(text, include_str!("../golden/run.txt"));
    assert!(text.lines().all(|line| line.len() <= 110));
    let text = comparison_table(&comparison);
    assert_eq!(text, include_str!("../golden/comparison.txt"));
    assert!(text.lines().all(|line| line.len() <= 110));
}

/// What is printed of a run whose disk did so much of its figures, where it had a target.
fn said_of_speed(speed: f64, has_target: bool, below_base: bool) -> String {
    let mut result = run("pace+window", vec![class("reads", 1000, 8, 5200.0, 0.0)]);
    result.disk = Some(DiskResult {
        consumption_mean: 0.5,
        consumption_max: 0.5,
        flow_ratio: 1.0,
        in_flight_max: 33,
        dispatch_blocked: BTreeMap::new(),
        members: None,
        wake_ups: None,
        speed: Some(speed),
        waited_seconds: Some(1.0),
        stalls: None,
        latency_target: has_target.then(|| LatencyTargetResult {
            target: String::from("p95=1ms"),
            latency_us: 1000.0,
            below_base,
            measured: 1000,
            over: 10,
            holds: Some(true),
            attainable: true,
            window_us: 900.0,
        }),
    });
    text(&Report::Run(Box::new(result)))
}

#[test]
fn a_cost_of_a_latency_target_gives_no_advice_to_explore() {
    let plain = said_of_speed(0.42, false, false);
    assert!(plain.contains("does 42 % of its figures"), "{plain}");
    assert!(
        plain.contains("run `forebay tune DIR`") && plain.contains("forebay explore DIR"),
        "{plain}"
    );
    let held = said_of_speed(0.42, true, false);
    assert!(held.contains("p95=1ms costs 58 %"), "{held}");
    assert!(held.contains("`--latency-target off`") && !held.contains("explore"), "{held}");
    let healthy = said_of_speed(0.95, true, false);
    assert!(!healthy.contains("costs") && !healthy.contains("explore"), "{healthy}");
    assert!(held.contains("holds: 99.0 of 100"), "{held}");
    let below = said_of_speed(0.95, true, true);
    assert!(below.contains("cannot be kept, as it is below"), "{below}");
    for text in [plain, held, healthy, below] {
        assert!(text.lines().all(|line| line.len() <= 110), "{text}");
    }
}

#[test]
fn a_gain_is_named_with_its_price() {
    let verdict = verdict(&contended());
    assert_eq!(verdict.kind, VerdictKind::Gain(String::from("reads")));
    assert_eq!(
        verdict.to_string(),
        "reads gained most: p99 5.20ms -> 410us (-92%).\n\
         Total bandwidth: 3018 -> 2508 MB/s (-17%).\n\
         bulk lost most: p99 9.80ms -> 15.2ms (+55%).\n\
         bulk: 3010 -> 2500 MB/s (-17%).\n",
    );
}

#[test]
fn a_small_gain_is_doubted() {
    let verdict = verdict(&comparison(
        vec![class("a", 1, 10, 100.0, 0.0)],
        vec![class("a", 1, 10, 70.0, 0.0)],
    ));
    assert_eq!(
        verdict.to_string(),
        "a gained most: p99 100us -> 70.0us (-30%). So small a gain can be chance: repeat\n\
         the run.\nTotal bandwidth: 10.0 -> 10.0 MB/s (0%).\n",
    );
}

#[test]
fn a_disk_with_room_needs_no_scheduling() {
    let before = vec![class("a", 1, 100, 100.0, 0.0), class("b", 1, 100, 100.0, 0.0)];
    let after = vec![class("a", 1, 98, 115.0, 9.0), class("b", 1, 102, 90.0, 9.0)];
    let verdict = verdict(&comparison(before, after));
    assert_eq!(verdict.kind, VerdictKind::NoContention);
    assert_eq!(verdict.sentences.len(), 1);
    assert!(verdict.to_string().lines().all(|line| line.len() <= 80), "{verdict}");
}

#[test]
fn a_disk_that_does_less_than_is_asked_does_not_need_no_scheduling() {
    let overloaded = || {
        let parts = LatencyParts { backlog: 8e6, queue: 1.0, disk: 20_000.0 };
        let a = class("a", 1, 100, 8e6, 0.0);
        vec![
            ClassResult { unfinished: a.requests / 2, p99_parts_us: Some(parts), ..a },
            class("b", 1, 100, 100.0, 0.0),
        ]
    };
    let runs = comparison(overloaded(), overloaded());
    let verdict = verdict(&runs);
    assert_eq!(verdict.kind, VerdictKind::Overload);
    assert!(verdict.to_string().contains("a requested more than it got"), "{verdict}");
    let said = text(&Report::Comparison(Box::new(runs)));
    assert!(!said.contains("needs no scheduling") && said.contains("a lower rate"), "{said}");
}

#[test]
fn scheduling_that_costs_and_gains_nothing_is_called_so() {
    let before = || vec![class("a", 1, 100, 100.0, 0.0)];
    let slower = verdict(&comparison(before(), vec![class("a", 1, 100, 130.0, 0.0)]));
    assert_eq!(slower.kind, VerdictKind::Loss);
    assert!(slower.to_string().contains("a lost most: p99 100us -> 130us (+30%)."));
    let less = verdict(&comparison(before(), vec![class("a", 1, 90, 100.0, 0.0)]));
    assert_eq!(less.kind, VerdictKind::Loss);
    assert!(less.to_string().contains("a: 100 -> 90.0 MB/s (-10%)."));
}

#[test]
fn bandwidth_that_moves_is_told() {
    let before = vec![class("a", 10, 100, 100.0, 0.0), class("b", 1, 100, 100.0, 0.0)];
    let after = vec![class("a", 10, 150, 100.0, 0.0), class("b", 1, 50, 100.0, 0.0)];
    let verdict = verdict(&comparison(before, after));
    assert_eq!(verdict.kind, VerdictKind::Redistribution);
    assert!(
        verdict.to_string().ends_with("a: 100 -> 150 MB/s (+50%).\nb: 100 -> 50.0 MB/s (-50%).\n")
    );
}

/// Jobs with this many requests in both runs, whose bulk writes got slower by a tenth.
fn with_reads(requests: [u64; 2], p99: [f64; 2]) -> Comparison {
    let [before, after] = [0, 1].map(|at| {
        let reads = ClassResult { requests: requests[at], ..class("reads", 1000, 1, p99[at], 0.0) };
        vec![reads, class("bulk", 100, 300, [28_100.0, 29_600.0][at], 0.0)]
    });
    comparison(before, after)
}

#[test]
fn a_gain_of_few_requests_is_seen_by_a_lower_percentile() {
    for (requests, percentile) in [
        ([500, 500], "p99 79.7ms -> 894us"),
        ([414, 416], "p95 39.9ms -> 447us"),
        ([100, 5000], "p95 39.9ms -> 447us"),
        ([99, 99], "p50 15.9ms -> 179us"),
        ([5000, 10], "p50 15.9ms -> 179us"),
    ] {
        let verdict = verdict(&with_reads(requests, [79_700.0, 894.0]));
        assert_eq!(verdict.kind, VerdictKind::Gain(String::from("reads")));
        let first = &verdict.sentences[0];
        assert_eq!(first, &format!("reads gained most: {percentile} (-99%)."));
        assert!(!verdict.to_string().contains("Not judged"), "{verdict}");
    }
}

#[test]
fn a_job_that_was_not_judged_is_named_and_no_verdict_is_given_for_it() {
    let verdict = verdict(&with_reads([9, 7], [79_700.0, 894.0]));
    assert_eq!(verdict.kind, VerdictKind::TooShort);
    assert_eq!(
        verdict.to_string(),
        "No verdict: no p99 changed by more than 20 %, no bandwidth by more than 5 %, but\n\
         not all jobs could be judged.\n\
         Not judged, for too few requests: reads (9 without the scheduler, 7 with it);\n\
         run for longer.\n",
    );
}

#[test]
fn a_load_of_which_many_requests_failed_is_not_judged() {
    let with_errors = |errors: [u64; 2]| {
        let mut runs = with_reads([1000, 1000], [79_700.0, 894.0]);
        runs.runs.iter_mut().zip(errors).for_each(|(run, errors)| run.classes[0].errors = errors);
        verdict(&runs)
    };
    let gain = VerdictKind::Gain(String::from("reads"));
    assert_eq!(with_errors([0, 0]).kind, gain);
    assert_eq!(with_errors([50, 50]).kind, gain);
    for errors in [[60, 0], [0, 60], [u64::MAX, 0]] {
        assert_eq!(with_errors(errors).kind, VerdictKind::Failures, "{errors:?}");
    }
    assert_eq!(
        with_errors([1500, 60]).to_string(),
        "No verdict: requests failed, and figures are of the others only: reads (1500 of\n\
         2500 without the scheduler, 60 of 1060 with it).\n",
    );
}

#[test]
fn a_job_that_wanted_nothing_hinders_no_verdict() {
    let mut runs = with_reads([0, 0], [0.0, 0.0]);
    for run in &mut runs.runs {
        run.classes[0].unfinished = 0;
        run.classes[0].bandwidth_bytes_per_second = 0;
    }
    assert_eq!(verdict(&runs).kind, VerdictKind::NoContention);
}

#[test]
fn too_few_requests_of_any_job_are_no_verdict() {
    let few = |p99| vec![ClassResult { requests: 9, ..class("a", 1, 100, p99, 0.0) }];
    let verdict = verdict(&comparison(few(100.0), few(10.0)));
    assert_eq!(verdict.kind, VerdictKind::TooShort);
    assert!(verdict.sentences[0].starts_with("No verdict"), "{verdict}");
    assert!(verdict.sentences[1].contains("a (9 without the scheduler, 9 with it)"), "{verdict}");
}

/// A class that got its first requests through the scheduler was starved without it.
#[test]
fn a_starved_job_is_reported() {
    let mut runs = with_reads([0, 5000], [0.0, 894.0]);
    runs.runs[0].classes[0].bandwidth_bytes_per_second = 0;
    let verdict = verdict(&runs);
    assert_eq!(verdict.kind, VerdictKind::Redistribution);
    let text = verdict.to_string();
    assert!(text.contains("reads: 0 -> 1.00 MB/s") && text.contains("Not judged"), "{text}");
}

/// One request more or less at the end of a short run moves no bandwidth.
#[test]
fn a_request_more_or_less_is_no_bandwidth_that_moved() {
    let mut runs = with_reads([20, 19], [1000.0, 1000.0]);
    runs.runs[0].classes[0].bandwidth_bytes_per_second = 2_000_000;
    runs.runs[1].classes[0].bandwidth_bytes_per_second = 1_200_000;
    runs.runs[1].classes[0].requests = 12;
    assert_eq!(verdict(&runs).kind, VerdictKind::NoContention);
}

#[test]
fn a_busy_machine_is_named_before_the_figures_and_a_quiet_one_is_not() {
    let of = |before: Option<f64>, after: Option<f64>| {
        let mut compared = comparison(vec![], vec![]);
        compared.runs[0].processor_wait = before;
        compared.runs[1].processor_wait = after;
        text(&Report::Comparison(Box::new(compared)))
    };
    for (before, after, part) in [(0.3, 0.02, "30 %"), (0.02, 0.61, "61 %")] {
        let said = of(Some(before), Some(after));
        let (above, _) = said.split_once("\n\n").unwrap();
        let words = format!("{part} of the time the load's threads waited for a");
        assert!(above.contains(&words) && above.contains("fewer --shards"), "{said}");
        assert!(above.lines().all(|line| line.chars().count() <= 80), "{said}");
    }
    for (before, after) in [(Some(0.19), Some(0.0)), (None, None)] {
        assert!(!of(before, after).contains("processor"));
    }
}

#[test]
fn a_disk_that_stood_still_is_not_said_to_have_wrong_figures() {
    let mut result = run("pace+window", vec![class("reads", 1000, 8, 5200.0, 0.0)]);
    let stalls = StallsResult { count: 1, seconds: 6.0, longest_seconds: 6.0, overdue: 591 };
    result.disk = Some(DiskResult {
        consumption_mean: 0.7,
        consumption_max: 1.0,
        flow_ratio: 1.0,
        in_flight_max: 33,
        speed: Some(0.7),
        waited_seconds: Some(20.0),
        stalls: Some(stalls),
        ..DiskResult::default()
    });
    let said = text(&Report::Run(Box::new(result)));
    assert!(said.contains("1 stall, 6.0 s;\n591 requests were overdue"), "{said}");
    assert!(said.contains("does 70 %") && said.contains("it did 100 %"), "{said}");
    assert!(!said.contains("forebay tune"), "{said}");
}
