//! One self-contained page: findings, tables, charts.

use forebay_report::{Chart, DrawError, Mark, Page, svg};
use forebay_trace::{CountBasis, DeviceSummary, DirectionSummary};

use super::report::{Report, alignment, border, counts, latencies, plural, split};
use crate::console::json;
use crate::failure::Failure;

/// The page as HTML.
pub(super) fn html(report: &Report) -> Result<String, Failure> {
    let title = format!("Requests of {}", report.source);
    let mut page = Page::new(&format!("forebay trace: {title}"));
    page.title(&title);
    page.about(&format!("{:.1} s.", report.seconds));
    page.heading("found", "What was found");
    let missing = report.missing();
    let missing = missing.iter().map(|text| (text.as_str(), true));
    let findings = report.findings.iter().map(|finding| (finding.text.as_str(), finding.warns));
    let not_read = report.not_read();
    let not_read = not_read.iter().map(|text| (text.as_str(), false));
    page.list(missing.chain(findings).chain(not_read));
    for found in &report.summary.devices {
        device(&mut page, found)?;
    }
    if !report.summary.async_work.is_empty() {
        page.heading("io_uring", "Passed to kernel threads by io_uring");
        let work = report.summary.async_work.iter();
        let work: Vec<String> =
            work.map(|work| format!("{}: {}", work.operation, work.requests)).collect();
        page.list(work.iter().map(|text| (text.as_str(), false)));
    }
    page.json("results", &json(report)?);
    Ok(page.finish())
}

fn device(page: &mut Page, device: &DeviceSummary) -> Result<(), DrawError> {
    page.heading(&device.name, &device.name);
    page.charts(&[svg(&aligned(device))?, svg(&percentiles(device))?]);
    page.table(&counts(device));
    page.table(&alignment(device));
    page.table(&latencies(device));
    let known = device.border.iter().map(border);
    let read = (device.read_before_misaligned > 0).then(|| {
        format!("blocks read just before a misaligned write: {}", device.read_before_misaligned)
    });
    known.chain(read).for_each(|text| page.paragraph(&text));
    if !device.split_requests.is_empty() {
        page.paragraph("Requests that were split or have a border inside, the first of them:");
        let requests: Vec<String> = device.split_requests.iter().take(SHOWN).map(split).collect();
        page.list(requests.iter().map(|text| (text.as_str(), false)));
    }
    Ok(())
}

/// How many split requests are listed.
const SHOWN: usize = 20;

fn aligned(device: &DeviceSummary) -> Chart {
    let chart = Chart::new(
        "Alignment of requests: the largest power of two at which they begin",
        "bytes; the last is 1 MiB and more",
        "percent of requests",
    );
    device.directions.iter().fold(chart.doubling().reaching(100.0), |chart, found| {
        let all = found.requests.max(1) as f64;
        let point = |bytes: u64, requests: u64| (bytes as f64, requests as f64 / all * 100.0);
        let points = found.alignment.iter().map(|part| point(part.bytes, part.requests));
        chart.with(plural(found.direction), Mark::Line, points.collect())
    })
}

fn percentiles(device: &DeviceSummary) -> Chart {
    let title = "Latency of whole and of split requests";
    let chart = Chart::new(title, "percent of requests that take no longer", "microseconds");
    device.directions.iter().fold(chart, |chart, found: &DirectionSummary| {
        let kinds = [("whole", &found.whole_us), ("split", &found.split_us)];
        // where nothing else is known
        let disk = ("issued", &found.disk_us);
        let kinds = if found.counted == CountBasis::Issued { vec![disk] } else { kinds.to_vec() };
        kinds.into_iter().filter(|(_, us)| us.count > 0).fold(chart, |chart, (kind, us)| {
            let name = format!("{kind} {}", plural(found.direction));
            let points = vec![(50.0, us.p50), (95.0, us.p95), (99.0, us.p99), (100.0, us.max)];
            chart.with(&name, if kind == "split" { Mark::Dashed } else { Mark::Line }, points)
        })
    })
}
