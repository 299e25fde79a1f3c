//! What a disk gives by the number of requests in it.

use forebay_core::Policy;
use forebay_sim::simulation::SchedulerConfig;

use crate::experiment::Seed;
use crate::report::Report;
use crate::scenario;

const DISK: &str = include_str!("disk.yaml");
pub(crate) const SMALL: u64 = 4 << 10;
pub(crate) const LARGE: u64 = 128 << 10;
/// As many as the article's figure shows.
pub(crate) const CONCURRENCY_MAX: u32 = 140;
/// What a disk gives at the greatest depth stands for the most that it can.
const CONCURRENCY_OF_PEAK: u32 = 1024;
/// The knee is where this part of the most is reached.
pub(crate) const SATURATED: f64 = 0.95;

/// What a disk gives at one concurrency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) concurrency: u32,
    pub(crate) requests_per_second: f64,
    pub(crate) mean_micros: f64,
}

/// Points by concurrency for requests of one size, and the last point far beyond the rest.
pub(crate) struct Curve {
    points: Vec<Point>,
    peak: Point,
}

impl Curve {
    pub(crate) fn measure(seed: Seed, len: u64) -> Result<Self, String> {
        let steps = (1..16).chain((16..=CONCURRENCY_MAX).step_by(4));
        let points =
            steps.map(|concurrency| measure(seed, len, concurrency)).collect::<Result<_, _>>()?;
        Ok(Self { points, peak: measure(seed, len, CONCURRENCY_OF_PEAK)? })
    }

    pub(crate) fn part_of_peak(&self, point: &Point) -> f64 {
        point.requests_per_second / self.peak.requests_per_second
    }

    /// The least concurrency that saturates the disk, if any in the figure does.
    pub(crate) fn knee(&self) -> Option<&Point> {
        self.points.iter().find(|point| self.part_of_peak(point) >= SATURATED)
    }

    pub(crate) fn at(&self, concurrency: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.concurrency >= concurrency)
    }

    pub(crate) fn line(&self, of: impl Fn(&Point) -> f64) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (f64::from(point.concurrency), of(point))).collect()
    }
}

fn measure(seed: Seed, len: u64, concurrency: u32) -> Result<Point, String> {
    let jobs = format!(
        "- name: reads\n  type: randread\n  shards: [0]\n  data_size: 16GB\n  \
         shard_info: {{ parallelism: {concurrency}, reqsize: {len} }}\n"
    );
    let mut config = seed.config(scenario::jobs(&jobs, 1)?, seed.disk(DISK)?, 50);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let outcome = scenario::run(config)?;
    let reads = scenario::job(&outcome, "reads")?;
    let (requests_per_second, mean_micros) = (reads.iops, reads.disk_us.mean);
    Ok(Point { concurrency, requests_per_second, mean_micros })
}

pub(crate) fn describe(report: &mut Report) {
    report.parameter(
        "disk",
        "the drive of an i3.2xlarge: 412,500 reads/s (AWS), 0.1 ms (diskplorer); 2 GB/s assumed",
    );
    report.parameter("made of", "40 dies with pages of 16 KiB, 97 us each; 10 us to answer");
    report.parameter("load", "so many random reads at a time, 50 ms each after 100 ms");
    report.parameter("saturated", format!("at {:.0} % of the most", SATURATED * 100.0));
}
