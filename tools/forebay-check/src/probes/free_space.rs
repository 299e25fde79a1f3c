//! Whether there is room to write.

use crate::finding::Finding;
use crate::subject::Subject;

/// Percent of the space below which it is scarce.
const SCARCE: u64 = 10;
/// Percent of the space below which it is as good as gone.
const GONE: u64 = 1;

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let space = match &subject.environment.space {
        Ok(space) => space,
        Err(why) => return vec![Finding::unknown(format!("free space: {why}"))],
    };
    if space.blocks == 0 {
        return vec![Finding::unknown("free space: the filesystem does not say")];
    }
    let free = space.blocks_free as f64 * space.block as f64 / 1e9;
    let percent = space.blocks_free.saturating_mul(100) / space.blocks;
    let what = format!("{free:.1} GB free, {percent} %");
    let fix = format!("sudo du -xh --max-depth 2 {} | sort -h", subject.mount_point());
    let why = "flash erases in what is free, and a full filesystem breaks files into pieces";
    let mut findings = vec![match percent {
        0..GONE => Finding::error(what).why(why).fix(fix),
        GONE..SCARCE => Finding::warning(what).why(why).fix(fix),
        _ => Finding::fine(what),
    }];
    if space.files > 0 && space.files_free == 0 {
        findings.push(
            Finding::error(format!("all {} inodes are in use: no file can be made", space.files))
                .fix("remove files, or make the filesystem with more inodes"),
        );
    }
    findings
}
