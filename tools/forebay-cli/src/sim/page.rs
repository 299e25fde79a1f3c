//! One self-contained page of a simulated run: the latency target, what was measured, the speed and
//! the throughput over time.

use forebay_load::results::model::{Report, RunResult};
use forebay_load::results::text;
use forebay_report::{Chart, DrawError, Mark, Page, svg};
use forebay_sim::simulation::{Correction, Trace};

/// This many time slices fill a chart, and hold enough requests for a percentile.
pub(super) const SLICES: usize = 200;

/// The page as HTML.
pub(super) fn html(name: &str, run: &RunResult, trace: &Trace) -> Result<String, DrawError> {
    let mut page = Page::new(&format!("forebay sim: {name}"));
    page.title(name);
    page.about(&format!(
        "Scheduler {}, seed {}; simulated, warm-up included; {} ms for each point.",
        run.scheduler,
        run.seed,
        trace.slice_nanos / 1_000_000
    ));
    page.heading("time", "The loop at work");
    page.charts(&charts(trace).iter().map(svg).collect::<Result<Vec<_>, _>>()?);
    page.heading("result", "Result");
    // the table comes first, and is in the results
    for block in text(&Report::Run(Box::new(run.clone()))).split("\n\n").skip(1) {
        page.paragraph(block);
    }
    Ok(page.finish())
}

fn charts(trace: &Trace) -> [Chart; 3] {
    let seconds = |slice: usize| slice as f64 * trace.slice_nanos as f64 / 1e9;
    let over_time = |of: fn(&Correction) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = trace.corrections.iter().enumerate();
        points.filter_map(|(slice, at)| Some((seconds(slice + 1), of(at)?))).collect()
    };
    let target = trace.corrections.iter().find_map(|at| at.status.target);
    let measured = target.map_or_else(|| String::from("p95"), |status| status.target.to_string());
    let measured = format!("measured ({})", measured.split('=').next().unwrap_or_default());
    let latency = Chart::new("Latency in the disk", "seconds", "ms")
        .with(
            "target",
            Mark::Dashed,
            over_time(|at| Some(at.status.target?.target.latency().as_secs_f64() * 1e3)),
        )
        .with(
            &measured,
            Mark::Line,
            over_time(|at| (at.percentile_nanos > 0).then_some(at.percentile_nanos as f64 / 1e6)),
        )
        .with(
            "window",
            Mark::Dots,
            over_time(|at| Some(at.status.target?.window.as_nanos_ceil() as f64 / 1e6)),
        );
    let speed = Chart::new("Speed: what the disk does of what its figures say", "seconds", "%")
        .with(
            "delivered while work waited",
            Mark::Line,
            over_time(|at| at.status.speed_permille.map(|speed| speed as f64 / 10.0)),
        );
    let mut throughput = Chart::new("Throughput", "seconds", "MB/s");
    for class in &trace.classes {
        let rate = |bytes: u64| bytes as f64 / trace.slice_nanos as f64 * 1e3;
        let samples = class.samples.iter().enumerate();
        let points = samples.map(|(slice, at)| (seconds(slice + 1), rate(at.bytes)));
        throughput = throughput.with(&class.name, Mark::Line, points.collect());
    }
    [latency, speed, throughput]
}
