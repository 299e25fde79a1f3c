//! What failed, what else is counted, and what is not in the trace, in words.

use std::io;

use super::findings::{REQUESTS_MIN, WORTH, part, percent, size};
use super::summary::{CountBasis, DeviceSummary, DirectionSummary, ErrorCount};
use crate::block_event::Direction;

impl DeviceSummary {
    /// Completions with an error.
    pub(super) fn failures(&self) -> Option<String> {
        let failed: u64 = self.errors.iter().map(|error| error.completions).sum();
        if failed == 0 {
            return None;
        }
        let errors: Vec<String> = self.errors.iter().map(named).collect();
        let directions = self.directions.iter().filter(|found| found.failed > 0);
        let requests: Vec<String> = directions
            .map(|found| format!("{} of {} {}", found.failed, found.requests, kinds(found)))
            .collect();
        let requests = match requests.is_empty() {
            true => String::new(),
            false => format!(" Failed: {}.", requests.join(", ")),
        };
        Some(format!(
            "{}: {failed} of {} completions report an error ({}).{requests} Look for the disk in the \
             kernel's log (dmesg) and at its health (smartctl).",
            self.name,
            self.completions,
            errors.join(", ")
        ))
    }

    /// What is counted and needs no remedy, or is too little to say one; and what is not in the
    /// trace, so that nothing is known of it.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let mut note = |text: String| notes.push(format!("{}: {text}", self.name));
        let are_splits_said = !self.splits().is_empty();
        let mut is_split_known = true;
        for found in &self.directions {
            let counts = |count: u64| {
                let share = percent(part(count, found.requests));
                format!("{count} of {} {} ({share})", found.requests, kinds(found))
            };
            if found.misaligned > 0 && !self.are_much_misaligned(found) {
                note(self.misaligned_note(&counts(found.misaligned), found));
            }
            if found.split_us.count > 0 && !are_splits_said {
                note(format!("{} were split.", counts(found.split_us.count)));
            }
            if found.partial > 0 {
                note(format!(
                    "{} were completed in parts by the disk, though they were sent to it at once \
                     (partial completions): the kernel did not split them there.",
                    counts(found.partial)
                ));
            }
            if self.completions > 0 && part(found.unfinished, found.requests) >= WORTH {
                note(format!(
                    "{} did not end in the trace, so their latency is unknown.",
                    counts(found.unfinished)
                ));
            }
            is_split_known &= found.counted == CountBasis::Queued;
        }
        if !is_split_known {
            note(
                "the trace has requests from their issue on (D, block_rq_issue): latencies are \
                 those in the disk. It lacks queueing and splits, so the time before the disk is \
                 unknown; record these too (Q and X, block_bio_queue and block_split)."
                    .to_owned(),
            );
        }
        if self.completions == 0 && !self.directions.is_empty() {
            note(
                "the trace has no completions, so latencies and failures are unknown; record them \
                 too (C, block_rq_complete and block_bio_complete)."
                    .to_owned(),
            );
        }
        notes
    }

    fn misaligned_note(&self, counts: &str, found: &DirectionSummary) -> String {
        let block = size(self.block_bytes);
        let more = match found.direction {
            Direction::Write if found.misaligned < REQUESTS_MIN => {
                "; these are too few to tell whether it matters"
            }
            Direction::Write => "",
            Direction::Read => "; a disk with such blocks reads whole ones for them",
            _ => "; a disk with such blocks discards whole ones only",
        };
        format!("{counts} begin or end inside of a block of {block}{more}.")
    }
}

fn kinds(found: &DirectionSummary) -> &'static str {
    match found.direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Discard => "discards",
        Direction::Other => "others",
    }
}

fn named(error: &ErrorCount) -> String {
    let ErrorCount { error, completions } = *error;
    format!("{completions} times {}", io::Error::from_raw_os_error(error.into()))
}
