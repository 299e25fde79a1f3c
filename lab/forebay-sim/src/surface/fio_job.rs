//! A job of fio: what it carried, and how long reads took.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::carried::{Carried, Scales, is_short, place};
use super::grid::{Cell, LATENCY_MAX_US};

const KIB: f64 = 1024.0;
/// Percentiles are found by name, which has more or fewer zeros.
const SAME: f64 = 1e-6;

/// A group of jobs.
#[derive(Deserialize)]
pub(super) struct Job {
    pub(super) jobname: String,
    #[serde(default)]
    read: OneDirection,
    #[serde(default)]
    write: OneDirection,
}

/// What it did in one direction.
#[derive(Default, Deserialize)]
struct OneDirection {
    iops: Option<f64>,
    bw_bytes: Option<f64>,
    /// In KiB per second: all that fio 2 has.
    bw: Option<f64>,
    /// From when a request was sent to its end, in nanoseconds.
    clat_ns: Option<Latencies>,
    /// With the time to send it.
    lat_ns: Option<Latencies>,
    /// The same of fio 2, in microseconds.
    clat: Option<Latencies>,
    lat: Option<Latencies>,
}

#[derive(Deserialize)]
struct Latencies {
    #[serde(rename = "N")]
    count: Option<f64>,
    percentile: Option<BTreeMap<String, f64>>,
}

/// What is known of a load.
pub(super) enum Judged {
    Cell(Cell),
    /// The disk did not carry this load.
    Missed((f64, f64)),
    /// Nothing: no read was done.
    Unknown,
}

impl OneDirection {
    fn bytes(&self) -> Option<f64> {
        self.bw_bytes.or_else(|| self.bw.map(|kib| kib * KIB))
    }

    /// Bytes of a request, where there were any.
    fn request_bytes(&self) -> Option<f64> {
        let iops = self.iops.filter(|&iops| iops > 0.0)?;
        self.bytes().map(|bytes| bytes / iops).filter(|&bytes| bytes >= 1.0)
    }

    /// All kinds of latencies, the best first.
    fn kinds(&self) -> [(Option<&Latencies>, Kind); 4] {
        let kind = |nanos, with_sending| Kind { nanos, with_sending };
        [
            (self.clat_ns.as_ref(), kind(1.0, false)),
            (self.lat_ns.as_ref(), kind(1.0, true)),
            (self.clat.as_ref(), kind(1e3, false)),
            (self.lat.as_ref(), kind(1e3, true)),
        ]
    }

    /// Whether nothing was done: a kind that was not measured has no `N` other than 0 either.
    fn is_without_requests(&self) -> bool {
        let counts = self.kinds().into_iter().filter_map(|(kind, _)| kind?.count);
        let counts: Vec<f64> = counts.collect();
        !counts.is_empty() && counts.iter().all(|&count| count == 0.0)
    }

    /// The percentiles of the best kind that has some.
    fn percentiles(&self) -> Option<(&BTreeMap<String, f64>, Kind)> {
        self.kinds().into_iter().find_map(|(latencies, kind)| {
            let latencies = latencies.filter(|latencies| latencies.count != Some(0.0))?;
            let percentiles = latencies.percentile.as_ref()?;
            (!percentiles.is_empty()).then_some((percentiles, kind))
        })
    }
}

/// What latencies are.
#[derive(Clone, Copy)]
struct Kind {
    /// Nanoseconds of their unit.
    nanos: f64,
    /// With the time to send a request.
    with_sending: bool,
}

impl Job {
    /// Bytes written and reads per second.
    pub(super) fn carried(&self) -> (f64, f64) {
        (self.write.bytes().unwrap_or_default(), self.read.iops.unwrap_or_default())
    }

    /// Which figure is missing of what the job was to carry.
    fn missing(&self, at: (f64, f64)) -> Option<&'static str> {
        let is_missing = |expected: f64, found: Option<f64>| expected > 0.0 && found.is_none();
        if is_missing(at.0, self.write.bytes()) {
            return Some("`bw_bytes` of its writes");
        }
        is_missing(at.1, self.read.iops).then_some("`iops` of its reads")
    }

    /// The first rate below 0.
    fn negative(&self) -> Option<String> {
        [("reads", &self.read), ("writes", &self.write)].iter().find_map(|(kind, of)| {
            let rates = [("iops", of.iops), ("bw_bytes", of.bw_bytes), ("bw", of.bw)];
            rates.into_iter().find_map(|(name, rate)| {
                let rate = rate.filter(|&rate| rate < 0.0)?;
                Some(format!("`{name}` of its {kind} is {rate:?}; expected 0 or more"))
            })
        })
    }

    /// What was measured under the load that the name calls `at`.
    pub(super) fn judge(
        &self,
        at: (f64, f64),
        scales: &Scales,
        seen: &mut Carried,
    ) -> Result<Judged, String> {
        let (expected, carried) = (scales.expected(at), self.carried());
        if let Some(figure) = self.missing(at) {
            return Err(format!("no {figure}, so what it carried is not known; {REMEDY}"));
        }
        if let Some(message) = self.negative() {
            return Err(message);
        }
        seen.request_sizes(self.read.request_bytes(), self.write.request_bytes());
        if self.read.is_without_requests() {
            seen.without_reads(&self.jobname);
            return Ok(Judged::Unknown);
        }
        seen.load(&self.jobname, expected, carried, scales);
        if is_short(expected, carried) {
            return Ok(Judged::Missed(expected));
        }
        let [p50, p95, p99, p999] = self.percentiles(seen)?;
        let us = |nanos: f64| nanos / 1e3;
        let (write_bandwidth, read_iops) = place(expected, carried, scales);
        Ok(Judged::Cell(Cell {
            write_bandwidth,
            read_iops,
            p50_us: us(needed(p50, "median")?),
            p95_us: us(needed(p95, "95th percentile")?),
            p99_us: p99.map(us),
            p999_us: p999.map(us),
            clipped: false,
        }))
    }

    /// The median, and the 95th, 99th and 99.9th percentile of reads, in nanoseconds.
    fn percentiles(&self, seen: &mut Carried) -> Result<[Option<f64>; 4], String> {
        let Some((percentiles, kind)) = self.read.percentiles() else {
            return Err(format!("no percentiles of its read latencies; {REMEDY}"));
        };
        seen.latencies(kind.with_sending, kind.nanos > 1.0);
        let of = |wanted: f64| {
            let is_it =
                |name: &str| name.parse::<f64>().is_ok_and(|name| (name - wanted).abs() < SAME);
            let found = percentiles.iter().find(|(name, _)| is_it(name));
            found.map(|(_, value)| value * kind.nanos)
        };
        let known = [50.0, 95.0, 99.0, 99.9].map(of);
        let mut least = f64::MIN_POSITIVE;
        for nanos in known.into_iter().flatten() {
            if !(least..=LATENCY_MAX_US * 1e3).contains(&nanos) {
                return Err(format!(
                    "a read percentile of {nanos} ns; expected more than 0, rising, to a minute"
                ));
            }
            least = nanos;
        }
        Ok(known)
    }
}

const REMEDY: &str =
    "run fio with --clat_percentiles=1 --percentile_list=50:95:99:99.9 --output-format=json+";

fn needed(percentile: Option<f64>, name: &str) -> Result<f64, String> {
    percentile.ok_or_else(|| format!("no {name} of its read latencies; {REMEDY}"))
}
