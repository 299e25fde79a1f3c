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
            .why(format!(
                "with 16 files of 128 MB deleted per second, the slowest of 200,000 reads per second \
                 took 186 ms; at a period of 1 s, 12 ms. {}",
                burst(period)
            ))
            .source(DISCARDS_2024)
            .fix(format!(
                "forebay rm -r PATH   # in place of rm: a flush follows each small step; for what \
                 others delete, little at a time: sudo sysctl -w {PERIOD}={PERIOD_MIN}"
            )),
    ]
}

/// What one flush sends, if some are deleted all the time: on the disk of the figures, by its cost
/// of a discard.
fn burst(period_centis: u64) -> String {
    const MIB_PER_SECOND: u64 = 512;
    const COMMAND_MICROS: u64 = 20;
    const MIB_MICROS: u64 = 5;
    let mib = MIB_PER_SECOND.saturating_mul(period_centis) / 100;
    let millis = |commands: u64| {
        let micros = commands.saturating_mul(COMMAND_MICROS);
        micros.saturating_add(mib.saturating_mul(MIB_MICROS)) / 1000
    };
    format!(
        "At {MIB_PER_SECOND} MB deleted per second each flush sends {mib} discards from extents of \
         1 MB, some {} ms of that disk at {COMMAND_MICROS} us each and 5 ms per GB, or {} from \
         extents of 32 MB, some {} ms",
        millis(mib),
        mib / 32,
        millis(mib / 32)
    )
}
