//! How many reads an NVMe disk serves alongside writes, and within which latency.

use crate::articles::y2022;
use crate::articles::y2022::MEASURED;
use crate::articles::y2022::edges::Compared;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-half-duplex",
    alias: "S2-3",
    title: "NVMe disks are nearly half-duplex",
    source: y2022::SOURCE,
};

const COMPARED: Compared = Compared {
    csv: include_str!("../../../forebay-sim/presets/i3.2xlarge.csv"),
    dies: include_str!("disk-of-dies.yaml"),
    made_of: "flash: 41 dies, from 413 k reads/s of 0.1 ms; they program 14 KiB at a time at \
              1.9 GB/s; each 12 MB of writes a pause of 4.7 ms to collect garbage",
    preset: MEASURED,
};

fn run(setting: Setting) -> Result<Report, String> {
    COMPARED.report(setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::articles::y2022::edges::{Published, disk, edges};
    use crate::articles::y2022::preset;
    use crate::tests::seeds;

    const MILLIS: u64 = 200;

    fn published() -> Published {
        Published::parse(COMPARED.csv).unwrap()
    }

    #[test]
    fn twice_the_reads_are_less_than_half_the_writes() {
        let (disk, published) = (disk(COMPARED.dies).unwrap(), published());
        let (most_writes, most_reads) = published.maxima();
        for (seed, part) in seeds().flat_map(|seed| [0.25, 0.5, 0.75].map(|part| (seed, part))) {
            let [carried, within_5_ms, within_1_ms] =
                edges(seed, &disk, (part * most_writes, published.step), MILLIS).unwrap();
            let line = most_reads * (1.0 - part);
            assert!((carried - line).abs() <= 4.01 * published.step, "{part}: {carried}");
            // mixes are dearer than the line within a bound on latency
            assert!(within_5_ms <= carried && within_1_ms < carried, "{part}: {within_5_ms}");
        }
    }

    #[test]
    fn the_fitted_surface_carries_less_between_the_extremes() {
        let (disk, Published { step, rows }) = (preset(MEASURED).unwrap(), published());
        for (writes, published) in rows.iter().skip(5).step_by(5).take(3) {
            for seed in seeds() {
                let carried = edges(seed, &disk, (*writes, step), 100).unwrap()[0];
                let less = published[0] - carried;
                assert!((0.0..=8.01 * step).contains(&less), "{writes}: {carried}");
            }
        }
    }
}
