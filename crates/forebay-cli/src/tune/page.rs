//! One self-contained page: verdicts, figures, curves.

use std::fmt::{self, Write as _};

use forebay_tune::verdicts::verdicts;
use forebay_tune::{CostPoint, Fit, Knee, LatencyAt, Observation};

use super::Tuned;
use super::charts::{Chart, svg};
use super::text::{figures, size, volume};
use crate::failure::Failure;
use crate::svg::{PAGE_BEGIN, escaped};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
padding:0 1rem;color:#1b1b1b}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;font-size:.95rem}th,td{padding:.2rem .8rem;border-bottom:1px solid \
#ddd;text-align:right}th:first-child,td:first-child{text-align:left}li{margin:.3rem 0}\
li.warns{font-weight:600}.charts{display:grid;grid-template-columns:repeat(auto-fit,\
minmax(min(26rem,100%),1fr));gap:1rem}svg{max-width:100%;height:auto}.about{color:#555;font-size:.9rem}";

/// The page as HTML.
pub(super) fn html(tuned: &[Tuned]) -> Result<String, Failure> {
    let mut page = String::from(PAGE_BEGIN);
    let failed = |error: &dyn fmt::Display| Failure::Run(format!("cannot draw: {error}"));
    let names = |one: &Tuned| escaped(&one.run.facts.places.join(", "));
    let title = tuned.iter().map(names).collect::<Vec<_>>().join("; ");
    page += &format!("<title>forebay tune: {title}</title><style>{STYLE}</style></head><body>\n");
    for one in tuned {
        let charts = charts(&one.fit).iter().map(svg).collect::<Result<Vec<_>, _>>();
        let charts = charts.map_err(|error| failed(&error))?;
        disk(&mut page, one, &charts).map_err(|error| failed(&error))?;
    }
    page += "</body></html>\n";
    Ok(page)
}

fn disk(page: &mut String, Tuned { run, fit }: &Tuned, charts: &[String]) -> fmt::Result {
    let facts = &run.facts;
    writeln!(page, "<h1>{}</h1>", escaped(&facts.places.join(", ")))?;
    let disks = facts.disks.join(", ");
    let mut place: Vec<&str> = vec![&facts.filesystem, &disks, &facts.device];
    place.retain(|word| !word.is_empty());
    let place = if place.is_empty() { String::new() } else { place.join(" ") + "; " };
    writeln!(
        page,
        "<p class=\"about\">{}{}{}; budget {}, {} written.</p>",
        escaped(&place),
        escaped(&facts.backend),
        match facts.threads {
            1 => String::new(),
            threads => format!(", {threads} threads"),
        },
        escaped(&run.budget),
        volume(run.written())
    )?;
    writeln!(page, "<h2>Verdicts</h2><ul>")?;
    for verdict in verdicts(run, fit) {
        let class = if verdict.warns { " class=\"warns\"" } else { "" };
        writeln!(page, "<li{class}>{}</li>", escaped(&verdict.text))?;
    }
    writeln!(page, "</ul><h2>Figures</h2>")?;
    table(page, fit)?;
    writeln!(page, "<h2>Curves</h2><div class=\"charts\">")?;
    for chart in charts {
        writeln!(page, "<figure>{chart}</figure>")?;
    }
    writeln!(page, "</div>")
}

fn table(page: &mut String, fit: &Fit) -> fmt::Result {
    writeln!(
        page,
        "<table><tr><th></th><th>lasting</th><th>95 % within</th><th>at first</th>\
         <th>requests of</th></tr>"
    )?;
    for (name, figure, unit, scale) in figures(fit) {
        writeln!(
            page,
            "<tr><td>{name}</td><td>{:.0} {unit}</td><td>{:.1} %</td><td>{:.0} {unit}</td>\
             <td>{}</td></tr>",
            figure.value / scale,
            figure.margin / figure.value.max(1.0) * 100.0,
            figure.first / scale,
            size(figure.request_bytes.into())
        )?;
    }
    writeln!(page, "</table><table><tr><th></th><th>p50</th><th>p99</th></tr>")?;
    let row = |page: &mut String, name: &str, p50: f64, p99: f64| {
        writeln!(page, "<tr><td>{name}</td><td>{p50:.0} us</td><td>{p99:.0} us</td></tr>")
    };
    if let Some(alone) = fit.read_knee.steps.first() {
        row(page, "one read at a time", alone.p50_us, alone.p99_us)?;
    }
    for step in &fit.below_knee {
        let name = format!("{} % of the knee", step.percent);
        row(page, &name, step.p50_us, step.p99_us)?;
    }
    if let Some(flush) = fit.flush.filter(|flush| flush.count > 0) {
        row(page, "flush after a small write", flush.p50, flush.p99)?;
    }
    writeln!(page, "</table>")
}

fn charts(fit: &Fit) -> [Chart; 5] {
    let in_flight = "requests in flight";
    let step = |knee: &Knee, of: fn(&LatencyAt) -> f64| {
        knee.steps.iter().map(|step| (f64::from(step.depth), of(step))).collect::<Vec<_>>()
    };
    let knees = || {
        let named = |name: &str, knee: &Knee| (format!("{name} knee"), knee.requests);
        vec![named("read", &fit.read_knee), named("write", &fit.write_knee)]
    };
    let points = |points: &[CostPoint], of: fn(&CostPoint) -> f64| {
        points.iter().map(|point| (f64::from(point.bytes), of(point))).collect::<Vec<_>>()
    };
    let trace = |trace: &[Observation]| {
        trace.iter().map(|seen| (seen.at / 60.0, seen.rate)).collect::<Vec<_>>()
    };
    let sector = fit.sector.measured();
    [
        Chart {
            title: "Throughput by requests in flight",
            x: in_flight,
            y: "4 KiB requests per second",
            doubles: true,
            curves: vec![
                ("reads", step(&fit.read_knee, |step| step.rate)),
                ("writes", step(&fit.write_knee, |step| step.rate)),
            ],
            marks: knees(),
        },
        Chart {
            title: "Latency by requests in flight",
            x: in_flight,
            y: "microseconds",
            doubles: true,
            curves: vec![
                ("reads p50", step(&fit.read_knee, |step| step.p50_us)),
                ("reads p99", step(&fit.read_knee, |step| step.p99_us)),
                ("writes p50", step(&fit.write_knee, |step| step.p50_us)),
                ("writes p99", step(&fit.write_knee, |step| step.p99_us)),
            ],
            marks: knees(),
        },
        Chart {
            title: "Random requests by size",
            x: "bytes per request",
            y: "requests per second",
            doubles: true,
            curves: vec![
                ("reads", points(&fit.read.random, |point| point.rate)),
                ("writes", points(&fit.write.random, |point| point.rate)),
            ],
            marks: Vec::from_iter(
                (sector > 0).then(|| (format!("sector {}", size(sector.into())), sector.into())),
            ),
        },
        Chart {
            title: "Streams by size",
            x: "bytes per request",
            y: "bytes per second",
            doubles: true,
            curves: vec![
                ("reads", points(&fit.read.stream, CostPoint::bandwidth)),
                ("writes", points(&fit.write.stream, CostPoint::bandwidth)),
            ],
            marks: vec![
                (String::from("reads saturate"), fit.read.saturation.bytes as f64),
                (String::from("writes saturate"), fit.write.saturation.bytes as f64),
            ],
        },
        Chart {
            title: "The same load over time",
            x: "minutes",
            y: "small requests per second",
            doubles: false,
            curves: vec![
                ("reads", trace(&fit.read_steadiness.trace)),
                ("writes", trace(&fit.write_steadiness.trace)),
            ],
            marks: Vec::new(),
        },
    ]
}
