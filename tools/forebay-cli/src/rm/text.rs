//! What is said, for people.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use forebay::{DeleteError, DeleteErrorCause, DeleteOperation, UnlinkReason};
use rustix::io::Errno;

use super::pacing::Rates;

const MIB: f64 = (1_u64 << 20) as f64;
const GIB: f64 = (1_u64 << 30) as f64;

/// The system's words for an error.
pub(super) fn system(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}

/// Why a file is not deleted. What is moved into a trash was to be unlinked: as `rm` says it.
pub(super) fn cause(error: &DeleteError) -> String {
    use DeleteOperation::{LookUp, OpenDirectory, OpenTrash, Rename};
    match &error.cause {
        &DeleteErrorCause::System { operation, errno }
            if [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::NOENT]
                .iter()
                .any(|plain| plain.raw_os_error() == errno)
                && matches!(operation, LookUp | OpenDirectory | OpenTrash | Rename) =>
        {
            let hint = match errno == Errno::PERM.raw_os_error() {
                true => "; it may be immutable: see lsattr",
                false => "",
            };
            system(Errno::from_raw_os_error(errno)) + hint
        }
        cause => cause.to_string(),
    }
}

/// Why a file is unlinked at once, in the words of a list.
pub(super) const fn reason(reason: UnlinkReason) -> &'static str {
    match reason {
        UnlinkReason::NoDiscards => "nothing is discarded there",
        UnlinkReason::NothingToFree => "nothing to free",
        UnlinkReason::HardLinked => "other names remain",
        UnlinkReason::OpenElsewhere => "open elsewhere",
        UnlinkReason::NoSpace => "no space to move it aside",
        _ => "for another reason",
    }
}

/// Bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes >= GIB { format!("{:.2} GiB", bytes / GIB) } else { format!("{:.1} MiB", bytes / MIB) }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What was unlinked at once, and why.
fn unlinked(counts: &Counts) -> String {
    if counts.unlinked.is_empty() {
        return String::new();
    }
    let all: u64 = counts.unlinked.values().sum();
    let each = counts.unlinked.iter().map(|(why, count)| format!("{why}: {count}"));
    format!("; {all} unlinked at once ({})", each.collect::<Vec<_>>().join(", "))
}

/// What was done.
pub(super) fn done(counts: &Counts, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let mut text = format!(
        "deleted {} and {} in {seconds:.1} s",
        counted(counts.files, "file", "files"),
        counted(counts.directories, "directory", "directories"),
    );
    if counts.freed > 0 {
        let rate = counts.freed as f64 / MIB / seconds.max(1e-3);
        text += &format!(": {} in {} steps, {rate:.0} MiB/s", bytes(counts.freed), counts.steps);
    }
    text + &unlinked(counts) + "\n"
}

/// What would be done at these rates.
pub(super) fn would(counts: &Counts, rates: Rates) -> String {
    let paced: u64 = counts.unlinked.values().fold(counts.files, |all, count| all - count);
    let mut text = format!(
        "would delete {} and {}: {paced} paced, {}",
        counted(counts.files, "file", "files"),
        counted(counts.directories, "directory", "directories"),
        bytes(counts.freed)
    );
    if counts.freed > 0 {
        let seconds = |of: u64, rate: Option<u64>| rate.map_or(0.0, |rate| of as f64 / rate as f64);
        let least = seconds(counts.freed, rates.bytes).max(seconds(paced, rates.commands));
        if let Some(rate) = rates.bytes {
            text += &format!(" at {} per second", bytes(rate));
        }
        if let Some(commands) = rates.commands {
            text += &format!(", at most {commands} discards per second");
        }
        text += &format!(": {least:.0} s or more, as each extent is a discard");
    }
    text + &unlinked(counts) + "\n"
}

/// What was deleted, or would be.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) directories: u64,
    /// Bytes that were freed in steps.
    pub(super) freed: u64,
    pub(super) steps: u64,
    /// Files that were only unlinked, by the reason.
    pub(super) unlinked: BTreeMap<&'static str, u64>,
    /// Paths that were not deleted.
    pub(super) failed: u64,
}
