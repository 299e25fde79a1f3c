//! What is read and found in recorded traces of many tools: `tests/traces` has their text.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::fs;
use std::path::PathBuf;

use forebay_trace::{
    CountBasis, Direction, DirectionSummary, Finding, KernelEvent, Recorded, Requests,
    RequestsSummary, SplitCause, Watched,
};

const KIB: u64 = 1 << 10;

fn text(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn watched() -> Watched {
    Watched {
        name: String::new(),
        numbers: Vec::new(),
        block_bytes: 4096,
        chunk: None,
        members: None,
        longest_bytes: None,
        pages_bytes: None,
        longest_possible_bytes: None,
        file_system: None,
    }
}

pub(super) fn read_text(bytes: &[u8]) -> Result<(Recorded, RequestsSummary), String> {
    let mut requests = Requests::new(&[], watched());
    let read = Recorded::read(bytes, |since, event| {
        let KernelEvent::Block(event) = event else { return };
        requests.see(since, event);
    });
    Ok((read.map_err(|error| error.to_string())?, requests.summary()))
}

fn read(name: &str) -> (Recorded, RequestsSummary) {
    read_text(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn direction(summary: &RequestsSummary, direction: Direction) -> &DirectionSummary {
    let mut directions = summary.devices.iter().flat_map(|device| &device.directions);
    directions.find(|found| found.direction == direction).unwrap()
}

/// Asserts that one finding has all these words.
fn says(found: &[Finding], words: &[&str]) {
    let has = |finding: &Finding| words.iter().all(|word| finding.text.contains(word));
    assert!(found.iter().any(has), "{words:?} are not in {found:#?}");
}

fn not_read(read: &Recorded) -> Vec<(&str, u64)> {
    read.not_read.iter().map(|kind| (kind.event.as_str(), kind.count)).collect()
}

#[test]
fn the_text_of_each_tool_has_the_same_requests() {
    let expected = read("blkparse-t.txt").1;
    assert_eq!(direction(&expected, Direction::Read).requests, 60);
    for name in [
        "perf-no-prefix.txt",
        "perf-script.txt",
        "trace-cmd-no-header.txt",
        "trace-cmd-one-space.txt",
        "trace-cmd-report-cpus.txt",
        "trace-cmd-report.txt",
        "kernel-612.txt",
        "blk-tracer.txt",
    ] {
        let (recorded, found) = read(name);
        assert_eq!((recorded.unknown_lines, recorded.not_read), (0, vec![]), "{name}");
        assert_eq!(found.devices[0].directions, expected.devices[0].directions, "{name}");
        let whole = direction(&found, Direction::Read).whole_us;
        assert_eq!((whole.count, whole.p50.round()), (60, 500.0), "{name}");
    }
}

#[test]
fn quoted_text_and_text_with_a_prompt_has_the_same_requests() {
    let expected = read("crlf.txt").1;
    assert_eq!(direction(&expected, Direction::Write).split_us.count, 40);
    for (name, unknown) in
        [("quoted-mail.txt", 0), ("with-blank-and-banner.txt", 0), ("with-prompt.txt", 1)]
    {
        let (recorded, found) = read(name);
        assert_eq!(recorded.unknown_lines, unknown, "{name}");
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_real_trace_of_perf_has_its_638_queued_requests() {
    let (recorded, found) = read("perf-real.txt");
    let queued = found.devices.iter().flat_map(|device| &device.directions);
    let others: u64 = found.devices.iter().map(|device| device.other_requests).sum();
    let queued: u64 = queued.map(|found| found.requests).sum();
    assert_eq!((queued + others, recorded.unknown_lines), (638, 0));
}

#[test]
fn stacks_and_periods_of_perf_are_left_out() {
    let stack = "\tffffffff8173d100 mark_buffer_dirty+0xb0 ([kernel.kallsyms])\n\
                 \t           9bd5c [unknown] (/usr/bin/perf)\n\n";
    let text = String::from_utf8(text("perf-script.txt")).unwrap();
    let text: String = text.lines().map(|line| format!("{line}\n{stack}")).collect();
    let text = text.replace(": block:", ":          1    block:");
    let (recorded, found) = read_text(text.as_bytes()).unwrap();
    assert_eq!(recorded.unknown_lines, 0);
    assert_eq!(direction(&found, Direction::Read).requests, 60);
}

#[test]
fn a_format_of_the_users_own_is_refused_with_what_to_do() {
    for name in ["fmt-T.t.txt", "fmt-commas.txt"] {
        let error = read_text(&text(name)).unwrap_err();
        let has = |word: &str| error.contains(word);
        assert!(
            has("line 1: `205791.409875000") && has("custom format of blkparse (-f)"),
            "{error}"
        );
    }
}

#[test]
fn traces_of_issue_and_completion_have_latencies_in_the_disk_and_say_what_is_missing() {
    for (name, requests, p50, others) in [
        ("d-and-c.txt", 200, 2100.0, vec![]),
        ("rq-events.txt", 200, 899.0, vec![("block_rq_insert", 200)]),
        ("rq-events-header.txt", 200, 899.0, vec![("block_rq_insert", 200)]),
    ] {
        let (recorded, found) = read(name);
        let writes = direction(&found, Direction::Write);
        assert_eq!((writes.counted, writes.requests), (CountBasis::Issued, requests), "{name}");
        assert_eq!((writes.disk_us.count, writes.whole_us.count), (requests, 0), "{name}");
        assert!((writes.disk_us.p50 - p50).abs() < 2.0, "{name}: {writes:?}");
        assert_eq!(not_read(&recorded), others, "{name}");
        let said = found.findings();
        says(&said, &["issue on (D, block_rq_issue)", "in the disk", "Q and X, block_bio_queue"]);
        assert!(!said.iter().any(|finding| finding.text.contains("nothing to fix")), "{said:?}");
    }
}

#[test]
fn failed_requests_are_reported_also_where_the_number_has_no_sign() {
    let text = String::from_utf8(text("errs.txt")).unwrap();
    for text in [text.clone(), text.replace("[-5]", "[65531]")] {
        let (recorded, found) = read_text(text.as_bytes()).unwrap();
        let device = &found.devices[0];
        assert_eq!((device.completions, device.errors[0].completions), (60, 20));
        assert_eq!(direction(&found, Direction::Write).failed, 40);
        let said = found.findings();
        assert!(said[0].warns);
        says(&said, &["20 of 60 completions", "20 times Input/output error", "40 of 120 writes"]);
        assert!(!said.iter().any(|finding| finding.text.contains("nothing to fix")), "{said:?}");
        assert_eq!(not_read(&recorded), [("G", 60), ("M", 60)]);
    }
}

#[test]
fn a_flush_that_failed_is_no_all_clear() {
    let healthy = "8,0 1 1 0.1 1 Q W 8 + 8 [x]\n8,0 1 1 0.2 0 C W 8 + 8 [0]\n".repeat(20);
    assert!(read_text(healthy.as_bytes()).unwrap().1.findings()[0].text.contains("nothing to fix"));
    for flush in [
        "8,0 1 1 0.3 0 C FN 0 [-5]",
        "8,0 1 1 0.3 0 C WFS 575480512 [65531]",
        "x-1 [000] 0.3: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 none,0,0 [-5]",
    ] {
        let found = read_text(format!("{healthy}{flush}\n").as_bytes()).unwrap().1;
        says(&found.findings(), &["1 of 21 completions", "Input/output error"]);
        assert_eq!(found.findings().len(), 1);
    }
}

#[test]
fn a_partial_completion_is_no_split_of_the_kernel() {
    let (recorded, found) = read("partial.txt");
    let reads = direction(&found, Direction::Read);
    assert_eq!((reads.requests, reads.partial, reads.split_us.count), (60, 60, 0));
    assert_eq!((reads.whole_us.count, found.devices[0].cause), (60, None));
    // sent once more 2 ms after it was given back
    assert_eq!((reads.disk_us.count, reads.disk_us.p50.round()), (60, 600.0));
    let said = found.findings();
    says(&said, &["60 of 60 reads (100 %)", "partial completions"]);
    assert!(!said.iter().any(|finding| finding.text.contains("max_sectors_kb")), "{said:?}");
    assert_eq!(not_read(&recorded), []);
}

#[test]
fn unfinished_requests_are_not_reported_as_fine() {
    let said = read("wrong-direction.txt").1.findings();
    says(&said, &["1 of 1 writes (100 %) did not end"]);
    let queued = "8,0 1 1 0.1 1 Q W 8 + 8 [x]\n".repeat(20);
    let said = read_text(queued.as_bytes()).unwrap().1.findings();
    says(&said, &["the trace has no completions"]);
    assert_eq!(said.len(), 1);
}

#[test]
fn misaligned_requests_of_any_kind_and_number_are_no_all_clear() {
    for (name, words, warns) in [
        (
            "reads-512.txt",
            "300 of 300 reads (100 %) begin or end inside of a block of 4 KiB",
            false,
        ),
        ("reads-misaligned-4k.txt", "300 of 300 reads (100 %) begin or end inside", false),
        ("writes-misaligned-15.txt", "15 of 35 writes (43 %) begin or end inside", false),
        ("writes-misaligned-300.txt", "100 % of writes begin or end inside", true),
    ] {
        let said = read(name).1.findings();
        says(&said, &[words]);
        assert_eq!((said.len(), said[0].warns), (1, warns), "{name}: {said:?}");
    }
    let (_, found) = read("trim-each-5s.txt");
    let discards = direction(&found, Direction::Discard);
    assert!(discards.requests > 0 && discards.whole_us.count == discards.requests);
}

#[test]
fn real_splits_of_a_loop_device_by_its_longest_request_are_the_same_in_both_forms_of_the_tracer() {
    // `blk` and `blk_classic`, of the same requests; max_sectors_kb was 64
    for name in ["loop-64k-blk.txt", "loop-64k-blk-classic.txt"] {
        let (recorded, found) = read(name);
        assert_eq!(recorded.unknown_lines, 0, "{name}");
        let (reads, writes) =
            (direction(&found, Direction::Read), direction(&found, Direction::Write));
        assert!(writes.requests == 3 && writes.split_us.count == 3, "{name}: {writes:?}");
        assert!(reads.split_us.count >= 2, "{name}: {reads:?}");
        assert_eq!(found.devices[0].cause, Some(SplitCause::Length { bytes: 64 * KIB }), "{name}");
        assert!(found.devices[0].directions.iter().all(|found| found.partial == 0));
    }
}
