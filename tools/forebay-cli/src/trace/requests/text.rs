//! What was seen of requests, for people.

use std::fmt::Write;

use forebay_report::{Table, paragraph_within};
use forebay_trace::DeviceSummary;

use super::report::{Report, alignment, border, counts, latencies, split};

/// So that a terminal shows lines whole.
const COLUMNS: usize = 80;

/// How many split requests are listed.
const SPLIT_SHOWN: usize = 5;

pub(super) fn text(report: &Report) -> String {
    let mut text = format!("requests of {} in {:.1} s\n", report.source, report.seconds);
    report.summary.devices.iter().for_each(|found| device(&mut text, found));
    let work = &report.summary.async_work;
    if !work.is_empty() {
        let counts: Vec<String> =
            work.iter().map(|work| format!("{} {}", work.requests, work.operation)).collect();
        text.push('\n');
        let head = "passed to kernel threads by io_uring: ";
        paragraph_within(&mut text, head, &counts.join(", "), COLUMNS);
    }
    text.push('\n');
    for missing in report.missing() {
        paragraph_within(&mut text, "! ", &missing, COLUMNS);
    }
    for finding in &report.findings {
        let head = if finding.warns { "! " } else { "- " };
        paragraph_within(&mut text, head, &finding.text, COLUMNS);
    }
    if let Some(not_read) = report.not_read() {
        paragraph_within(&mut text, "- ", &not_read, COLUMNS);
    }
    text
}

fn device(text: &mut String, device: &DeviceSummary) {
    let _ = write!(text, "\n{}", device.name);
    for table in [counts(device), alignment(device), latencies(device)] {
        if !table.rows.is_empty() {
            let _ = write!(text, "{}", without_empty_rows(table));
        }
    }
    if device.read_before_misaligned > 0 {
        let count = device.read_before_misaligned;
        let _ = writeln!(text, "blocks read just before a misaligned write: {count}");
    }
    if let Some(found) = &device.border {
        paragraph_within(text, "", &border(found), COLUMNS);
    }
    let shown = device.split_requests.iter().take(SPLIT_SHOWN);
    shown.for_each(|request| paragraph_within(text, "  ", &split(request), COLUMNS));
    let kept = device.split_requests.len();
    let more = kept.saturating_sub(SPLIT_SHOWN) as u64 + device.split_requests_more;
    if more > 0 {
        let _ = writeln!(text, "  and {more} more; --format json has {kept}");
    }
}

/// Powers at which nothing begins say nothing.
fn without_empty_rows(mut table: Table) -> Table {
    table.rows.retain(|row| row.iter().skip(1).any(|cell| cell != "-"));
    table
}
