//! How many discards XFS sends at once.

use crate::finding::Finding;
use crate::sources::DISCARDS_2024;
use crate::subject::Subject;

const PERIOD: &str = "fs.xfs.xfssyncd_centisecs";
const FILE: &str = "proc/sys/fs/xfs/xfssyncd_centisecs";
/// The least that the kernel accepts, in hundredths of a second.
const PERIOD_MIN: u64 = 100;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(mount) = subject.mount.as_ref().filter(|mount| mount.kind == "xfs") else {
        return Vec::new();
    };
    let Some(period) = subject.machine.number(FILE) else {
        return subject.unknown(FILE, PERIOD);
    };
    let what = format!("{PERIOD} is {period}: XFS writes its log every {} s", period / 100);
    if !mount.has("discard") || period <= PERIOD_MIN {
        return vec![Finding::fine(what)];
    }
    vec![
        Finding::warning(format!("{what}, and all discards of that time with it"))
            .why(
                "with 16 files of 128 MB deleted per second, the slowest of 200,000 reads per \
                 second took 186 ms; at a period of 1 s, 12 ms",
            )
            .source(DISCARDS_2024)
            .fix(format!("sudo sysctl -w {PERIOD}={PERIOD_MIN}")),
    ]
}
