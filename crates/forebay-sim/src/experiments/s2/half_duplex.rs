//! How many reads an NVMe disk serves beside writes, and within which latency.

use core::time::Duration;

use forebay_core::Policy;

use super::{Report, Scale};
use crate::experiments::scenario::{config, disk, job, jobs, percent, run as simulate, thousands};
use crate::experiments::{Chart, Mark, Table};
use crate::simulation::SchedulerConfig;

/// The published edges of an i3.2xlarge, and dies whose time reads and program operations share.
/// The number of dies follows from 413,000 reads/s of 0.1 ms, the write buffer is assumed.
const DISK: &str = "
kind: flash
read_command: 0
write_command: 0
bandwidth: 16000000000
read_latency: 10us
dies: 41
page: 16kB
page_read: 99us
program_bandwidth: 800000000
suspend: 100us
write_buffer: 1MB
";
const READS_MAX: f64 = 413_000.0;
/// 4 shards x 10 fibers x 152 requests/s of 128 KiB, 797 MB/s.
const WRITE_RPS_MAX: u64 = 152;
const SHARDS: u32 = 4;
const READ_FIBERS: u64 = 100;
/// Read rates that are tried, up to the highest.
const STEPS: u64 = 20;
/// A load is carried if so much of what is due is done: diskplorer leaves other cells blank.
const CARRIED: f64 = 0.97;

/// Thousand reads per second of an i3.2xlarge beside parts of its writes, from diskplorer's
/// published surface: what it carries, and within a 95th percentile of 5 ms and 1 ms.
const PUBLISHED: [(f64, [f64; 3]); 5] = [
    (0.0, [413.0, 392.0, 392.0]),
    (0.25, [330.0, 165.0, 83.0]),
    (0.5, [186.0, 103.0, 0.0]),
    (0.75, [124.0, 62.0, 0.0]),
    (1.0, [83.0, 41.0, 0.0]),
];
/// The same edges, and bounds of the 95th percentile in microseconds.
const EDGES: [(&str, f64); 3] =
    [("carried", f64::INFINITY), ("within 5 ms", 5000.0), ("within 1 ms", 1000.0)];

/// The 95th percentile of the reads in microseconds under this load, if the disk carries it.
fn p95_us(reads_rps: u64, writes_rps: u64, millis: u64) -> Result<Option<f64>, String> {
    let mut text = format!(
        "- {{name: reads, type: randread, shards: all, options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {READ_FIBERS}, rps: {reads_rps}, reqsize: 512}}}}\n"
    );
    if writes_rps > 0 {
        text.push_str(&format!(
            "- {{name: writes, type: append, shards: all,
   shard_info: {{parallelism: 10, rps: {writes_rps}, reqsize: 128kB}}}}\n"
        ));
    }
    let mut config = config(jobs(&text, SHARDS)?, disk(DISK)?, millis);
    config.warmup = Duration::from_millis(20);
    config.scheduler = SchedulerConfig { policy: Some(Policy::Open), ..Default::default() };
    let outcome = simulate(config)?;
    let carried = |name| {
        let job = job(&outcome, name)?;
        let due = (job.requests + job.unfinished) as f64;
        Ok::<bool, String>(job.requests as f64 >= CARRIED * due)
    };
    let carries = (writes_rps == 0 || carried("writes")?) && carried("reads")?;
    Ok(if carries { Some(job(&outcome, "reads")?.latency_us.p95) } else { None })
}

/// For each of [`EDGES`] the most reads per second beside this part of the writes.
fn edges(part: f64, millis: u64) -> Result<[f64; 3], String> {
    let writes_rps = (WRITE_RPS_MAX as f64 * part).round() as u64;
    let mut most = [0.0; 3];
    for step in 1..=STEPS {
        let per_fiber = READS_MAX / (f64::from(SHARDS) * READ_FIBERS as f64);
        let reads_rps = (per_fiber * step as f64 / STEPS as f64) as u64;
        let Some(p95) = p95_us(reads_rps, writes_rps, millis)? else { break };
        for (most, (_, bound)) in most.iter_mut().zip(EDGES) {
            if p95 <= bound {
                *most = (u64::from(SHARDS) * READ_FIBERS * reads_rps) as f64;
            }
        }
    }
    Ok(most)
}

/// S2-3.
pub(super) fn run(scale: Scale) -> Result<Report, String> {
    let millis = scale.seconds(100, 500);
    let mut report = Report {
        shows: "What the disk carries lies near a straight line: for twice the reads, half the \
                writes. Within a bound on latency the published disk's mixes are much dearer than \
                the line."
            .into(),
        differs: "In the simulated disk reads and program operations share the dies' time, which \
                  gives the line and nothing else: reads overtake writes, so they stay fast up to \
                  it. A real disk's reads wait behind writes; that needs a region per latency \
                  goal, not one line."
            .into(),
        ..Report::default()
    };
    report.parameter(
        "disk",
        "flash with the published edges of an i3.2xlarge: 413 k reads/s, 800 MB/s; 41 dies",
    );
    report.parameter(
        "load",
        "Poisson reads of 512 bytes, 128 KiB writes at a fixed rate, no scheduler",
    );
    report.parameter("carried", "97 % of what is due, of reads and of writes");
    report.parameter("measured", format!("{millis} ms for each load, after 20 ms"));
    let mut table = Table::new(
        "Most reads per second in thousands, published / simulated (by steps of 5 %)",
        &["writes", "line", "carried", "p95 within 5 ms", "p95 within 1 ms"],
    );
    let mut simulated = Vec::new();
    for (part, published) in PUBLISHED {
        let found = edges(part, millis)?;
        simulated.push((part * 800.0, found[0] / 1e3));
        let cell = |index: usize| {
            let number =
                |reads: f64| if reads > 0.0 { thousands(reads) } else { "none".to_owned() };
            format!("{} / {}", number(published[index]), number(found[index] / 1e3))
        };
        let line = thousands(READS_MAX / 1e3 * (1.0 - part));
        table.row([percent(part), line, cell(0), cell(1), cell(2)]);
    }
    report.tables.push(table);
    let mut chart = Chart::new("Most reads beside writes", "MB/s of writes", "thousand reads/s");
    for (index, (name, _)) in EDGES.into_iter().enumerate() {
        let points = PUBLISHED.map(|(part, reads)| (part * 800.0, reads[index]));
        chart = chart.with(&format!("published, {name}"), Mark::Dots, points.to_vec());
    }
    let line = vec![(0.0, READS_MAX / 1e3), (800.0, 0.0)];
    report.charts.push(chart.with("simulated, carried", Mark::Line, simulated).with(
        "line",
        Mark::Dashed,
        line,
    ));
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_reads_are_half_the_writes() {
        for part in [0.25, 0.5, 0.75] {
            let [carried, ..] = edges(part, 100).unwrap();
            let line = READS_MAX * (1.0 - part);
            assert!((carried - line).abs() < 0.1 * READS_MAX, "{part}: {carried}");
        }
    }
}
