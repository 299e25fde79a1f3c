//! Whether blocks of 4 KiB cost a disk with sectors of 512 bytes anything.

use forebay_core::Policy;
use forebay_report::Table;
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2025::SOURCE;
use crate::experiment::{Experiment, Seed, Setting};
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2025-older-disks",
    alias: "S3-26",
    title: "Blocks of 4 KiB on disks with sectors of 512 bytes",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const DISK: &str = include_str!("../../../forebay-sim/presets/nvme-2025.yaml");
/// Bytes of a sector of either disk.
const SECTORS: [u64; 2] = [512, 4096];
const SIZES: [u64; 3] = [512, 1024, 4096];
const KINDS: [&str; 2] = ["randread", "randwrite"];

/// Random requests of this size per second.
fn iops(seed: Seed, sector: u64, kind: &str, len: u64, millis: u64) -> Result<f64, String> {
    let disk =
        seed.disk(&DISK.replace("physical_sector: 4kB", &format!("physical_sector: {sector}")))?;
    let text = format!(
        "- {{name: load, type: {kind}, shards: [0], data_size: 16GB,
   shard_info: {{parallelism: 256, reqsize: {len}}}}}\n"
    );
    let mut config = seed.config(scenario::jobs(&text, 1)?, disk, millis);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    Ok(scenario::job(&scenario::run(config)?, "load")?.iops)
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(30, 1000);
    let mut report = Report::default();
    report.parameter("disks", "preset nvme-2025, and the same with sectors of 512 bytes");
    report.parameter("load", "256 random requests at a time, no scheduler");
    report.parameter("measured", format!("{millis} ms after 100 ms"));
    let columns = ["bytes", "", "sectors of 512", "sectors of 4,096"];
    let mut table = Table::new("Thousand requests per second", &columns);
    for (kind, len) in KINDS.into_iter().flat_map(|kind| SIZES.map(|len| (kind, len))) {
        let [older, newer] = SECTORS.map(|sector| iops(seed, sector, kind, len, millis));
        let kilo = |iops: f64| thousands(iops / 1e3);
        table.row([
            thousands(len as f64),
            kind.replace("rand", "random "),
            kilo(older?),
            kilo(newer?),
        ]);
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn larger_blocks_cost_small_sectors_little_and_small_ones_cost_large_sectors_more() {
        for seed in seeds() {
            let iops = |sector, kind, len| iops(seed, sector, kind, len, 30).unwrap();
            assert!(iops(512, KINDS[0], 4096) > 0.8 * iops(512, KINDS[0], 512));
            assert!(iops(512, KINDS[1], 4096) > 0.6 * iops(512, KINDS[1], 512));
            assert!(iops(4096, "randwrite", 512) < 0.8 * iops(4096, "randwrite", 4096));
        }
    }
}
