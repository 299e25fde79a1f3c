//! Warnings for operators, each at most once a minute.

use forebay_core::Time;

use crate::metrics::Traffic;

/// The least time between two warnings of one kind, in nanoseconds.
pub(super) const SILENCE_NANOS: u64 = 60_000_000_000;
/// The least number of unscheduled bytes in a minute that is reported.
const BYTES_MIN: u64 = 64 << 20;
/// The least unscheduled part that is reported, in percent.
const PERCENT_MIN: u64 = 10;

/// The section of the documentation to which warnings refer.
pub(super) const SECTION: &str =
    "see the section \"What a permit orders\" of the documentation of the crate forebay";

/// The advice about mappings.
const MAPPED: &str = "I/O through a mapping is unscheduled; Class::prefetch reads the next pages \
                      with permits";

/// The advice about permits.
pub(super) const ADVICE: &str = "hold a permit only while the disk does its I/O, not while its \
                                 holder waits for anything else";

/// The counters of a device up to the last minute.
#[derive(Debug, Default)]
pub(super) struct Minute {
    since: Option<Time>,
    then: [Traffic; 2],
}

impl Minute {
    /// The warning about `device`, whose counters of reads and writes are `now_at`, if a minute has
    /// passed. `mapped` finds a file on the device that the process has mapped.
    pub(super) fn over(
        &mut self,
        now: Time,
        device: &str,
        now_at: [Traffic; 2],
        mapped: impl Fn() -> Option<String>,
    ) -> Vec<String> {
        let since = *self.since.get_or_insert(now);
        if now.nanos_since(since) < SILENCE_NANOS {
            return Vec::new();
        }
        self.since = Some(now);
        let then = std::mem::replace(&mut self.then, now_at);
        let passed = now_at.iter().zip(&then).map(|(now, then)| now.since(then));
        let words = passed.zip([READ, WRITTEN]);
        words.filter_map(|(traffic, words)| warning(device, &traffic, &words, &mapped)).collect()
    }
}

struct Words {
    done: &'static str,
    own: &'static str,
    unknown: &'static str,
}

const READ: Words = Words {
    done: "read from",
    own: "reads of this process",
    unknown: "other processes, or the kernel",
};
const WRITTEN: Words = Words {
    done: "written to",
    own: "writeback and writes of this process",
    unknown: "other processes, journal, metadata",
};

fn warning(
    device: &str,
    traffic: &Traffic,
    words: &Words,
    mapped: impl Fn() -> Option<String>,
) -> Option<String> {
    let Traffic { done, admitted, unscheduled, of_this_process } = *traffic;
    let percent = |bytes: u64| bytes.saturating_mul(100).div_ceil(done.max(1));
    let is_of_others = admitted == 0 && of_this_process == 0;
    if unscheduled < BYTES_MIN || percent(unscheduled) < PERCENT_MIN || is_of_others {
        return None;
    }
    let Words { done, own, unknown } = words;
    let mapped = if of_this_process > 0 { mapped() } else { None };
    let mapped = mapped.map(|path| format!("; this process has mapped {path} there: {MAPPED}"));
    Some(format!(
        "{} % of what was {done} {device} in the last minute was unscheduled: {own} {} %, unknown \
         {} % ({unknown}){}; {SECTION}",
        percent(unscheduled),
        percent(of_this_process),
        percent(unscheduled).saturating_sub(percent(of_this_process)),
        mapped.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn traffic(done: u64, admitted: u64, unscheduled: u64, of_this_process: u64) -> Traffic {
        let bytes = [done, admitted, unscheduled, of_this_process].map(|mib| mib * MIB);
        let [done, admitted, unscheduled, of_this_process] = bytes;
        Traffic { done, admitted, unscheduled, of_this_process }
    }

    #[test]
    fn unscheduled_io_is_reported_once_a_minute_with_whose_it_may_be() {
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut minute = Minute::default();
        let mut said = Vec::new();
        for second in 0..=180 {
            let so_far = traffic(10 * second, 4 * second, 6 * second, 5 * second);
            let mapped = || (second > 100).then(|| String::from("/data/table"));
            let more = minute.over(at(second), "nvme0n1", [Traffic::default(), so_far], mapped);
            said.extend(more.into_iter().map(|text| (second, text)));
        }
        let seconds: Vec<u64> = said.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds, [60, 120, 180]);
        let text = &said[0].1;
        let expected = "60 % of what was written to nvme0n1 in the last minute was unscheduled: \
            writeback and writes of this process 50 %, unknown 10 % (";
        assert!(text.starts_with(expected) && text.contains("What a permit orders"), "{text}");
        let is_mapped = |(_, text): &(u64, String)| text.contains("has mapped /data/table there");
        assert_eq!(said.iter().map(is_mapped).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn little_a_small_part_and_what_others_do_alone_are_not_told() {
        for quiet in [
            traffic(60, 0, 60, 60),
            traffic(10_000, 9_500, 500, 500),
            traffic(1_000, 0, 1_000, 0),
            traffic(0, 0, 0, 0),
        ] {
            assert_eq!(warning("sda", &quiet, &WRITTEN, || None), None, "{quiet:?}");
        }
        let mapped = || Some(String::from("/data/table"));
        let reads = warning("sda", &traffic(1_000, 500, 500, 0), &READ, mapped).unwrap();
        assert!(reads.starts_with("50 % of what was read from sda"), "{reads}");
        assert!(reads.contains("reads of this process 0 %, unknown 50 %"), "{reads}");
        assert!(!reads.contains("mapped"), "they are not those of this process: {reads}");
    }
}
