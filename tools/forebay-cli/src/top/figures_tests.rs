//! Two scrapes, and what is made of them.

use proptest::prelude::*;

use super::super::open_metrics::parse;
use super::*;

/// A disk that did this many operations in this many seconds of its time, of the class `c`.
fn scrape(operations: u32, waited: f64) -> Scrape {
    let of = "{mountpoint=\"d\",class=\"c\"}";
    let le = |le: &str, count: u32| {
        format!(
            "forebay_io_queue_disk_latency_seconds_bucket{{le=\"{le}\",mountpoint=\"d\",\
             class=\"c\"}} {count}\n"
        )
    };
    let text = format!(
        "forebay_bugs_total 0\n\
         forebay_io_queue_total_operations_total{of} {operations}\n\
         forebay_io_queue_total_bytes_total{of} {bytes}\n\
         forebay_io_queue_consumption_total{of} {waited}\n\
         forebay_io_queue_total_delay_sec_total{of} {operations}\n\
         forebay_io_queue_shares{of} 100\n\
         forebay_io_queue_queue_length{of} 3\n\
         forebay_io_queue_delay_max_seconds{of} 0.75\n\
         {small}{large}{infinite}\
         forebay_io_queue_read_iops{{mountpoint=\"d\"}} 1000\n\
         forebay_io_queue_waited_sec_total{{mountpoint=\"d\"}} {waited}\n\
         forebay_io_queue_waited_consumption_total{{mountpoint=\"d\"}} {served}\n\
         forebay_io_queue_blocked_seconds_total{{mountpoint=\"d\",reason=\"window\"}} {waited}\n\
         # EOF\n",
        bytes = operations * 4096,
        served = waited * 0.8,
        small = le("0.001", operations / 2),
        large = le("0.002", operations),
        infinite = le("+Inf", operations),
    );
    parse(&text).unwrap()
}

#[test]
fn rates_shares_and_percentiles_are_of_the_span() {
    let interval = between(&scrape(1000, 1.0), &scrape(1200, 2.0), 2.0);
    assert!(!interval.restarted);
    let disk = &interval.disks[0];
    assert_eq!((disk.figures.consumption, disk.figures.speed), (Some(0.5), Some(0.8)));
    assert_eq!((disk.classes[0].operations, disk.classes[0].bytes), (100.0, 409_600.0));
    assert_eq!((disk.classes[0].asked, disk.classes[0].got), (1.0, 1.0));
    assert_eq!(disk.classes[0].queue_longest, 0.75, "of all time");
    assert_eq!(disk.classes[0].why, "window");
    let p99 = disk.figures.classes[0].disk_p99;
    assert!((p99 - 0.00198).abs() < 1e-9, "{p99}");
    assert!(
        disk.findings.iter().any(|finding| finding.what.contains("80 % of its figures")),
        "{disk:?}"
    );
}

#[test]
fn members_of_an_array_that_have_most_are_named() {
    let scrape = |seconds: [f64; 4]| {
        let line = |(place, seconds)| {
            format!(
                "forebay_device_member_in_flight_seconds_total{{mountpoint=\"d\",device=\"md0\",\
                 member=\"nvme{place}n1\"}} {seconds}\n"
            )
        };
        let members: String = seconds.into_iter().enumerate().map(line).collect();
        let of = "{mountpoint=\"d\",class=\"c\"}";
        let disk = "forebay_io_queue_read_iops{mountpoint=\"d\"} 1000\n";
        parse(&format!("forebay_io_queue_shares{of} 100\n{disk}{members}# EOF\n")).unwrap()
    };
    let before = scrape([500.0, 0.0, 0.0, 0.0]);
    let named = |now| {
        let interval = between(&before, &scrape(now), 1.0);
        let found = interval.disks[0].findings.iter().map(|finding| finding.what.clone());
        found.filter(|what| what.contains("members")).collect::<Vec<_>>()
    };
    let expected = "Of 4 members of the array, nvme2n1 has 70 % of the requests in flight (25 % \
                    would be even)";
    assert_eq!(named([501.0, 1.0, 7.0, 1.0]), [expected]);
    assert!(named([502.5, 2.5, 2.5, 2.5]).is_empty());
}

#[test]
fn a_process_that_was_restarted_counts_from_its_start() {
    let interval = between(&scrape(1000, 5.0), &scrape(10, 0.5), 1.0);
    assert!(interval.restarted);
    assert_eq!(interval.disks[0].classes[0].operations, 10.0);
}

#[test]
fn a_class_that_was_added_again_counts_from_its_start_alone() {
    let (before, mut now) = (scrape(1000, 1.0), scrape(1200, 2.0));
    let values = &mut now.disks[0].classes[0].values;
    for name in ["total_operations_total", "total_bytes_total", "consumption_total"] {
        values.insert(name.into(), 7.0);
    }
    let interval = between(&before, &now, 1.0);
    assert!(!interval.restarted);
    assert_eq!(interval.disks[0].classes[0].operations, 7.0);
}

#[test]
fn a_process_without_disks_shows_none() {
    let none = parse("forebay_bugs_total 0\n# EOF\n").unwrap();
    assert!(between(&scrape(1, 1.0), &none, 1.0).disks.is_empty());
    assert_eq!(between(&none, &scrape(1, 1.0), 1.0).disks.len(), 1);
}

#[test]
fn a_percentile_beyond_the_last_bound_is_the_last_bound() {
    let counts = [(0.001, 1.0), (f64::INFINITY, 100.0)];
    assert_eq!(percentile(&[], &counts, 0.99), 0.001);
    assert_eq!(percentile(&counts, &counts, 0.99), 0.0);
    assert_eq!(percentile(&[], &[], 0.99), 0.0);
}

/// A disk with these lines alongside the usual ones.
fn with(lines: &str) -> Scrape {
    let of = "{mountpoint=\"d\",class=\"c\"}";
    let text = format!(
        "forebay_io_queue_shares{of} 100\n\
         forebay_io_queue_read_iops{{mountpoint=\"d\"}} 1000\n{lines}# EOF\n"
    );
    parse(&text.replace("CLASS", of).replace("DISK", "mountpoint=\"d\"")).unwrap()
}

fn kinds(before: &Scrape, now: &Scrape) -> Vec<&'static str> {
    let interval = between(before, now, 1.0);
    interval.disks[0].findings.iter().map(|finding| finding.kind.name()).collect()
}

#[test]
fn a_disk_that_hangs_is_not_healthy_however_long_it_hangs() {
    let held = "forebay_io_queue_overdue_totalCLASS 16\n\
                forebay_io_queue_held_longCLASS 16\n\
                forebay_io_queue_held_long_secondsCLASS 12.2\n";
    assert_eq!(kinds(&with(held), &with(held)), ["held-long"]);
}

#[test]
fn counters_of_any_size_are_added_up() {
    let huge = "forebay_io_queue_overdue_totalCLASS 1e308\n\
                forebay_io_queue_overdue_total{DISK,class=\"d\"} 1e308\n\
                forebay_io_queue_total_write_ops_totalCLASS 1e308\n\
                forebay_io_queue_total_write_ops_total{DISK,class=\"d\"} 1e308\n\
                forebay_io_queue_shares{DISK,class=\"d\"} 1e308\n";
    assert_eq!(between(&with(""), &with(huge), 1.0).disks[0].figures.overdue, u64::MAX);
}

#[test]
fn writes_of_other_processes_are_distinguished_from_own_writes() {
    let written = |own: u32| {
        let of = "_bytes_total{DISK,device=\"x\",direction=\"write\"}";
        let counted = format!(
            "forebay_device_done{of} 377000000\n\
             forebay_device_unscheduled{of} 128192512\n\
             forebay_device_unscheduled_own{of} {own}\n"
        );
        between(&with(""), &with(&counted), 1.0).disks[0].findings[0].remedy.clone()
    };
    assert!(written(393_216).starts_with("Other processes"), "{}", written(393_216));
    assert!(written(128_000_000).contains("of this process"), "{}", written(128_000_000));
}

#[test]
fn a_disk_whose_load_changed_did_not_get_slow() {
    let scrape = |reads: u32, writes: u32, waited: f64, served: f64| {
        with(&format!(
            "forebay_io_queue_total_read_ops_totalCLASS {reads}\n\
             forebay_io_queue_total_read_bytes_totalCLASS {reads}000\n\
             forebay_io_queue_total_write_ops_totalCLASS {writes}\n\
             forebay_io_queue_total_write_bytes_totalCLASS {writes}000\n\
             forebay_io_queue_consumption_totalCLASS {waited}\n\
             forebay_io_queue_waited_seconds_total{{DISK}} {waited}\n\
             forebay_io_queue_waited_consumption_total{{DISK}} {served}\n"
        ))
    };
    let before = scrape(1000, 0, 9.0, 9.0);
    assert_eq!(kinds(&before, &scrape(1050, 0, 10.0, 9.5)), ["disk-got-slow"]);
    assert_eq!(kinds(&before, &scrape(1050, 50, 10.0, 9.5)), ["model-too-fast"]);
}

#[test]
fn a_latency_target_has_no_more_digits_than_it_needs() {
    let target = "forebay_io_queue_latency_target_seconds{DISK} 0.00568934\n\
                  forebay_io_queue_latency_target_holds{DISK} 0\n\
                  forebay_io_queue_target_measured_total{DISK} 9\n";
    let interval = between(&with(""), &with(target), 1.0);
    let found = &interval.disks[0].findings[0].what;
    assert_eq!(found, "The latency target of 5.689 ms does not hold");
}

proptest! {
    #[test]
    fn any_histogram_has_a_percentile_within_its_bounds(
        before in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9),
        now in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9),
    ) {
        let _ = percentile(&before, &now, 0.99);
    }
}
