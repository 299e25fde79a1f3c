//! What is said of disks, compared with what is recorded; `FOREBAY_BLESS=1` records it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use forebay::properties::Properties;
use forebay_core::{LATENCY_GOAL_DEFAULT, Op};

use super::budget::GoalReason;
use super::disk::DescribedDisk;
use super::queues::Threads;
use super::report::Report;
use super::{budget::Budget, costs, presets};

const THREADS: Threads = Threads { shards: 8, nodes: 1 };

fn recorded(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/info").join(name);
    if std::env::var_os("FOREBAY_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
}

fn preset(name: &str) -> DescribedDisk {
    presets::known(name, Path::new("/var/lib/store")).unwrap()
}

fn file(text: &str) -> Vec<DescribedDisk> {
    let properties = Properties::parse("file", text).unwrap();
    let known = |disk| DescribedDisk::from_file(disk, Path::new("io_properties.yaml")).unwrap();
    properties.disks.iter().map(known).collect()
}

fn text(disks: &[DescribedDisk]) -> String {
    Report::new(disks, THREADS, Duration::ZERO).text()
}

fn budget(disk: &DescribedDisk) -> Budget {
    Budget::of(disk, LATENCY_GOAL_DEFAULT)
}

#[test]
fn cloud_disks_with_published_figures() {
    for name in ["azure-p30", "gp2", "gp3", "i4i.2xlarge"] {
        recorded(&format!("{name}.txt"), &text(&[preset(name)]));
    }
}

#[test]
fn columns_stay_apart_where_figures_are_absurd() {
    let disks = file(
        "disks: [{mountpoint: /a, read_iops: 150000, write_iops: 90000, read_bandwidth: 1000, \
         write_bandwidth: 600}]",
    );
    let text = text(&disks);
    let rows =
        text.lines().filter(|line| line.starts_with("  512 ") || line.starts_with("  1 MiB"));
    for row in rows {
        assert_eq!(row.split_whitespace().count(), 8, "{row}");
    }
}

#[test]
fn a_disk_that_no_file_describes() {
    recorded("unmeasured.txt", &text(&[DescribedDisk::unmeasured()]));
}

#[test]
fn a_file_of_two_disks() {
    let disks = file(
        "disks:
  - mountpoint: /a
    read_iops: 413000
    read_bandwidth: 1500000000
    write_iops: 5000
    write_bandwidth: 500000000
    write_saturation_length: 1048576
  - mountpoints: [/b, /c]
    read_iops: 130
    read_bandwidth: 182000000
    write_iops: 130
    write_bandwidth: 182000000
    duplex: true
    max_cost_function: false
",
    );
    recorded("file.txt", &text(&disks));
}

#[test]
fn the_directions_of_a_duplex_disk_are_said_to_have_a_budget_each() {
    let of = |duplex: bool| {
        let disk = format!(
            "disks: [{{mountpoint: /a, read_iops: 1000, read_bandwidth: 100000000, write_iops: 1000, \
             write_bandwidth: 100000000, duplex: {duplex}}}]"
        );
        text(&file(&disk))
    };
    let (shared, apart) = (of(false), of(true));
    assert!(shared.contains("half of one leaves half") && !shared.contains("each as if"));
    assert!(apart.contains("each as if") && !apart.contains("half of one leaves half"), "{apart}");
}

#[test]
fn a_disk_is_json_for_programs() {
    let report = Report::new(&[preset("i4i.2xlarge")], THREADS, LATENCY_GOAL_DEFAULT);
    let json = crate::console::json(&report).unwrap();
    recorded("i4i.2xlarge.json", &json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["disks"][0]["queues"]["count"], 8);
}

#[test]
fn presets_are_properties_files_that_name_their_sources() {
    let disks = ["azure-p30", "gp2", "gp3", "i4i.2xlarge"].map(|name| (name, preset(name)));
    for (name, disk) in disks {
        let text = presets::properties_file(std::slice::from_ref(&disk)).unwrap();
        recorded(&format!("{name}.yaml"), &text);
        assert!(text.starts_with("# ") && text.contains(&disk.source));
        let read = Properties::parse(name, &text).unwrap();
        assert_eq!(read.disks[0], disk.figures.unwrap().properties);
    }
    assert!(presets::properties_file(&[DescribedDisk::unmeasured()]).is_err());
}

#[test]
fn derived_figures_are_said_to_be_and_from_what() {
    let said = text(&[preset("i3.16xlarge")]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("i3.16xlarge (derived: 8 times a disk of i3.2xlarge, measured: "));
    assert!(
        words.contains("2026-11-29; latency derived from diskplorer's surface of an i3.2xlarge)")
    );
    let list = presets::list().unwrap();
    let known = |name: &str| {
        let line = list.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap()
    };
    assert_eq!(known("Standard_L8s_v3 "), "measured");
    assert_eq!(known("azure-p40 "), "published");
    assert_eq!(known("i3en.24xlarge "), "derived");
}

#[test]
fn the_sum_is_what_seastar_charges() {
    let rows = costs::rows(&preset("i4i.2xlarge"), Op::Read);
    let sum = |bytes| {
        let row = rows.iter().find(|row| row.bytes == bytes).unwrap();
        row.sum.unwrap().us
    };
    // from its own tables for this machine
    for (bytes, us) in [(512, 4.903), (4096, 7.226), (65_536, 47.06), (131_072, 89.54)] {
        assert!((sum(bytes) / us - 1.0).abs() < 0.001, "{bytes}: {} is not {us}", sum(bytes));
    }
}

#[test]
fn the_goal_says_what_decides_it() {
    let fast = budget(&preset("i4i.2xlarge"));
    assert_eq!(fast.goal_reason, GoalReason::LatencyGoal);
    assert_eq!((fast.effective_goal_us, fast.window_us), (750.0, 750.0));
    assert!(fast.longest_wait_us <= 5.0 * fast.window_us + fast.effective_goal_us);
    assert_eq!(budget(&preset("gp3")).goal_reason, GoalReason::LargeRequest);
    let mut far = preset("i4i.2xlarge");
    far.base_latency = Some(Duration::from_millis(10));
    assert_eq!(budget(&far).goal_reason, GoalReason::BaseLatency);
}

#[test]
fn a_disk_is_busy_with_as_many_requests_as_its_measured_knee_says() {
    let said = text(&file(
        "disks: [{mountpoint: /a, read_iops: 95243, write_iops: 126465, read_bandwidth: 518M, \
         write_bandwidth: 518M, base_latency_us: 260, read_knee: 256.0, write_knee: 1.0}]",
    ));
    assert!(said.contains("knee             256 reads or 1 writes in flight"), "{said}");
    assert!(said.contains("the disk is busy with 256 requests of 4 KiB"), "{said}");
}

#[test]
fn a_ceiling_is_said_to_be_one() {
    let said = |line: &str| {
        let disks = file(&format!(
            "disks: [{{mountpoint: /a, read_iops: 150000, write_iops: 90000, read_bandwidth: 1G, \
             write_bandwidth: 600M, {line}}}]"
        ));
        text(&disks)
    };
    for ceiling in ["ceiling: true", "rate_factor: 0.5"] {
        assert!(said(ceiling).contains("ceiling          the disk never gets more than its rates"));
    }
    assert!(
        said("burst: true")
            .contains("ceiling          once trials show that the disk does no more")
    );
    let factor = said("rate_factor: 2");
    assert!(factor.contains("window           found by trials") && !factor.contains("ceiling  "));
}

#[test]
fn how_long_a_stream_keeps_the_head_is_said_where_the_disk_seeks() {
    let said = text(&[preset("hdd-7200rpm")]);
    let words = "runs             a stream keeps the head of the disk for at most 50.00 ms";
    let in_one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(words), "{said}");
    assert!(in_one_line.contains(", or a run if that is longer, and"), "{said}");
    assert!(!text(&[preset("i4i.2xlarge")]).contains("runs  "));
}

#[test]
fn the_latency_target_is_said_and_one_below_the_base_latency_is_refused() {
    let with = |target: &str| preset("i4i.2xlarge").with_target(Some(target.parse().unwrap()));
    let said = |target: &str| text(&[with(target).unwrap()]);
    for (target, where_measured) in
        [("p99.9=2ms", "from enqueueing to completion"), ("disk:p99.9=2ms", "in the disk")]
    {
        let words = said(target).split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = format!("latency target {target}, {where_measured}; while");
        assert!(words.contains(&expected), "{words}");
    }
    assert!(said("off").contains("latency target   none: the window"));
    let base_latency = Some(Duration::from_millis(1));
    let far = DescribedDisk { base_latency, ..preset("i4i.2xlarge") };
    assert!(far.clone().with_target(Some("p95=1ms".parse().unwrap())).is_err());
    assert!(far.with_target(Some("p95=1.1ms".parse().unwrap())).is_ok());
}
