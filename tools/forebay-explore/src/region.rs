//! Regions: which mixes of reads and writes are allowed.

use forebay_sim::surface::Region;

use crate::loads::{Figures, Load};

/// Steps of the table of radii, over the part of writes.
pub const RADII_STEPS: usize = 32;
/// What a radius of 1 is in the table of whole numbers.
pub const RADIUS_ONE: u32 = 1 << 16;
/// What rounding may take.
const EPSILON: f64 = 1e-9;

/// Which mixes of reads and writes are allowed, in parts of what the disk does alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// (w / a)^p + (r / b)^p at most 1.
    Power(Power),
    /// At each part of writes, so much disk time: equal steps of the part, straight in between.
    Radii(Vec<f64>),
}

/// The parameters of a [`Shape::Power`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Where the border meets the axis of writes, 1 for what the disk does alone.
    pub write: f64,
    /// Where it meets that of reads.
    pub read: f64,
    /// Its shape between: 1 is straight, less sags, more bulges.
    pub exponent: f64,
}

impl Shape {
    /// The straight line between the disk's figures.
    pub const LINE: Self = Self::Power(Power { write: 1.0, read: 1.0, exponent: 1.0 });

    /// The disk time, as the straight line counts it, that is allowed each second where writes
    /// have the part `write_part` (0 to 1) of it: nothing beyond what the disk does alone.
    pub fn radius(&self, write_part: f64) -> f64 {
        let alone = 1.0 / write_part.max(1.0 - write_part);
        self.fitted_radius(write_part).min(alone)
    }

    fn fitted_radius(&self, write_part: f64) -> f64 {
        match self {
            Self::Power(Power { write, read, exponent }) => {
                let region =
                    Region { write_bandwidth: *write, read_iops: *read, exponent: *exponent };
                1.0 / region.gauge(write_part, 1.0 - write_part).max(f64::MIN_POSITIVE)
            }
            Self::Radii(radii) => {
                let steps = radii.len().saturating_sub(1);
                let place = write_part.clamp(0.0, 1.0) * steps as f64;
                let step = (place as usize).min(steps.saturating_sub(1));
                let (low, high) = (radii[step], radii[(step + 1).min(steps)]);
                low + (high - low) * (place - step as f64)
            }
        }
    }

    pub(crate) fn allows(&self, load: &Load) -> bool {
        load.time() <= self.radius(load.write_part()) * (1.0 + EPSILON)
    }

    /// The radii at [`RADII_STEPS`] equal steps of the part of writes, from reads alone to writes
    /// alone, in whole numbers: [`RADIUS_ONE`] is a radius of 1, and the least is 1.
    pub fn table(&self) -> [u32; RADII_STEPS + 1] {
        core::array::from_fn(|step| {
            let radius = self.radius(step as f64 / RADII_STEPS as f64);
            (radius * f64::from(RADIUS_ONE)).round().clamp(1.0, f64::from(u32::MAX)) as u32
        })
    }

    /// The border in the disk's units, as (bytes written, reads) per second, from reads alone to
    /// writes alone.
    pub fn border(&self, figures: Figures, steps: usize) -> Vec<(f64, f64)> {
        let point = |step: usize| {
            let part = step as f64 / steps as f64;
            let radius = self.radius(part);
            let (write, read) = (radius * part, radius * (1.0 - part));
            (write * figures.write_bandwidth, read * figures.read_iops)
        };
        (0..=steps).map(point).collect()
    }
}
