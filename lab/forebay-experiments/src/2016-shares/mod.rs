//! Table 3: four classes that want the whole disk, under four layouts of shares.

use core::time::Duration;

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2016;
use crate::articles::y2016::{KB, of_2016};
use crate::experiment::{Experiment, Scale, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2016-shares",
    alias: "S0-12",
    title: "Four classes with different shares on one shard",
    source: y2016::SOURCE,
};

/// The article's disk, and its depth in table 1.
const DISK: &str = include_str!("disk.yaml");
const DEPTH: u32 = 30;
const CLASSES: usize = 4;
const SECONDS: u64 = 60;
/// Without a scheduler.
const OPEN_SECONDS: u64 = 5;
const REQUEST: u64 = 128 << 10;
/// Windows shorter than this are not judged.
const WINDOW_MILLIS_MIN: u64 = 100;
/// Slices in which the beginning is looked at, so that windows may begin and end at any of them.
const FINE_MILLIS: u64 = 10;
/// Until then classes whose turns fall together have not settled in an order.
const SETTLING_MILLIS: u64 = 1_000;
/// What is allowed alongside one request.
const DEVIATION: f64 = 0.02;

/// One figure for each class.
type PerClass = [u64; CLASSES];

/// Layouts of shares, and the KB/s of each class.
type Published = Vec<(PerClass, PerClass)>;

/// What one layout of shares gave.
struct LayoutResult {
    shares: PerClass,
    /// The minute that was published.
    minute: BytesByClass,
    /// The same again, as far as the scale allows, in fine slices.
    fine: BytesByClass,
}

/// Bytes that each class had moved by the beginning of each slice, and by the end.
struct BytesByClass {
    slice_millis: u64,
    bytes: Vec<PerClass>,
}

/// One layout, under forebay and under the scheduler of the article.
struct Pair {
    published: PerClass,
    ours: LayoutResult,
    old: LayoutResult,
    /// Bytes of each class in [`OPEN_SECONDS`] without a scheduler.
    open: PerClass,
}

impl LayoutResult {
    fn measure(
        seed: Seed,
        scale: Scale,
        shares: PerClass,
        scheduler: &SchedulerConfig,
    ) -> Result<Self, String> {
        let fine_seconds = scale.seconds(5, SECONDS);
        Ok(Self {
            shares,
            minute: BytesByClass::measure(seed, shares, scheduler, SECONDS, WINDOW_MILLIS_MIN)?,
            fine: BytesByClass::measure(seed, shares, scheduler, fine_seconds, FINE_MILLIS)?,
        })
    }

    /// Bytes of each class in the whole run.
    fn total(&self) -> PerClass {
        self.minute.bytes.last().copied().unwrap_or_default()
    }

    /// The furthest that any class is from its share in any window that begins at `from_millis`
    /// or later, as a multiple of what is allowed.
    fn worst(&self, from_millis: u64) -> f64 {
        let worst = |moved: &BytesByClass| {
            let lengths = moved.slices(WINDOW_MILLIS_MIN)..moved.bytes.len();
            let worst = lengths.map(|slices| moved.worst(&self.shares, slices, from_millis));
            worst.fold(0.0, f64::max)
        };
        worst(&self.minute).max(worst(&self.fine))
    }
}

impl BytesByClass {
    fn measure(
        seed: Seed,
        shares: PerClass,
        scheduler: &SchedulerConfig,
        seconds: u64,
        slice_millis: u64,
    ) -> Result<Self, String> {
        let job = |(number, shares): (u32, u64)| {
            format!(
                "- name: C{number}\n  type: randread\n  shards: [0]\n  \
                 shard_info: {{ parallelism: 60, reqsize: 128kB, shares: {shares} }}\n"
            )
        };
        let jobs: String = (1..).zip(shares).map(job).collect();
        let (jobs, disk) = (scenario::jobs(&jobs, 1)?, seed.disk(DISK)?);
        let mut config = seed.config(jobs, disk, seconds * 1_000);
        config.scheduler = scheduler.clone();
        config.warmup = Duration::ZERO;
        config.trace_buckets = Some((seconds * 1_000 / slice_millis) as usize);
        let trace = scenario::run(config)?.trace.ok_or("the run was not traced")?;
        let slices = trace.classes.first().map_or(0, |class| class.samples.len());
        let mut sum = [0; CLASSES];
        let mut bytes = vec![sum];
        for slice in 0..slices {
            for (sum, class) in sum.iter_mut().zip(&trace.classes) {
                *sum += class.samples[slice].bytes;
            }
            bytes.push(sum);
        }
        Ok(Self { slice_millis, bytes })
    }

    /// This many slices are this long.
    fn slices(&self, millis: u64) -> usize {
        (millis / self.slice_millis) as usize
    }

    /// The furthest from its share of any class in any window of this many slices, as a multiple of
    /// what is allowed.
    fn worst(&self, shares: &PerClass, slices: usize, from_millis: u64) -> f64 {
        let starts = self.bytes.iter().zip(self.bytes.iter().skip(slices));
        let window = |(start, end): (&PerClass, &PerClass)| {
            let moved = core::array::from_fn(|class| end[class] - start[class]);
            let multiple = excess(shares, &moved).map(|(bytes, due)| {
                let allowed = (due * DEVIATION).max(REQUEST as f64);
                bytes.abs() / allowed
            });
            multiple.into_iter().fold(0.0, f64::max)
        };
        starts.skip(self.slices(from_millis)).map(window).fold(0.0, f64::max)
    }
}

/// How many bytes each class has beyond its share, and its share.
fn excess(shares: &PerClass, moved: &PerClass) -> [(f64, f64); CLASSES] {
    let (of_shares, total): (u64, u64) = (shares.iter().sum(), moved.iter().sum());
    core::array::from_fn(|class| {
        let due = total as f64 * shares[class] as f64 / of_shares as f64;
        (moved[class] as f64 - due, due)
    })
}

/// The furthest that any class is from its share, as a part of the share.
fn deviation(shares: &PerClass, moved: &PerClass) -> f64 {
    let parts = excess(shares, moved).map(|(bytes, due)| (bytes / due).abs());
    parts.into_iter().fold(0.0, f64::max)
}

fn measure(seed: Seed, scale: Scale) -> Result<Vec<Pair>, String> {
    let (forebay, of_2016) = (SchedulerConfig::by_figures(), of_2016(DEPTH));
    let open = SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let pair = |(shares, published)| {
        let ours = LayoutResult::measure(seed, scale, shares, &forebay)?;
        let old = LayoutResult::measure(seed, scale, shares, &of_2016)?;
        let open = BytesByClass::measure(seed, shares, &open, OPEN_SECONDS, WINDOW_MILLIS_MIN)?;
        let open = open.bytes.last().copied().unwrap_or_default();
        Ok(Pair { published, ours, old, open })
    };
    let published: Published = scenario::published(include_str!("published.yaml"))?;
    published.into_iter().map(pair).collect()
}

/// Repeats the table; the minute is one at every scale.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    Ok(report(scale, &measure(seed, scale)?))
}

fn report(scale: Scale, pairs: &[Pair]) -> Report {
    let mut report = Report {
        charts: charts(pairs),
        figures: figures(pairs),
        tables: vec![throughput(pairs), windows(pairs)],
        ..Report::default()
    };
    report.parameter(
        "disk",
        "Samsung 850 PRO: 563 MB/s, the sum of the published table (an input); 30 requests at a \
         time, 321 us each, from table 1",
    );
    report.parameter("load", "60 random reads of 128 KiB per class at a time, from one shard");
    report.parameter("duration", format!("{SECONDS} s, as published, without warm-up"));
    let fine_seconds = scale.seconds(5, SECONDS);
    report.parameter(
        "windows",
        format!("at steps of 100 ms, and of 10 ms in the first {fine_seconds} s"),
    );
    report.parameter("forebay", "pace + window, latency goal 0.75 ms");
    report.parameter("2016 queue", format!("{DEPTH} requests in the disk, tau 100 ms"));
    report
}

fn layout(shares: &PerClass) -> String {
    shares.map(|shares| shares.to_string()).join(", ")
}

fn figures(pairs: &[Pair]) -> Vec<Figure> {
    let of = |(row, Pair { published, ours, open, .. }): (usize, &Pair)| {
        let (layout, total) = (layout(&ours.shares), ours.total());
        let classes = (1..).zip(published.iter().zip(total)).map(move |(class, figures)| {
            let (&published, bytes) = figures;
            let kb = |bytes: u64, seconds: u64| bytes as f64 / KB as f64 / seconds as f64;
            let (name, ours) = (format!("{layout}: C{class}"), kb(bytes, SECONDS));
            Figure::new(name, "KB/s", published as f64, ours)
                .compared_with("no scheduler", kb(open[class - 1], OPEN_SECONDS))
                .at(format!("C{class}"), row, pairs.len())
        });
        classes.collect::<Vec<_>>()
    };
    pairs.iter().enumerate().flat_map(of).collect()
}

fn throughput(pairs: &[Pair]) -> Table {
    let columns = ["shares", "", "C1", "C2", "C3", "C4", "furthest from share"];
    let mut table = Table::new("Throughput in KB/s (of 1024 bytes)", &columns);
    for Pair { published, ours, old, .. } in pairs {
        let shares = &ours.shares;
        let mut add = |who: &str, moved: &PerClass, rates: PerClass| {
            let [c1, c2, c3, c4] = rates.map(|rate| thousands(rate as f64));
            let off = format!("{:.2} %", deviation(shares, moved) * 100.0);
            table.row([layout(shares), who.to_owned(), c1, c2, c3, c4, off]);
        };
        let rates = |moved: PerClass| moved.map(|bytes| bytes / KB / SECONDS);
        add("published", published, *published);
        add("2016 queue, simulated", &old.total(), rates(old.total()));
        add("forebay", &ours.total(), rates(ours.total()));
    }
    table
}

fn windows(pairs: &[Pair]) -> Table {
    let title = "Furthest from its share in any window of 100 ms or more, as a multiple of \
                 max(2 %, one request)";
    let columns = ["shares", "2016 queue, simulated", "forebay", "forebay, after the first second"];
    let mut table = Table::new(title, &columns);
    for Pair { ours, old, .. } in pairs {
        let worst = [old.worst(0), ours.worst(0), ours.worst(SETTLING_MILLIS)];
        let [old, start, settled] = worst.map(|worst| format!("{worst:.2}"));
        table.row([layout(&ours.shares), old, start, settled]);
    }
    table
}

fn charts(pairs: &[Pair]) -> Vec<Chart> {
    const LAYOUT: usize = 2;
    const SHOWN_MILLIS: u64 = 10_000;
    const WINDOW_MILLIS_MAX: u64 = 1_000;
    let Some(Pair { published, ours, old, .. }) = pairs.get(LAYOUT) else { return Vec::new() };
    let title = format!("Shares {}", layout(&ours.shares));
    let mut bandwidth = Chart::new(&format!("{title}: bandwidth"), "time (s)", "MB/s");
    let minute = &ours.minute;
    for (class, published) in published.iter().enumerate() {
        let slices = minute.bytes.array_windows().take(minute.slices(SHOWN_MILLIS)).enumerate();
        let millis = minute.slice_millis as f64;
        let point = |(at, [from, to]): (usize, &[PerClass; 2])| {
            (at as f64 * millis / 1e3, (to[class] - from[class]) as f64 / 1e3 / millis)
        };
        let across = [0, SHOWN_MILLIS].map(|at| (at as f64 / 1e3, (*published * KB) as f64 / 1e6));
        let name = format!("C{}", class + 1);
        bandwidth = bandwidth.with(&name, Mark::Line, slices.map(point).collect());
        bandwidth = bandwidth.with(&format!("{name}, published"), Mark::Dashed, across.into());
    }
    let lengths = |LayoutResult { shares, fine, .. }: &LayoutResult| {
        let slices = fine.slices(WINDOW_MILLIS_MIN)..=fine.slices(WINDOW_MILLIS_MAX);
        let millis = |slices: usize| slices as f64 * fine.slice_millis as f64;
        slices.map(|slices| (millis(slices), fine.worst(shares, slices, 0))).collect()
    };
    let windows = Chart::new(
        &format!("{title}: furthest from its share in any window"),
        "length of the window (ms)",
        "multiple of max(2 %, one request)",
    );
    let windows = windows.with("2016 queue, simulated", Mark::Line, lengths(old)).with(
        "forebay",
        Mark::Line,
        lengths(ours),
    );
    vec![bandwidth, windows]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn every_class_gets_its_share() {
        for seed in seeds() {
            for Pair { ours, .. } in &measure(seed, Scale::Short).unwrap() {
                let (shares, total) = (&ours.shares, ours.total());
                assert!(deviation(shares, &total) <= 0.005, "{shares:?}: {total:?}");
                let settled = ours.worst(SETTLING_MILLIS);
                assert!(settled <= 1.0, "{shares:?}: {settled}");
                // The target is 1.0 from the start too: 17 requests of the others between two of
                // the smallest class, where 15 are due, are what start-time fair queueing allows.
                let start = ours.worst(0);
                assert!(start <= 17.0 / 15.0 + 1e-9, "{shares:?}: {start}");
            }
        }
    }
}
