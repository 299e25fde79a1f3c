//! The read latencies of a [`SurfaceModel`] under random load, in closed form.

use super::exponentials::Exponentials;
use super::model::SurfaceModel;

/// Bytes of the writes that surfaces are measured with.
const WRITE_LEN: f64 = 131_072.0;
/// Probes per second where a surface was measured without reads.
const PROBE_IOPS: f64 = 10.0;
/// A load this close to what a queue can take counts as too much.
const LOAD_MAX: f64 = 0.998;
/// More steps than a percentile ever takes.
const STEPS_MAX: usize = 60;
/// A step this small, relatively, is the last: the error falls with its square.
const STEP_MIN: f64 = 0.02;

/// A median and a 95th percentile, in microseconds.
pub type Percentiles = (f64, f64);

/// The median and the 95th percentile of reads at random times,
/// `read_iops` per second or else some probes, alongside writes of 128 KiB;
/// `None` if the disk cannot carry the load.
pub fn percentiles(
    model: &SurfaceModel,
    write_bandwidth: f64,
    read_iops: f64,
) -> Option<Percentiles> {
    percentiles_near(model, write_bandwidth, read_iops, (0.0, 0.0))
}

/// [`percentiles`], found the sooner the nearer they are to `near`.
pub(super) fn percentiles_near(
    model: &SurfaceModel,
    write_bandwidth: f64,
    read_iops: f64,
    near: Percentiles,
) -> Option<Percentiles> {
    let load = Load::new(model, write_bandwidth, read_iops);
    if !load.is_carried() {
        return None;
    }
    let busy = load.at_gate().then(&Exponentials::of_server(load.die_streams()));
    let wait = busy.then(&load.turn()).then(&load.waking());
    let wait = wait.then(&Exponentials::of(model.jitter_us)).mixture();
    let percentile = |level: f64, near: f64| {
        model.latency_us + solve(level, (near - model.latency_us).max(0.0), |t| wait.tail(t))
    };
    Some((percentile(0.5, near.0), percentile(0.05, near.1)))
}

/// Whether the disk carries this load.
pub(super) fn carries(model: &SurfaceModel, write_bandwidth: f64, read_iops: f64) -> bool {
    Load::new(model, write_bandwidth, read_iops).is_carried()
}

/// A disk under load.
struct Load<'a> {
    model: &'a SurfaceModel,
    reads_per_us: f64,
    writes_per_us: f64,
    /// Parts of what the disk does of each kind alone.
    reads: f64,
    writes: f64,
    /// How far out in the disk's region that is.
    gauge: f64,
}

impl<'a> Load<'a> {
    fn new(model: &'a SurfaceModel, write_bandwidth: f64, read_iops: f64) -> Self {
        let read_iops = read_iops.max(PROBE_IOPS.min(0.1 * model.region.read_iops));
        Self {
            model,
            reads_per_us: read_iops / 1e6,
            writes_per_us: write_bandwidth / WRITE_LEN / 1e6,
            reads: read_iops / model.region.read_iops,
            writes: write_bandwidth / model.region.write_bandwidth,
            gauge: model.region.gauge(write_bandwidth, read_iops),
        }
    }

    fn is_carried(&self) -> bool {
        let busy: f64 = self.die_streams().iter().map(|(rate, mean)| rate * mean).sum();
        self.gauge < LOAD_MAX && busy < LOAD_MAX
    }

    /// By how much the mix makes everything dearer.
    fn price(&self) -> f64 {
        self.gauge / (self.reads + self.writes)
    }

    /// The part of reads that come after a write.
    fn turns(&self) -> f64 {
        self.writes_per_us / (self.writes_per_us + self.reads_per_us)
    }

    /// What reads take longer that come after a write.
    fn turn(&self) -> Exponentials {
        Exponentials::perhaps(self.turns(), self.model.turn_us)
    }

    /// What reads take longer that find the disk dozing.
    fn waking(&self) -> Exponentials {
        let dozes = libm::exp(-self.reads_per_us * self.model.lull_us);
        Exponentials::perhaps(dozes, self.model.lull_extra_us)
    }

    /// The wait for the gate.
    fn at_gate(&self) -> Exponentials {
        let region = &self.model.region;
        let (write_us, read_us) =
            (WRITE_LEN * 1e6 / region.write_bandwidth, 1e6 / region.read_iops);
        // what is left of the request that a newcomer finds under way, on average
        let work = self.writes * write_us + self.reads * read_us;
        let residual = self.price() * work / (self.writes + self.reads);
        let wait = residual / (1.0 - self.gauge);
        Exponentials::perhaps(self.gauge * libm::exp(-self.model.slack_us / wait), wait)
    }

    /// What a die does: reads and program operations, each with the rate per
    /// microsecond and the mean.
    fn die_streams(&self) -> [(f64, f64); 2] {
        let model = self.model;
        let read_us = (model.die_read_us + self.turns() * model.turn_us) * self.price();
        let programs_per_us = model.program_share * self.writes / model.program_us.max(1e-3);
        [
            (self.reads_per_us / f64::from(model.dies.max(1)), read_us),
            (programs_per_us, model.program_us * self.price()),
        ]
    }
}

/// Where `tail`, which gives the tail of a distribution over t >= 0 and its
/// derivative, falls to `level`; 0 if it begins there. `near` is a guess.
///
/// Newton's method on the logarithm, which is nearly a straight line for such
/// distributions, kept between bounds.
fn solve(level: f64, near: f64, tail: impl Fn(f64) -> (f64, f64)) -> f64 {
    let target = libm::log(level);
    let (mut low, mut high, mut t) = (0.0, f64::INFINITY, near);
    for _ in 0..STEPS_MAX {
        let (value, slope) = tail(t);
        *if value > level { &mut low } else { &mut high } = t;
        if high <= 0.0 {
            return 0.0;
        }
        let newton = t + (target - libm::log(value.max(f64::MIN_POSITIVE))) * value / slope;
        let next = match newton > low && newton < high {
            true => newton,
            false if high.is_finite() => (low + high) / 2.0,
            false => 4.0 * t + 1.0,
        };
        let there = (next - t).abs() < STEP_MIN * t;
        t = next;
        if there {
            break;
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Region;

    /// One server that reads keep busy for 100 us on average, and nothing else.
    const QUEUE: SurfaceModel = SurfaceModel {
        region: Region { write_bandwidth: 1e9, read_iops: 9_900.0, exponent: 1.0 },
        latency_us: 10.0,
        jitter_us: 0.0,
        dies: 1,
        die_read_us: 100.0,
        turn_us: 0.0,
        program_us: 0.0,
        program_share: 0.0,
        slack_us: 1e9,
        lull_us: 0.0,
        lull_extra_us: 0.0,
    };

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.005, "{found}, not {expected}");
    }

    #[test]
    fn a_single_queue_is_that_of_the_textbook() {
        // the wait exceeds t with probability load e^(-(1 - load) t / service)
        let (p50, p95) = percentiles(&QUEUE, 0.0, 8_000.0).unwrap();
        close(p50, 10.0 + 100.0 / 0.2 * (0.8_f64 / 0.5).ln());
        close(p95, 10.0 + 100.0 / 0.2 * (0.8_f64 / 0.05).ln());
        let (p50, p95) = percentiles(&QUEUE, 0.0, 1_000.0).unwrap();
        close(p50, 10.0);
        close(p95, 10.0 + 100.0 / 0.9 * (0.1_f64 / 0.05).ln());
    }

    #[test]
    fn rare_long_operations_raise_the_95th_percentile_and_not_the_median() {
        let busy = SurfaceModel { program_us: 1000.0, program_share: 0.5, dies: 8, ..QUEUE };
        let (p50, p95) = percentiles(&busy, 3e8, 1_000.0).unwrap();
        close(p50, 10.0);
        assert!((500.0..2_000.0).contains(&p95), "{p95}");
    }

    #[test]
    fn an_idle_disk_takes_its_latency_and_jitter() {
        let idle = SurfaceModel { jitter_us: 20.0, ..QUEUE };
        let (p50, p95) = percentiles(&idle, 0.0, 0.0).unwrap();
        close(p50, 10.0 + 20.0 * 2.0_f64.ln());
        close(p95, 10.0 + 20.0 * 20.0_f64.ln());
        let dozing = SurfaceModel { lull_us: 1.0, lull_extra_us: 1000.0, ..QUEUE };
        close(percentiles(&dozing, 0.0, 0.0).unwrap().0, 10.0 + 1000.0 * 2.0_f64.ln());
    }

    #[test]
    fn a_load_beyond_the_region_is_not_carried() {
        assert_eq!(percentiles(&QUEUE, 0.5e9, 5_000.0), None);
        assert!(percentiles(&QUEUE, 0.4e9, 5_000.0).is_some());
    }
}
