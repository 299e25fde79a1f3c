//! Where a run was in the region of mixes of its disk, second by second.

use std::ops::Range;

use forebay_load::results::model::{RegionInUse, RunResult};
use forebay_load::results::series::{JobSeries, Series};
use forebay_report::{Chart, Mark};

/// Bytes of the requests that regions are of: reads, and writes.
const LENS: [f64; 2] = [4096.0, 131_072.0];
/// Requests of more than this many times that, or fewer, are another load, and a region that ends
/// at this many times what the disk does is another disk's.
const OTHER: f64 = 2.0;

/// A run drawn into its region.
pub(super) struct Drawn {
    /// In words.
    pub(super) said: String,
    /// The region with a point for each second, and how far to the border each second was.
    pub(super) charts: [Chart; 2],
}

/// Where a second was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    Outside,
    /// At sizes or rates that the region was not measured at.
    Unmeasured,
}

impl Place {
    const ALL: [(Self, &str); 3] = [
        (Self::Inside, "in the region"),
        (Self::Outside, "outside of it"),
        (Self::Unmeasured, "at loads that were not measured"),
    ];
}

/// What reads and writes did in one second.
struct Second {
    /// When it ended, in seconds.
    end: f64,
    /// Megabytes written, and reads.
    at: (f64, f64),
    /// How far to the border that is: 1 is on it.
    gauge: f64,
    place: Place,
}

/// The run in its region; why it is not drawn there, or `None` where there is no region, or nothing
/// was recorded over time.
pub(super) fn of(run: &RunResult) -> Option<Result<Drawn, String>> {
    let region = run.properties.region.as_ref().filter(|region| !region.border.is_empty())?;
    let series = run.series.as_ref()?;
    if let Some(why) = refused(run, region) {
        return Some(Err(why));
    }
    let seconds = seconds(run, region, series);
    let places = Place::ALL.map(|(place, name)| {
        let ends = seconds.iter().filter(|second| second.place == place);
        (name, ends.map(|second| second.end).collect::<Vec<_>>())
    });
    let said = places.iter().map(|(name, ends)| match ends.len() {
        0 => format!("never {name}"),
        count if count == seconds.len() => format!("{count} of {count} seconds {name}"),
        count => format!("{count} of {} seconds {name} ({})", seconds.len(), spans(ends)),
    });
    let said = said.collect::<Vec<_>>().join(", ");
    let said = format!("the region that keeps {region}: {said}.");
    Some(Ok(Drawn { said, charts: charts(region, &seconds) }))
}

/// Why a region is not that of the run: it is of another goal, or of another disk.
fn refused(run: &RunResult, region: &RegionInUse) -> Option<String> {
    if region.asked.is_some_and(|asked| asked.far) {
        return Some(format!(
            "not drawn, because the region is of another goal: it meets {region}."
        ));
    }
    let known = [run.properties.write_bandwidth, run.properties.read_iops];
    let differs = region.ends.iter().zip(known).any(|(&end, known)| {
        known.is_some_and(|known| {
            let ratio = end / (known as f64).max(1.0);
            !(1.0 / OTHER..=OTHER).contains(&ratio)
        })
    });
    let name = |write: f64, read: f64| format!("{:.0} MB/s and {read:.0} reads/s", write / 1e6);
    let [write, read] = known.map(|known| known.unwrap_or_default() as f64);
    differs.then(|| {
        format!(
            "not drawn, because the region is of another disk: it ends at {}, and this disk does \
             {}.",
            name(region.ends[0], region.ends[1]),
            name(write, read)
        )
    })
}

/// The measured seconds of a run.
fn seconds(run: &RunResult, region: &RegionInUse, series: &Series) -> Vec<Second> {
    let (mut seconds, mut first) = (Vec::new(), 0);
    let mut begins = 0.0;
    for (sample, &end) in series.ends_seconds.iter().enumerate() {
        if end <= series.measured_from_seconds {
            (first, begins) = (sample + 1, end);
        } else if end >= begins + 1.0 - 1e-6 || sample + 1 == series.ends_seconds.len() {
            seconds.push(second(run, region, series, first..sample + 1));
            (first, begins) = (sample + 1, end);
        }
    }
    seconds
}

fn second(run: &RunResult, region: &RegionInUse, series: &Series, samples: Range<usize>) -> Second {
    let ends = &series.ends_seconds;
    let start = |sample: usize| sample.checked_sub(1).map_or(0.0, |before| ends[before]);
    let length = |sample: usize| ends[sample] - start(sample);
    let all: f64 = samples.clone().map(length).sum();
    let mean = |column: &[f64]| {
        let weighed = samples.clone().map(|sample| column[sample] * length(sample));
        weighed.sum::<f64>() / all.max(f64::MIN_POSITIVE)
    };
    let sum = |writes: bool, of: fn(&JobSeries) -> &Vec<f64>| {
        let loads = run.classes.iter().filter(|job| direction(&job.load) == Some(writes));
        let jobs = loads.filter_map(|job| series.jobs.iter().find(|other| other.name == job.name));
        jobs.map(|job| mean(of(job))).sum::<f64>()
    };
    let [reads, writes] = [false, true].map(|writes| {
        (sum(writes, |job| &job.iops), sum(writes, |job| &job.bandwidth_bytes_per_second))
    });
    let is_other = |(count, bytes): (f64, f64), len: f64| {
        count > 0.0 && !(len / OTHER..=len * OTHER).contains(&(bytes / count))
    };
    let gauge = gauge(region, writes.1, reads.0);
    let beyond = writes.1 > region.ends[0] || reads.0 > region.ends[1];
    let place = match () {
        () if beyond || is_other(reads, LENS[0]) || is_other(writes, LENS[1]) => Place::Unmeasured,
        () if gauge > 1.0 => Place::Outside,
        () => Place::Inside,
    };
    Second { end: ends[samples.end - 1], at: (writes.1 / 1e6, reads.0), gauge, place }
}

/// Whether a load writes, by its first word; `None` for what does neither that nor read.
fn direction(load: &str) -> Option<bool> {
    match load.split(',').next()? {
        "seqread" | "randread" => Some(false),
        "overwrite" | "randwrite" | "append" => Some(true),
        _ => None,
    }
}

/// How far to the border a load is: 1 is on it.
fn gauge(region: &RegionInUse, written: f64, read: f64) -> f64 {
    let parts = |write: f64, read: f64| (write / region.ends[0], read / region.ends[1]);
    let (write, read) = parts(written, read);
    let time = write + read;
    if time <= 0.0 {
        return 0.0;
    }
    let place = write / time * (region.border.len() - 1) as f64;
    let low = (place as usize).min(region.border.len().saturating_sub(2));
    let radius = |step: usize| {
        let point = region.border.get(step).copied().unwrap_or([0.0; 2]);
        let (write, read) = parts(point[0], point[1]);
        write + read
    };
    let (from, to) = (radius(low), radius(low + 1));
    time / (from + (to - from) * (place - low as f64)).max(f64::MIN_POSITIVE)
}

/// Ends of seconds, those that follow each other as one.
fn spans(ends: &[f64]) -> String {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for &end in ends {
        match spans.last_mut().filter(|span| end - span.1 < 1.5) {
            Some(span) => span.1 = end,
            None => spans.push((end, end)),
        }
    }
    let text = spans.iter().map(|(from, to)| match to > from {
        true => format!("{from:.0} to {to:.0} s"),
        false => format!("{to:.0} s"),
    });
    text.collect::<Vec<_>>().join(", ")
}

fn charts(region: &RegionInUse, seconds: &[Second]) -> [Chart; 2] {
    let [write, read] = region.ends;
    let border = region.border.iter().map(|&[write, read]| (write / 1e6, read)).collect();
    let points = |of: fn(&Second) -> (f64, f64), place: Place| {
        seconds.iter().filter(|second| second.place == place).map(of).collect()
    };
    let mut map =
        Chart::new("A point for each second", "MB written per second", "reads per second")
            .with("border of the region", Mark::Line, border)
            .with("straight line", Mark::Dashed, vec![(0.0, read), (write / 1e6, 0.0)]);
    let mut time = Chart::new("Of the way to the border, by second", "seconds", "%");
    for (place, name) in Place::ALL {
        map = map.with(name, Mark::Dots, points(|second| second.at, place));
        let of_border = |second: &Second| (second.end, second.gauge * 100.0);
        time = time.with(name, Mark::Dots, points(of_border, place));
    }
    let ends = seconds.first().zip(seconds.last());
    let whole = ends.map_or_else(Vec::new, |(a, b)| vec![(a.end, 100.0), (b.end, 100.0)]);
    [map, time.with("border of the region", Mark::Dashed, whole)]
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use forebay_load::results::model::{ClassResult, Properties, PropertiesSource, RegionAsked};

    use super::*;
    use crate::report::tests::run as simulated;

    /// A straight region at half of what the disk does.
    fn region() -> RegionInUse {
        let ends = [800e6, 400e3];
        let step = |step: f64| [ends[0] * step / 8.0, ends[1] * (4.0 - step) / 8.0];
        let border = [0.0, 1.0, 2.0, 3.0, 4.0].map(step).to_vec();
        RegionInUse { read_percentile: 95.0, latency_us: 1e3, asked: None, border, ends }
    }

    /// A run of reads and writes: reads per second, MB/s and bytes of a read, for each second.
    fn run(region: RegionInUse, seconds: &[(f64, f64, f64)]) -> RunResult {
        let job = |name: &str, of: fn(&(f64, f64, f64)) -> (f64, f64)| JobSeries {
            name: name.to_owned(),
            iops: seconds.iter().map(|second| of(second).0).collect(),
            bandwidth_bytes_per_second: seconds.iter().map(|second| of(second).1).collect(),
            ..JobSeries::default()
        };
        let jobs = vec![
            job("reads", |&(reads, _, len)| (reads, reads * len)),
            job("writes", |&(_, megabytes, _)| (megabytes * 1e6 / LENS[1], megabytes * 1e6)),
        ];
        let ends_seconds = (1..=seconds.len()).map(|end| end as f64).collect();
        let series = Series { ends_seconds, jobs, ..Series::default() };
        let properties = Properties {
            source: PropertiesSource::File,
            read_iops: Some(380_000),
            read_bandwidth: None,
            write_iops: None,
            write_bandwidth: Some(900_000_000),
            region: Some(region),
            warnings: Vec::new(),
        };
        let run = simulated(|config| config.duration = Duration::from_millis(10));
        let loads = [("reads", "randread, shards 0"), ("writes", "append, shards 0")];
        let class = |(name, load): (&str, &str)| ClassResult {
            name: name.to_owned(),
            load: load.to_owned(),
            ..run.classes[0].clone()
        };
        let classes = loads.map(class).to_vec();
        RunResult { properties, series: Some(Box::new(series)), classes, ..run }
    }

    #[test]
    fn each_second_is_inside_or_outside_or_was_not_measured() {
        let seconds = [
            (100e3, 100.0, 4096.0),
            (100e3, 300.0, 4096.0),
            (10e3, 100.0, 131_072.0),
            (10e3, 900.0, 4096.0),
            (0.0, 0.0, 4096.0),
        ];
        let Drawn { said, charts: [map, time] } = of(&run(region(), &seconds)).unwrap().unwrap();
        assert_eq!(
            said,
            "the region that keeps p95 of reads within 1.000 ms: 2 of 5 seconds in the region (1 s, \
             5 s), 1 of 5 seconds outside of it (2 s), 2 of 5 seconds at loads that were not measured \
             (3 to 4 s)."
        );
        assert_eq!(map.series[2].points, [(100.0, 100e3), (0.0, 0.0)]);
        // 100,000 reads are half of the way, and 300 MB/s three quarters
        assert_eq!(time.series[1].points, [(2.0, 125.0)]);
    }

    #[test]
    fn a_region_of_another_goal_or_disk_is_refused_with_both_names() {
        let asked = RegionAsked { read_percentile: 95.0, latency_us: 100.0, far: true };
        let of_goal = RegionInUse { asked: Some(asked), ..region() };
        let why = |region| of(&run(region, &[(1.0, 1.0, 4096.0)])).unwrap().err().unwrap();
        assert_eq!(
            why(of_goal),
            "not drawn, because the region is of another goal: it meets p95 of reads within 1.000 ms, \
             which is far from p95 of reads within 0.100 ms."
        );
        let of_disk = RegionInUse { ends: [800e6, 90e3], ..region() };
        assert_eq!(
            why(of_disk),
            "not drawn, because the region is of another disk: it ends at 800 MB/s and 90000 reads/s, \
             and this disk does 900 MB/s and 380000 reads/s."
        );
        assert!(of(&run(RegionInUse { border: Vec::new(), ..region() }, &[])).is_none());
    }
}
