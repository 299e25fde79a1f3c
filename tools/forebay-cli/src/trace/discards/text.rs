//! What was counted, for people.

use std::fmt::Write;

use forebay_block::Machine;
use forebay_trace::{Period, Shape, Summary};
use serde::Serialize;

const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

/// How many bursts are listed.
const BURSTS_SHOWN: usize = 20;

/// How often XFS flushes its log.
const XFS_PERIOD: &str = "proc/sys/fs/xfs/xfssyncd_centisecs";

pub(super) fn text(report: &Report, name: &str) -> String {
    let summary = &report.summary;
    let mut text = format!(
        "discards of {name} in {:.1} s: {}, {:.2} GiB\n",
        summary.seconds,
        counted(summary.requests, "request"),
        summary.bytes as f64 / GIB
    );
    if summary.shape != Shape::None {
        text.push_str(&slots(summary));
    }
    if summary.shape == Shape::Bursts {
        text.push_str(&bursts(summary));
    }
    if report.lost_requests > 0 {
        let lost = counted(report.lost_requests, "request");
        let _ = writeln!(text, "  LOST: {lost} more, because the kernel's buffer was full");
    }
    if report.unknown_lines > 0 {
        let lines = counted(report.unknown_lines, "line");
        let _ = writeln!(text, "  {lines} of the trace could not be parsed");
    }
    text
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn slots(summary: &Summary) -> String {
    let milliseconds = summary.slot_s * 1e3;
    let per_slot = |total: u64| total as f64 / summary.slots as f64;
    let over = summary.slots_over_requests.max(summary.slots_over_bytes);
    let mut text = format!(
        "  from {:.1} s to {:.1} s: {} of {} slots of {milliseconds:.0} ms in use, {over} over 3 \
         times the mean\n",
        summary.first_s, summary.last_s, summary.slots_in_use, summary.slots
    );
    let _ = writeln!(
        text,
        "  per slot: {:.1} requests and {:.2} MiB in the mean, {} and {:.2} MiB at most",
        per_slot(summary.requests),
        per_slot(summary.bytes) / MIB,
        summary.slot_requests_max,
        summary.slot_bytes_max as f64 / MIB
    );
    if summary.shape == Shape::Even {
        text.push_str("  spread evenly\n");
    }
    text
}

fn bursts(summary: &Summary) -> String {
    let mut text = format!("  in {}:\n", counted(summary.bursts.len() as u64, "burst"));
    for burst in summary.bursts.iter().take(BURSTS_SHOWN) {
        let _ = writeln!(
            text,
            "    at {:.1} s for {:.1} s: {}, {:.3} GiB",
            burst.start_s,
            burst.length_s,
            counted(burst.requests, "request"),
            burst.bytes as f64 / GIB
        );
    }
    if summary.bursts.len() > BURSTS_SHOWN {
        let _ = writeln!(text, "    and {} more", summary.bursts.len() - BURSTS_SHOWN);
    }
    if let Some(period) = &summary.period {
        text.push_str(&described(period, Machine::this().number(XFS_PERIOD)));
    }
    text
}

/// The period, and whose it may be.
fn described(period: &Period, xfs_centisecs: Option<u64>) -> String {
    let median = period.median_s;
    if !period.regular {
        return format!("  without a period: {median:.1} s apart in the median\n");
    }
    let xfs = xfs_centisecs.filter(|&centisecs| period.is_about(centisecs as f64 / 100.0));
    let whose = xfs.map_or_else(String::new, |centisecs| {
        format!(": that of XFS's log flush (fs.xfs.xfssyncd_centisecs is {centisecs})")
    });
    format!("  every {median:.1} s{whose}\n")
}

/// What was counted.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) version: u32,
    /// The disks; none for all.
    pub(super) devices: Vec<String>,
    #[serde(flatten)]
    pub(super) summary: Summary,
    /// Requests that are missing above.
    pub(super) lost_requests: u64,
    /// Lines of the kernel that were not understood.
    pub(super) unknown_lines: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_trace::SlotCounts;

    use super::*;

    #[test]
    fn the_period_of_the_log_flush_is_named() {
        let mut counts = SlotCounts::default();
        for second in [28_800, 59_500, 89_900] {
            for millis in 0..100 {
                counts.add(Duration::from_millis(second + millis), 1 << 20);
            }
        }
        let summary = Summary::new(&counts, Duration::from_secs(100));
        let text = bursts(&summary);
        assert!(text.contains("in 3 bursts:\n    at 28.8 s for 0.1 s: 100 requests"), "{text}");
        let period = summary.period.unwrap();
        assert!(described(&period, Some(3_000)).contains("that of XFS's log flush"));
        assert_eq!(described(&period, Some(100)), "  every 30.7 s\n");
        assert_eq!(described(&period, None), "  every 30.7 s\n");
    }
}
