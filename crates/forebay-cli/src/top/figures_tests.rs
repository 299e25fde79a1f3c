//! Two scrapes, and what is made of them.

use proptest::prelude::*;

use super::super::open_metrics::parse;
use super::*;

/// A disk that did so many operations in so many seconds of its time, of the class `c`.
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
    assert_eq!(disk.classes[0].why, "window");
    let p99 = disk.figures.classes[0].disk_p99;
    assert!((p99 - 0.00198).abs() < 1e-9, "{p99}");
    assert!(disk.findings.iter().any(|finding| finding.what.contains("80 % of what")), "{disk:?}");
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

proptest! {
    #[test]
    fn any_histogram_has_a_percentile_within_its_bounds(
        before in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9),
        now in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9),
    ) {
        let _ = percentile(&before, &now, 0.99);
    }
}
