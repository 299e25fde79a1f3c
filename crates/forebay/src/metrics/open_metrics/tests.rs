use forebay_core::{DiskRates, DiskTime, GroupCounters, LatencyTargetStatus, LoadStatus};

use super::*;
use crate::PageCacheCounters;
use crate::engine::Retries;
use crate::metrics::{
    DeviceTraffic, Discards, DiskSnapshot, MemberTraffic, PageCacheReads, Traffic,
};

#[test]
fn a_scrape_names_disks_classes_and_reasons() {
    let rates = DiskRates {
        read_iops: 8_000,
        write_iops: 6_000,
        read_bandwidth: 100_000_000,
        write_bandwidth: 90_000_000,
    };
    let mut class =
        ClassSnapshot { name: "bulk \"load\"".into(), shares: 20, ..Default::default() };
    class.counters.operations = [3, 4, 0, 0];
    class.counters.queue_nanos = 1_500_000_000;
    class.counters.queue_nanos_max = 750_000_000;
    let disk = DiskSnapshot {
        name: "/data".into(),
        rates: Some(rates),
        retries: Retries { reads: 5, writes: 6 },
        engines: Engines { threads: 2, ..Engines::default() },
        classes: vec![class],
        ..Default::default()
    };
    let snapshot = Snapshot {
        disks: vec![disk],
        unlisted_opens: 9,
        messages_lost: 3,
        bugs: 2,
        ..Default::default()
    };
    let text = open_metrics(snapshot);
    let labels = r#"{mountpoint="/data",class="bulk \"load\""}"#;
    for line in [
        format!("forebay_io_queue_total_operations_total{labels} 7"),
        format!("forebay_io_queue_total_delay_sec_total{labels} 1.5"),
        format!("forebay_io_queue_delay_max_seconds{labels} 0.75"),
        format!("forebay_io_queue_shares{labels} 20.0"),
        r#"forebay_io_queue_blocked_seconds_total{mountpoint="/data",reason="pace"} 0.0"#.into(),
        r#"forebay_io_queue_retries_total{mountpoint="/data",direction="write"} 6"#.into(),
        r#"forebay_io_queue_engines{mountpoint="/data",backend="threads"} 2"#.into(),
        r#"forebay_io_queue_write_iops{mountpoint="/data"} 6000.0"#.into(),
        "forebay_io_queue_unlisted_opens_total 9".into(),
        "forebay_io_queue_messages_lost_total 3".into(),
        "forebay_bugs_total 2".into(),
        "# EOF".into(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("effective_goal_seconds{"));
    assert!(!text.contains("window_seconds{") && !text.contains("base_latency_seconds{"));
}

#[test]
fn classes_that_have_asked_for_nothing_are_left_out() {
    let class = |name: &str| ClassSnapshot { name: name.into(), shares: 1, ..Default::default() };
    let (idle, mut waits, mut done) = (class("idle"), class("waits"), class("done"));
    waits.counters.queued = 1;
    done.counters.operations = [0, 0, 1, 0];
    let disk = DiskSnapshot { classes: vec![idle, waits, done], ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![disk], ..Default::default() });
    let named = |name: &str| text.contains(&format!(r#"class="{name}""#));
    assert_eq!(["idle", "waits", "done"].map(named), [false, true, true]);
}

#[test]
fn metrics_of_the_dashboard_exist() {
    let text = open_metrics(Snapshot::default());
    let described = |line: &str| {
        let (name, kind) = line.strip_prefix("# TYPE forebay_io_queue_")?.split_once(' ')?;
        Some(format!("{kind} {name}"))
    };
    let mut found: Vec<String> = text.lines().filter_map(described).collect();
    found.sort();
    assert!(text.contains("# TYPE forebay_bugs counter\n"));
    let counters = "absence_bypasses activations blocked_seconds bridged cancelled consumption errors late_turn_sec late_turn_seconds \
                    late_turns limited_seconds limited_time_sec messages_lost \
                    misaligned_read_ops misaligned_write_ops overdue \
                    past_window retries stall_overdue stalled_seconds stalls starvation_time_sec stop_overdue stopped_sec stopped_seconds stops target_measured target_over total_bytes total_delay_sec total_discard_bytes \
                    total_discard_ops total_exec_sec total_flush_ops total_operations \
                    total_read_bytes total_read_ops total_split_bytes total_split_ops \
                    total_write_bytes total_write_ops unlisted_opens waited_consumption waited_sec waited_seconds wake_ups window_bypasses";
    let gauges = "base_latency_seconds bytes_in_disk delay delay_max_seconds disk_queue_length \
                  effective_goal_seconds engines flow_ratio held_long held_long_seconds in_disk in_disk_seconds \
                  latency_target_attainable \
                  latency_target_holds latency_target_seconds queue_length queues read_bandwidth \
                  read_iops shares speed stall_max_seconds stop_max_seconds stuck_requests stuck_seconds turn_overdue_seconds window_corrected_seconds window_seconds write_bandwidth \
                  write_iops";
    let histograms = "disk_latency_seconds latency_seconds queue_latency_seconds";
    let named = [("counter", counters), ("gauge", gauges), ("histogram", histograms)];
    let expected = named.iter().flat_map(|(kind, names)| {
        names.split_whitespace().map(move |name| format!("{kind} {name}"))
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn goal_window_and_base_latency_of_a_disk_have_their_values() {
    let disk = DiskSnapshot {
        name: "/data".into(),
        effective_goal_nanos: Some(750_000),
        window_nanos: Some(1_500_000),
        base_latency_nanos: Some(250_000),
        ..Default::default()
    };
    let text = open_metrics(Snapshot { disks: vec![disk], ..Default::default() });
    for (name, value) in
        [("effective_goal", "0.00075"), ("window", "0.0015"), ("base_latency", "0.00025")]
    {
        let line = format!("forebay_io_queue_{name}_seconds{{mountpoint=\"/data\"}} {value}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn a_disk_that_is_slower_than_its_figures_shows_in_speed_and_target() {
    let status = LatencyTargetStatus {
        target: "p95=1500us".parse().unwrap(),
        holds: false,
        below_base: false,
        attainable: true,
        window: DiskTime::from_nanos(900_000),
    };
    let counters = GroupCounters {
        waited_nanos: 2_000_000_000,
        waited_consumption: DiskTime::from_nanos(1_160_000_000),
        measured: 1000,
        over_target: 70,
        stalls: 2,
        stalled_nanos: 6_500_000_000,
        stall_nanos_max: 6_000_000_000,
        stall_overdue: 600,
    };
    let load = LoadStatus { speed_permille: Some(580), target: Some(status), counters };
    let disk = DiskSnapshot { name: "/data".into(), load, ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![disk], ..Default::default() });
    for (name, value) in [
        ("speed", "0.58"),
        ("latency_target_seconds", "0.0015"),
        ("latency_target_holds", "0.0"),
        ("latency_target_attainable", "1.0"),
        ("window_corrected_seconds", "0.0009"),
        ("target_measured_total", "1000"),
        ("target_over_total", "70"),
        ("waited_sec_total", "2.0"),
        ("waited_consumption_total", "1.16"),
        ("stalls_total", "2"),
        ("stopped_sec_total", "6.5"),
        ("stalled_seconds_total", "6.5"),
        ("stall_max_seconds", "6.0"),
        ("stop_max_seconds", "6.0"),
        ("stall_overdue_total", "600"),
    ] {
        let line = format!("forebay_io_queue_{name}{{mountpoint=\"/data\"}} {value}\n");
        assert!(text.contains(&line), "{line} in {text}");
    }
    let nothing = DiskSnapshot { name: "/data".into(), ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![nothing], ..Default::default() });
    assert!(!text.contains("speed{") && !text.contains("latency_target_holds{"), "{text}");
}

#[test]
fn the_last_bucket_of_a_histogram_is_open() {
    let mut class = ClassSnapshot { name: "a".into(), ..Default::default() };
    class.counters.queued = 1;
    let disk = DiskSnapshot { classes: vec![class], ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![disk], ..Default::default() });
    assert!(text.contains(r#"le="+Inf""#));
    assert!(text.contains(r#"le="0.000016384""#));
}

#[test]
fn backlogs_are_exported_for_each_class_with_a_deleter() {
    let queries = Discards { class: "queries".into(), ..Discards::default() };
    let deletes = Discards {
        class: "deletes".into(),
        files: 3,
        bytes: 4096,
        backlog_bytes: 8192,
        oldest_nanos: 1_500_000_000,
        ..Discards::default()
    };
    let discards = vec![queries, deletes];
    let text = open_metrics(Snapshot { discards, ..Default::default() });
    for line in [
        r#"forebay_discards_files_total{class="deletes"} 3"#,
        r#"forebay_discards_bytes_total{class="deletes"} 4096"#,
        r#"forebay_discards_backlog_bytes{class="deletes"} 8192.0"#,
        r#"forebay_discards_oldest_seconds{class="deletes"} 1.5"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains(r#"class="queries""#), "{text}");
}

#[test]
fn page_cache_counters_are_exported_for_each_class_with_reads() {
    let counters = PageCacheCounters { hits: 7, misses: 2, read_ahead: 4096, left_to_kernel: 8192 };
    let reads = |class: &str, counters| PageCacheReads { class: class.into(), counters };
    let page_cache = vec![reads("queries", counters), reads("idle", Default::default())];
    let text = open_metrics(Snapshot { page_cache, ..Default::default() });
    for line in [
        r#"forebay_page_cache_hits_total{class="queries"} 7"#,
        r#"forebay_page_cache_misses_total{class="queries"} 2"#,
        r#"forebay_page_cache_read_ahead_bytes_total{class="queries"} 4096"#,
        r#"forebay_page_cache_left_to_kernel_bytes_total{class="queries"} 8192"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains(r#"class="idle""#), "{text}");
}

#[test]
fn unscheduled_io_is_reported_of_each_device_or_why_that_is_not_known() {
    let written = Traffic { done: 100, admitted: 39, unscheduled: 61, of_this_process: 58 };
    let members = vec![MemberTraffic { member: "sda".into(), in_flight_ms: 2_500 }];
    let traffic = DeviceTraffic {
        device: "nvme0n1".into(),
        written,
        unattributed: 5,
        members,
        ..Default::default()
    };
    let seen = DiskSnapshot { name: "/data".into(), traffic, ..Default::default() };
    let unknown_because = Some(String::from("its files are in memory"));
    let traffic = DeviceTraffic { unknown_because, ..Default::default() };
    let hidden = DiskSnapshot { name: "/memory".into(), traffic, ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![seen, hidden], ..Default::default() });
    let labels = r#"mountpoint="/data",device="nvme0n1",direction="write""#;
    for line in [
        format!("forebay_device_done_bytes_total{{{labels}}} 100"),
        format!("forebay_device_admitted_bytes_total{{{labels}}} 39"),
        format!("forebay_device_unscheduled_bytes_total{{{labels}}} 61"),
        format!("forebay_device_unscheduled_own_bytes_total{{{labels}}} 58"),
        r#"forebay_device_unattributed_bytes{mountpoint="/data",device="nvme0n1"} 5.0"#.into(),
        r#"forebay_device_undecided_bytes{mountpoint="/data",device="nvme0n1"} 5.0"#.into(),
        r#"forebay_device_member_in_flight_seconds_total{mountpoint="/data",device="nvme0n1",member="sda"} 2.5"#.into(),
        r#"forebay_device_unknown{mountpoint="/memory",reason="its files are in memory"} 1"#.into(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let of_devices = text.lines().filter(|line| line.starts_with("forebay_device"));
    assert_eq!(of_devices.filter(|line| line.contains("/memory")).count(), 1, "{text}");
}

#[test]
fn stuck_permits_are_reported_with_their_age() {
    let mut class = ClassSnapshot { name: "a".into(), ..Default::default() };
    class.counters.in_disk = 4;
    (class.stuck_requests, class.stuck_nanos) = (4, 12_500_000_000);
    let disk = DiskSnapshot { name: "d".into(), classes: vec![class], ..Default::default() };
    let text = open_metrics(Snapshot { disks: vec![disk], ..Default::default() });
    let labels = r#"{mountpoint="d",class="a"}"#;
    for line in [
        format!("forebay_io_queue_stuck_requests{labels} 4.0"),
        format!("forebay_io_queue_held_long{labels} 4.0"),
        format!("forebay_io_queue_stuck_seconds{labels} 12.5"),
        format!("forebay_io_queue_held_long_seconds{labels} 12.5"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
