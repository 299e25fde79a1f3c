//! Warnings about figures that are accepted but probably mean something else.

use super::DiskProperties;

/// The smallest operation, in bytes: a sector.
const SECTOR: u64 = 512;
/// The size of the requests with which operations are counted, in bytes.
const SMALL: u64 = 4096;
/// The smallest requests with which a bandwidth is measured have 2^16 bytes.
const LARGE_BITS: u32 = 16;
/// With fewer operations, a bandwidth is near a multiple of them by chance.
const IOPS_ROUNDED: u64 = 1000;
/// The highest plausible bandwidth in bytes per second: no disk, and hardly an array, has a higher
/// one.
const PLAUSIBLE_BANDWIDTH: u64 = 20_000_000_000;
/// A surface is of another disk if one of its ends differs from the figure of this disk by more than
/// this factor.
const ANOTHER: u64 = 2;

impl DiskProperties {
    /// Warnings about figures that are probably wrong, a sentence for each: a bandwidth that is not
    /// in bytes per second, operations that were counted with large requests, or regions of another
    /// disk.
    ///
    /// Such figures are accepted. A [`Scheduler`](crate::Scheduler) logs these sentences when it
    /// loads the figures.
    pub fn figure_warnings(&self) -> Vec<String> {
        let rates = [
            ("read", self.read_iops, self.read_bandwidth),
            ("write", self.write_iops, self.write_bandwidth),
        ];
        let of = |(name, iops, bandwidth)| {
            too_few_bytes(name, iops, bandwidth).or_else(|| large_operations(name, iops, bandwidth))
        };
        let mut warnings: Vec<String> = rates.into_iter().filter_map(of).collect();
        warnings.extend(self.measured.renamed_keys.iter().map(|(old, new)| {
            format!(
                "the key `{old}` was renamed to `{new}`; the old name is accepted for one \
                     release"
            )
        }));
        let another = self
            .measured
            .regions
            .iter()
            .find_map(|region| self.differing_ends(region.read_iops, region.write_bandwidth));
        warnings.extend(another.map(|differing| {
            format!(
                "the regions seem to be of another disk, for their surface {differing}; measure \
                 this disk with `forebay explore DIR`"
            )
        }));
        warnings
    }

    /// Describes the difference if a surface with these highest rates ends at less than half or
    /// more than twice the figures of this disk. Then it is the surface of another disk.
    pub fn differing_ends(&self, read_iops: u64, write_bandwidth: u64) -> Option<String> {
        let ends = [
            (read_iops, "reads per second", "read_iops", self.read_iops),
            (write_bandwidth, "bytes written per second", "write_bandwidth", self.write_bandwidth),
        ];
        let is_other = |&(surface, _, _, figure): &(u64, &str, &str, u64)| {
            surface > figure.saturating_mul(ANOTHER) || figure > surface.saturating_mul(ANOTHER)
        };
        let said = |(surface, what, name, figure)| {
            format!("ends at {surface} {what}, and {name} is {figure}")
        };
        let said: Vec<String> = ends.into_iter().filter(is_other).map(said).collect();
        (!said.is_empty()).then(|| said.join("; it "))
    }
}

/// A bandwidth at which the operations would have less than a sector each.
fn too_few_bytes(name: &str, iops: u64, bandwidth: u64) -> Option<String> {
    let least = iops.saturating_mul(SECTOR);
    if bandwidth >= least {
        return None;
    }
    let units = [("MB/s", 1_000_000), ("kB/s", 1000)];
    let meant = units.into_iter().find(|(_, unit)| {
        let bytes = bandwidth.saturating_mul(*unit);
        (least..=PLAUSIBLE_BANDWIDTH).contains(&bytes)
    });
    let looks = match meant {
        Some((unit, factor)) => format!(
            "it looks like {bandwidth} {unit}, and the unit is bytes per second: write {}",
            bandwidth.saturating_mul(factor)
        ),
        None => format!(
            "it carries {} operations of 4 KiB per second; correct one of the two, or measure again",
            bandwidth / SMALL
        ),
    };
    Some(format!(
        "{name}_bandwidth is {bandwidth}, less than 512 bytes for each of {iops} {name}_iops: {looks}"
    ))
}

/// A number of operations that equals the bandwidth divided by a large request size.
fn large_operations(name: &str, iops: u64, bandwidth: u64) -> Option<String> {
    let size = (LARGE_BITS..u64::BITS).map(|bits| 1_u64 << bits).find(|size| {
        let product = u128::from(iops) * u128::from(*size);
        let apart = u128::from(bandwidth).abs_diff(product);
        iops > 0 && (apart == 0 || iops >= IOPS_ROUNDED && apart < u128::from(*size))
    })?;
    let size = size >> 10;
    Some(format!(
        "{name}_bandwidth is {size} KiB times {name}_iops: these look like operations of {size} KiB, \
         counted while the bandwidth was measured, and the disk may do many more small ones; \
         measure again with `forebay tune DIR`"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_core::DiskRates;

    use super::*;
    use crate::properties::MixRegion;

    fn warnings(read_iops: u64, read_bandwidth: u64) -> Vec<String> {
        let rates =
            DiskRates { read_iops, read_bandwidth, write_iops: 9000, write_bandwidth: 600_000_000 };
        DiskProperties::from_rates(&rates, Vec::new()).figure_warnings()
    }

    #[test]
    fn a_bandwidth_in_megabytes_is_called_one() {
        let said = warnings(150_000, 1000).join("\n");
        assert!(said.contains("looks like 1000 MB/s"), "{said}");
        assert!(said.ends_with("write 1000000000"), "{said}");
        let said = warnings(150_000, 545_000).join("\n");
        assert!(said.contains("looks like 545000 kB/s"), "{said}");
        // Neither unit explains the bandwidth.
        let said = warnings(150_000, 60_000_000).join("\n");
        assert!(said.contains("carries 14648 operations of 4 KiB"), "{said}");
        assert!(warnings(150_000, 150_000 * 512 - 1).len() == 1);
        assert!(warnings(150_000, 150_000 * 512).is_empty());
    }

    #[test]
    fn operations_counted_with_large_requests_are_called_that() {
        for (iops, bandwidth, size) in [
            (14_269, 3_740_749_056, "256 KiB"),
            (14_269, 14_269 << 16, "64 KiB"),
            (120, 120 << 20, "1024 KiB"),
            (1, 1 << 16, "64 KiB"),
        ] {
            let said = warnings(iops, bandwidth).join("\n");
            assert!(said.contains(&format!("operations of {size}")), "{iops} {bandwidth}: {said}");
        }
        for (iops, bandwidth) in [
            (894_399, 3_740_749_056),
            (14_269, 14_269 << 15),
            (14_269, 14_271 << 18),
            // It is less than 1 % off by chance.
            (150, 157_000_000),
            (1000, 100_000_000),
        ] {
            assert_eq!(warnings(iops, bandwidth), Vec::<String>::new(), "{iops} {bandwidth}");
        }
    }

    #[test]
    fn regions_of_another_disk_are_called_that() {
        let region = MixRegion {
            read_percentile: 95.0,
            latency: Duration::from_millis(1),
            write_bandwidth: 600_000_000,
            read_iops: 9000,
            radii: Vec::new(),
        };
        let of = |read_iops, write_bandwidth| {
            let rates = DiskRates {
                read_iops,
                read_bandwidth: 100_000_000,
                write_iops: 9000,
                write_bandwidth,
            };
            let mut disk = DiskProperties::from_rates(&rates, Vec::new());
            disk.measured.regions = vec![region.clone(), region.clone()];
            disk.figure_warnings()
        };
        for (read_iops, write_bandwidth) in
            [(9000, 600_000_000), (4500, 1_200_000_000), (18_000, 300_000_000)]
        {
            assert_eq!(of(read_iops, write_bandwidth), Vec::<String>::new());
        }
        for (read_iops, write_bandwidth, words) in [
            (18_001, 600_000_000, "ends at 9000 reads per second, and read_iops is 18001"),
            (4499, 600_000_000, "ends at 9000 reads per second"),
            (9000, 1_200_000_001, "ends at 600000000 bytes written per second"),
        ] {
            let said = of(read_iops, write_bandwidth);
            assert!(said.len() == 1 && said[0].contains(words), "{said:?}");
        }
    }

    #[test]
    fn each_direction_is_looked_at() {
        let rates = DiskRates {
            read_iops: 150_000,
            read_bandwidth: 1000,
            write_iops: 2000,
            write_bandwidth: 2000 << 17,
        };
        let said = DiskProperties::from_rates(&rates, Vec::new()).figure_warnings();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("read_bandwidth is 1000,"), "{said:?}");
        assert!(said[1].starts_with("write_bandwidth is 128 KiB times write_iops"), "{said:?}");
    }
}
