//! What the measured loads say of all loads between them.

use crate::loads::Load;

/// Sites along each axis.
const STEPS: usize = 30;
/// How far a measured load counts, in mean distances of loads.
const REACH: f64 = 0.4;
/// How sure a latency makes that its neighbourhood keeps the goal: 1.08 times the goal
/// breaks it with 73 %.
const DOUBT: f64 = 0.08;

/// A load, and what is believed of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Writes and reads as parts of what the disk does alone.
    pub(crate) write: f64,
    pub(crate) read: f64,
    /// How likely it breaks the goal, 0 to 1.
    pub(crate) broken: f64,
}

impl Site {
    /// The disk time that it takes each second, by the straight line.
    pub(crate) fn time(&self) -> f64 {
        self.write + self.read
    }

    /// The part of writes in that.
    pub(crate) fn write_part(&self) -> f64 {
        self.write / self.time().max(f64::MIN_POSITIVE)
    }
}

/// Sites in equal distances over all that was measured: a weighted mean of the latencies around.
pub(crate) fn sites(loads: &[Load]) -> Vec<Site> {
    let most = |figure: fn(&Load) -> f64| loads.iter().map(figure).fold(0.0, f64::max);
    let (write_max, read_max) = (most(|load| load.write), most(|load| load.read));
    let reach = REACH / libm::sqrt(loads.len().max(1) as f64);
    let step = |index: usize, max: f64| max * index as f64 / STEPS as f64;
    let all = (0..=STEPS).flat_map(|write| (1..=STEPS).map(move |read| (write, read)));
    let site = |(write, read): (usize, usize)| {
        let (write, read) = (step(write, write_max), step(read, read_max));
        let (mut sum, mut weights) = (0.0, f64::MIN_POSITIVE);
        for load in loads {
            let across = (load.write - write) / write_max.max(f64::MIN_POSITIVE);
            let up = (load.read - read) / read_max.max(f64::MIN_POSITIVE);
            let distance = (across * across + up * up) / (2.0 * reach * reach);
            // beyond the reach of all of them the nearest decides
            let weight = libm::exp(-distance.min(600.0));
            sum += weight * load.excess;
            weights += weight;
        }
        let broken = 1.0 / (1.0 + libm::exp(-sum / weights / DOUBT));
        Site { write, read, broken }
    };
    all.map(site).collect()
}
