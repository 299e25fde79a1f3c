//! One self-contained page: what to do, figures, what else was found, curves.

use forebay_report::{Chart, DrawError, Mark, Page, Table, size, svg};
use forebay_tune::verdicts::{Verdict, advice, verdicts};
use forebay_tune::{CostPoint, Fit, Knee, LARGE_REQUEST_BYTES, LatencyAt, Mix, Observation, Run};

use super::text::{Tuned, figures, mix_sizes, volume};
use crate::growth;

/// The page as HTML.
pub(super) fn html(tuned: &[Tuned]) -> Result<String, DrawError> {
    let names = tuned.iter().map(Tuned::name).collect::<Vec<_>>();
    let mut page = Page::new(&format!("forebay tune: {}", names.join("; ")));
    for one in tuned {
        disk(&mut page, one)?;
    }
    Ok(page.finish())
}

fn disk(page: &mut Page, tuned: &Tuned) -> Result<(), DrawError> {
    let Tuned { run, fit } = tuned;
    let target = &run.target;
    page.title(&tuned.name());
    let disks = target.disks.join(", ");
    let mut place: Vec<&str> = vec![&target.filesystem, &disks, &target.device];
    place.retain(|word| !word.is_empty());
    let place = if place.is_empty() { String::new() } else { place.join(" ") + "; " };
    let threads = match target.threads {
        1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    let (backend, budget, written) = (&target.backend, &run.budget, volume(run.written()));
    page.about(&format!("{place}{backend}{threads}; budget {budget}, {written} written."));
    let (warnings, others): (Vec<Verdict>, Vec<Verdict>) =
        verdicts(run, fit).into_iter().partition(|verdict| verdict.warns);
    page.heading("todo", "What to do");
    let next = next_steps(run);
    let warnings = warnings.iter().map(|verdict| verdict.text.as_str());
    page.paragraph(&advice(fit));
    page.list(warnings.chain(next.iter().map(String::as_str)).map(|text| (text, false)));
    page.heading("figures", "Figures");
    page.table(&rates(fit));
    page.table(&latencies(fit));
    page.heading("verdicts", "Other findings");
    page.list(others.iter().map(|verdict| (&*verdict.text, false)));
    page.heading("curves", "Curves");
    page.charts(&charts(fit).iter().map(svg).collect::<Result<Vec<_>, _>>()?);
    if !run.growth.is_empty() {
        page.heading("growth", "How files grow");
        page.table(&growth::table(&run.growth));
        page.paragraph(growth::EXTENTS);
        let drawn = growth::charts(&run.growth);
        page.charts(&drawn.iter().map(svg).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(())
}

/// The commands that go on with what was measured.
fn next_steps(run: &Run) -> Vec<String> {
    let explored = match run.target.paths.first() {
        Some(path) if !run.target.is_simulated() => format!("{path} --properties forebay.yaml"),
        path => format!("--simulate {}", path.map_or("NAME", String::as_str)),
    };
    vec![
        String::from("Show the resulting settings: `forebay info --properties forebay.yaml`."),
        format!(
            "If reads and writes are mixed, find the mixes that meet a latency goal: `forebay \
             explore {explored} -o forebay.yaml`."
        ),
    ]
}

fn rates(fit: &Fit) -> Table {
    let mut table = Table::new("", &["", "lasting", "95 % within", "at first", "requests of"]);
    for (name, figure, unit, scale) in figures(fit) {
        table.row([
            name.to_owned(),
            format!("{:.0} {unit}", figure.value / scale),
            format!("{:.1} %", figure.uncertainty() * 100.0),
            format!("{:.0} {unit}", figure.first / scale),
            size(figure.request_bytes.into()),
        ]);
    }
    table
}

fn latencies(fit: &Fit) -> Table {
    let mut table = Table::new("", &["", "p50", "p99"]);
    let mut row = |name: String, p50: f64, p99: f64| {
        table.row([name, format!("{p50:.0} us"), format!("{p99:.0} us")]);
    };
    if let Some(alone) = fit.read_knee.steps.first() {
        row("one read at a time".into(), alone.p50_us, alone.p99_us);
    }
    for step in &fit.below_knee {
        row(format!("{} % of the knee", step.percent), step.p50_us, step.p99_us);
    }
    if let Some(flush) = fit.flush.filter(|flush| flush.count > 0) {
        row("flush after a small write".into(), flush.p50, flush.p99);
    }
    table
}

fn charts(fit: &Fit) -> [Chart; 8] {
    let in_flight = "requests in flight";
    let (reads, writes) = (&fit.read_knee, &fit.write_knee);
    let step = |knee: &Knee, of: fn(&LatencyAt) -> f64| {
        knee.steps.iter().map(|step| (f64::from(step.depth), of(step))).collect()
    };
    let knees = |chart: Chart| {
        [("read knee", reads), ("write knee", writes)].into_iter().fold(
            chart,
            |chart, (name, knee)| match knee.requests {
                Some(requests) => chart.marked(name, requests.into()),
                None => chart,
            },
        )
    };
    let points = |points: &[CostPoint], of: fn(&CostPoint) -> f64| {
        points.iter().map(|point| (f64::from(point.bytes), of(point))).collect()
    };
    let trace =
        |trace: &[Observation]| trace.iter().map(|seen| (seen.at / 60.0, seen.rate)).collect();
    let throughput =
        Chart::new("Throughput by requests in flight", in_flight, "4 KiB requests per second")
            .doubling()
            .with("reads", Mark::Line, step(reads, |step| step.rate))
            .with("writes", Mark::Line, step(writes, |step| step.rate));
    let latency = Chart::new("Latency by requests in flight", in_flight, "microseconds")
        .doubling()
        .with("reads p50", Mark::Line, step(reads, |step| step.p50_us))
        .with("reads p99", Mark::Line, step(reads, |step| step.p99_us))
        .with("writes p50", Mark::Line, step(writes, |step| step.p50_us))
        .with("writes p99", Mark::Line, step(writes, |step| step.p99_us));
    let random = Chart::new("Random requests by size", "bytes per request", "requests per second")
        .doubling()
        .with("reads", Mark::Line, points(&fit.read.random, |point| point.rate))
        .with("writes", Mark::Line, points(&fit.write.random, |point| point.rate));
    let random = match fit.sector.measured() {
        0 => random,
        sector => random.marked(&format!("sector {}", size(sector.into())), sector.into()),
    };
    let streams = Chart::new("Streams by size", "bytes per request", "bytes per second")
        .doubling()
        .with("reads", Mark::Line, points(&fit.read.stream, CostPoint::bandwidth))
        .with("writes", Mark::Line, points(&fit.write.stream, CostPoint::bandwidth));
    let saturated = [("reads saturate", &fit.read), ("writes saturate", &fit.write)];
    let streams =
        saturated.into_iter().fold(streams, |chart, (name, sizes)| match sizes.saturation.bytes {
            Some(bytes) => chart.marked(name, bytes as f64),
            None => chart,
        });
    let steadiness = Chart::new("The same load over time", "minutes", "small requests per second")
        .with("reads", Mark::Line, trace(&fit.read_steadiness.trace))
        .with("writes", Mark::Line, trace(&fit.write_steadiness.trace));
    let [large, mixed, interference] = shared(fit);
    [knees(throughput), knees(latency), large, mixed, interference, random, streams, steadiness]
}

/// Large requests, and reads that share the disk with writes.
fn shared(fit: &Fit) -> [Chart; 3] {
    let in_flight = "requests in flight";
    let large = |steps: &[LatencyAt]| {
        steps
            .iter()
            .map(|step| (f64::from(step.depth), step.rate * f64::from(LARGE_REQUEST_BYTES)))
            .collect()
    };
    let mixed = |bytes: u32, of: fn(&Mix) -> f64| {
        let mixes = fit.mixes.iter().filter(|mix| mix.write_bytes == bytes);
        mixes.map(|mix| (f64::from(mix.depth), of(mix))).collect::<Vec<_>>()
    };
    let sizes = mix_sizes(fit);
    let mix_chart = |chart: Chart, of: fn(&Mix) -> f64| {
        sizes.iter().fold(chart.doubling(), |chart, &bytes| {
            let name = format!("alongside writes of {}", size(bytes.into()));
            chart.with(&name, Mark::Line, mixed(bytes, of))
        })
    };
    let title = "Reads while one in four requests in flight writes";
    [
        Chart::new("Requests of 128 KiB by requests in flight", in_flight, "bytes per second")
            .doubling()
            .with("reads", Mark::Line, large(&fit.large_reads))
            .with("writes", Mark::Line, large(&fit.large_writes)),
        mix_chart(Chart::new(title, in_flight, "reads per second"), |mix| mix.reads.rate),
        mix_chart(Chart::new("Their p99", in_flight, "microseconds"), |mix| mix.reads.p99_us),
    ]
}
