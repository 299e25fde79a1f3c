//! The prices of mixes by a region.

use forebay_core::{DiskModel, DiskTime, MIX_PRICES, MixPrices, ModelError, Op, PRICE_ONE, Policy};

use super::{DiskProperties, MixRegion, RADIUS_ONE};

/// The request sizes in which the ends of a region are counted, in bytes.
const READ_LEN: u64 = 4096;
const WRITE_LEN: u64 = 128 << 10;

impl DiskProperties {
    /// [`DiskProperties::model`] with the prices of mixes in [the region](Self::region) of
    /// `policy`, if there is one.
    ///
    /// # Errors
    /// As for [`DiskProperties::model`].
    pub fn model_under(&self, policy: &Policy) -> Result<DiskModel, ModelError> {
        Ok(self.priced(self.model()?, policy, 1))
    }

    /// `model`, of one of `parts` equal parts of the disk, with the prices of mixes in the region
    /// of `policy`.
    pub(crate) fn priced(&self, model: DiskModel, policy: &Policy, parts: u64) -> DiskModel {
        let prices = self.region(policy).map(|region| region.prices(&model, parts));
        model.with_mix_prices(prices)
    }
}

impl MixRegion {
    /// The prices by the region, in the disk time of `model`, of one of `parts` equal parts of the
    /// disk.
    fn prices(&self, model: &DiskModel, parts: u64) -> MixPrices {
        let seconds = |op, len| {
            model.cost(op, len).units() as f64 / DiskTime::UNITS_PER_SECOND as f64 / parts as f64
        };
        // The disk time by the model of a second of work at the ends of the region's line.
        let write = seconds(Op::Write, WRITE_LEN) * self.write_bandwidth as f64 / WRITE_LEN as f64;
        let read = seconds(Op::Read, READ_LEN) * self.read_iops as f64;
        let price = |step: usize| {
            let part = step as f64 / (MIX_PRICES - 1) as f64;
            let (writes, reads) = (part / write, (1.0 - part) / read);
            let price = (writes + reads) / self.radius(writes / (writes + reads));
            // Neither direction does more in a mix than alone.
            (price.max(part).max(1.0 - part) * f64::from(PRICE_ONE)).round() as u32
        };
        MixPrices::new(core::array::from_fn(price))
    }

    /// The radius at this fraction of writes, linear between the entries of the table.
    fn radius(&self, write_part: f64) -> f64 {
        let steps = self.radii.len().saturating_sub(1);
        let place = write_part.clamp(0.0, 1.0) * steps as f64;
        let step = (place as usize).min(steps.saturating_sub(1));
        let at = |step: usize| self.radii.get(step).map_or(1.0, |&r| f64::from(r.max(1)));
        let (low, high) = (at(step), at((step + 1).min(steps)));
        (low + (high - low) * (place - step as f64)) / f64::from(RADIUS_ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::properties::{REGION_RADII, RegionGoal, parse_latency_target};
    use std::time::Duration;

    use forebay_core::DiskRates;

    const RATES: DiskRates = DiskRates {
        read_iops: 100_000,
        write_iops: 50_000,
        read_bandwidth: 1_000_000_000,
        write_bandwidth: 500_000_000,
    };

    fn region(percentile: f64, micros: u64, radius: impl Fn(f64) -> f64) -> MixRegion {
        let radius = |step: usize| radius(step as f64 / 32.0) * f64::from(RADIUS_ONE);
        MixRegion {
            read_percentile: percentile,
            latency: Duration::from_micros(micros),
            write_bandwidth: RATES.write_bandwidth,
            read_iops: RATES.read_iops,
            radii: (0..REGION_RADII).map(|step| radius(step).round() as u32).collect(),
        }
    }

    fn disk(regions: &[MixRegion]) -> DiskProperties {
        let mut disk = DiskProperties::from_rates(&RATES, Vec::new());
        disk.measured.regions = regions.to_vec();
        disk
    }

    fn prices(disk: &DiskProperties, parts: u64) -> [u32; MIX_PRICES] {
        let model = disk.model_of_part(parts).unwrap();
        let model = disk.priced(model, &Policy::pace_window(), parts);
        *model.mix_prices().unwrap().prices()
    }

    #[test]
    fn a_straight_line_between_the_disks_own_figures_is_plain() {
        for parts in [1, 2, 4] {
            let plain = prices(&disk(&[region(95.0, 1500, |_| 1.0)]), parts);
            let off = plain.map(|price| price.abs_diff(PRICE_ONE)).into_iter().max();
            assert!(off < Some(PRICE_ONE / 1000), "{parts}: {off:?}");
        }
    }

    #[test]
    fn a_region_between_other_figures_is_counted_in_the_models_disk_time() {
        let mut half = region(95.0, 1500, |part| 1.0 - 0.3 * part);
        half.write_bandwidth /= 2;
        let prices = prices(&disk(&[half]), 1);
        // Half of the disk time in writes: 250 MB/s and 50,000 reads. On the line of the region
        // this is 1 + 0.5, so two thirds are writes, where the radius is 0.8.
        let expected = 1.5 / 0.8 * f64::from(PRICE_ONE);
        let error = f64::from(prices[16]) / expected - 1.0;
        assert!(error.abs() < 0.01, "off by {error}");
        // Writes alone: half of the bandwidth at 0.7.
        let error = f64::from(prices[32]) / (2.0 / 0.7 * f64::from(PRICE_ONE)) - 1.0;
        assert!(error.abs() < 0.01, "off by {error}");
    }

    #[test]
    fn neither_direction_is_let_through_faster_than_alone() {
        let prices = prices(&disk(&[region(95.0, 1500, |_| 2.0)]), 1);
        for (step, price) in prices.into_iter().enumerate() {
            let part = step as f64 / 32.0;
            let expected = part.max(1.0 - part) * f64::from(PRICE_ONE);
            assert!((f64::from(price) - expected).abs() < 2.0, "{step}: {price}");
        }
    }

    #[test]
    fn the_region_in_use_is_the_one_nearest_to_what_the_window_promises() {
        let of = |percentile, micros| region(percentile, micros, |_| 1.0);
        let chosen = |disk: &DiskProperties, goal| {
            let base_latency = None;
            let policy =
                Policy::PaceWindow { latency_goal: Duration::from_micros(goal), base_latency };
            disk.region(&policy).map(|region| region.latency.as_micros())
        };
        let mut disk = disk(&[of(95.0, 500), of(95.0, 1000), of(95.0, 4000), of(99.0, 1500)]);
        assert_eq!(chosen(&disk, 750), Some(1000));
        assert_eq!(chosen(&disk, 1500), Some(4000));
        // A write of 128 KiB takes 262 us.
        assert_eq!(chosen(&disk, 10), Some(500));
        disk.latency_target = parse_latency_target("p95=4ms").unwrap();
        assert_eq!(chosen(&disk, 750), Some(4000));
        disk.latency_target = parse_latency_target("writes:p95=4ms").unwrap();
        assert_eq!(chosen(&disk, 750), Some(1000));
        disk.latency_target = parse_latency_target("p95=4ms").unwrap();
        let latency = Duration::from_micros(1400);
        disk.measured.region_goal = Some(RegionGoal { read_percentile: 98.0, latency });
        assert_eq!(chosen(&disk, 750), Some(1500));
        disk.measured.region_goal = Some(RegionGoal { read_percentile: 95.0, latency });
        assert_eq!(chosen(&disk, 10_000), Some(1000));
    }

    #[test]
    fn no_region_is_in_use_where_nothing_could_come_of_it() {
        let mut disk = disk(&[region(95.0, 1500, |_| 0.5)]);
        let token = Policy::TokenBucket { latency_goal: Duration::from_millis(1) };
        assert_eq!(disk.region(&token), None);
        assert_eq!(disk.model_under(&Policy::Unlimited).unwrap().mix_prices(), None);
        disk.duplex = true;
        assert_eq!(disk.region(&Policy::pace_window()), None);
        disk.duplex = false;
        disk.measured.regions.clear();
        assert_eq!(disk.region(&Policy::pace_window()), None);
    }
}
