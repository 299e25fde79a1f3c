//! Table 1: without online discard.

use forebay_report::Table;
use forebay_sim::file_system::FileSystem;

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::deletes::{READS, Run};
use crate::articles::y2024::tables::{DISCARD_OFF, low_extents};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::thousands;
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-discard-off",
    alias: "S4-2",
    title: "Reads alongside deletes, online discard off",
    source: SOURCE,
};

/// The metadata of a delete: none, as measured, and a hundred times that.
const TIMES: [u64; 3] = [0, 1, 100];

/// Bytes of metadata, and the 99.9th percentile and the maximum of reads in microseconds, alongside
/// 64 unlinks per second.
fn by_metadata(seed: Seed, times: u64) -> Result<[f64; 3], String> {
    let metadata = times * DISCARD_OFF.metadata;
    let run = Run {
        deletes: low_extents(64),
        file_system: FileSystem { metadata, ..DISCARD_OFF.file_system()? },
        reads: READS,
        waiting_fibers: None,
        seconds: DISCARD_OFF.seconds,
        seed,
    };
    let reads = run.latencies()?;
    Ok([metadata as f64, reads.p999, reads.max])
}

fn run(setting: Setting) -> Result<Report, String> {
    let mut report = DISCARD_OFF
        .report(setting, "Reads alongside unlinked files of 128 MB (32 MB extents), discard off")?;
    let mut table = Table::new(
        "Reads alongside 64 unlinks/s, by the metadata that each writes",
        &["bytes", "p99.9 (us)", "max (us)"],
    );
    for times in TIMES {
        table.row(by_metadata(setting.seed, times)?.map(thousands));
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn metadata_of_unlinks_delays_reads_and_too_few_of_them_to_be_seen() {
        for seed in seeds() {
            let [none, measured, hundredfold] =
                TIMES.map(|times| by_metadata(seed, times).unwrap());
            assert!(measured[1] <= 1.02 * none[1], "{none:?} {measured:?}");
            assert!(hundredfold[1] >= 1.2 * none[1], "{none:?} {hundredfold:?}");
        }
    }
}
