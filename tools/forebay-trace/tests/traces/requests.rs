//! What is found in recorded traces of requests.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::fmt::Write;

use forebay_trace::{
    BorderKnown, Chunk, Direction, FileSystem, KernelEvent, Recorded, RecordedError, Requests,
    RequestsSummary, SplitCause, Watched,
};
use proptest::prelude::*;

const SECTOR: u64 = 512;
const KIB: u64 = 1 << 10;

fn requests(chunk: Option<u64>) -> Requests {
    Requests::new(&[], watched(chunk))
}

fn watched(chunk: Option<u64>) -> Watched {
    let chunk = chunk.map(|bytes| Chunk { bytes, stated: true });
    let block_bytes = 4096;
    Watched {
        name: String::new(),
        numbers: Vec::new(),
        block_bytes,
        chunk,
        members: None,
        longest_bytes: None,
        pages_bytes: None,
        longest_possible_bytes: None,
        file_system: None,
    }
}

fn read(text: &str, chunk: Option<u64>) -> Result<(Recorded, RequestsSummary), RecordedError> {
    read_of(text, requests(chunk))
}

fn read_of(
    text: &str,
    mut requests: Requests,
) -> Result<(Recorded, RequestsSummary), RecordedError> {
    let recorded = Recorded::read(text.as_bytes(), |since, event| match event {
        KernelEvent::Block(event) => requests.see(since, event),
        KernelEvent::AsyncWork { operation, .. } => requests.see_async_work(operation),
    })?;
    Ok((recorded, requests.summary()))
}

/// The article's example: sectors, sizes and latencies are those that it states.
const PUBLISHED: &str = "\
  9,127  3     1821     4.187301000 18311  Q  WS 21057335224 + 256 [reactor-3]
  9,127  3     1822     4.187302000 18311  X  WS 21057335224 / 21057335296 [reactor-3]
  9,127  3     1823     4.187303000 18311  G  WS 21057335224 + 72 [reactor-3]
  9,127  3     1824     4.187304000 18311  D  WS 21057335224 + 72 [reactor-3]
  9,127  3     1825     4.187305000 18311  G  WS 21057335296 + 184 [reactor-3]
  9,127  3     1826     4.187306000 18311  D  WS 21057335296 + 184 [reactor-3]
  9,127  3     1827     4.187400000 18311  Q  WS 21057350000 + 256 [reactor-3]
  9,127  3     1828     4.187401000 18311  G  WS 21057350000 + 256 [reactor-3]
  9,127  3     1829     4.187402000 18311  D  WS 21057350000 + 256 [reactor-3]
  9,127  3     1830     4.187452000     0  C  WS 21057350000 + 256 [0]
  9,127  3     1831     4.187462000     0  C  WS 21057335224 + 72 [0]
  9,127  3     1832     4.192550000     0  C  WS 21057335296 + 184 [0]
CPU3 (9,127):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,      256KiB

Throughput (R/W): 0KiB/s / 50,196KiB/s
Events (9,127): 12 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn the_published_split_is_found_at_the_border_of_a_chunk() {
    // the greatest power that one border has is one too many: the chunk has to be said
    for (chunk, bytes, known) in
        [(Some(1 << 20), 1 << 20, BorderKnown::Stated), (None, 2 << 20, BorderKnown::FewSplits)]
    {
        let (recorded, summary) = read(PUBLISHED, chunk).unwrap();
        assert_eq!((recorded.events, recorded.lost, recorded.unknown_lines), (9, 0, 0));
        let device = &summary.devices[0];
        assert_eq!((device.name.as_str(), device.split_requests.len()), ("9:127", 1));
        let split = &device.split_requests[0];
        assert_eq!(split.points, [0x9CE_3AE0_0000]);
        assert_eq!(split.offset, 21_057_335_224 * SECTOR);
        let parts: Vec<_> = split.parts.iter().map(|part| (part.bytes, part.latency_us)).collect();
        assert_eq!(parts, [(72 * SECTOR, 161.0), (184 * SECTOR, 5249.0)]);
        let border = device.border.unwrap();
        assert_eq!((border.bytes, border.known), (bytes, known));
        assert_eq!((border.split, border.whole), (1, 0));
        let writes = &device.directions[0];
        assert_eq!((writes.whole_us.p50, writes.split_us.max), (52.0, 5249.0));
        let said = &summary.findings()[0];
        // no advice to make a file system on what is a guess
        let sure = if chunk.is_some() { ["50 %", "su="] } else { ["1 of 2", "--chunk"] };
        let words = [sure[0], sure[1], "161 us", "5249 us", "52 us"];
        assert_eq!(said.text.contains("su="), chunk.is_some(), "{said:?}");
        assert!(said.warns && words.iter().all(|word| said.text.contains(word)), "{said:?}");
    }
}

/// A trace of requests of a device that splits at multiples of `chunk`, each of which is done
/// before the next begins: its text, and where each was split.
fn trace(requests: &[(u64, u64, bool)], chunk: u64) -> (String, Vec<Vec<u64>>) {
    let (mut text, mut micros) = (String::new(), 0);
    let mut points = Vec::new();
    for &(sector, sectors, writes) in requests {
        let kind = if writes { "WS" } else { "R" };
        let mut line = |action: &str, rest: String| {
            micros += 10;
            let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
            let time = format!("{seconds:5}.{micros:06}000");
            writeln!(text, "  8,16   1 7 {time}  697  {action}  {kind} {rest}").unwrap();
        };
        line("Q", format!("{sector} + {sectors} [x]"));
        let (end, chunk) = (sector + sectors, chunk / SECTOR);
        let borders: Vec<u64> = (sector + 1..end).filter(|at| at % chunk == 0).collect();
        let mut begin = sector;
        for &border in &borders {
            line("X", format!("{begin} / {border} [x]"));
            begin = border;
        }
        begin = sector;
        for part_end in borders.iter().copied().chain([end]) {
            line("C", format!("{begin} + {} [0]", part_end - begin));
            begin = part_end;
        }
        points.push(borders.iter().map(|border| border * SECTOR).collect());
    }
    (text, points)
}

fn any_requests() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
    prop::collection::vec((0_u64..1 << 24, 1_u64..600, any::<bool>()), 1..120)
}

proptest! {
    #[test]
    fn just_the_requests_that_cross_a_border_are_named_and_at_the_right_byte(
        requests in any_requests(), power in 16_u32..22, is_said in any::<bool>(),
        without_splits in any::<bool>(),
    ) {
        let chunk = 1_u64 << power;
        let (mut text, points) = trace(&requests, chunk);
        if without_splits {
            // a tool may leave them out; then the parts say it
            let lines = text.lines().filter(|line| !line.contains("  X  "));
            text = lines.map(|line| format!("{line}\n")).collect();
        }
        let (_, summary) = read(&text, is_said.then_some(chunk)).unwrap();
        let named = &summary.devices[0].split_requests;
        let all = requests.iter().zip(&points);
        let expected: Vec<_> = all
            .filter(|(_, points)| !points.is_empty())
            .map(|(&(sector, sectors, _), points)| (sector * SECTOR, sectors * SECTOR, points))
            .collect();
        let found: Vec<_> =
            named.iter().map(|split| (split.offset, split.bytes, &split.points)).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert!(named.iter().all(|split| split.split));
        for split in named {
            prop_assert_eq!(split.parts.len(), split.points.len() + 1);
            prop_assert_eq!(split.parts.iter().map(|part| part.bytes).sum::<u64>(), split.bytes);
        }
        if let (true, Some(border)) = (is_said, summary.devices[0].border) {
            prop_assert_eq!((border.split, border.whole), (expected.len() as u64, 0));
        }
    }

    #[test]
    fn the_chunk_is_found_from_the_splits_alone(
        requests in prop::collection::vec((0_u64..1 << 24, 1_u64..600, any::<bool>()), 2000),
        power in 16_u32..22,
    ) {
        let (text, _) = trace(&requests, 1 << power);
        let (_, summary) = read(&text, None).unwrap();
        let border = summary.devices[0].border.unwrap();
        prop_assert_eq!((border.bytes, border.known), (1 << power, BorderKnown::Splits));
        prop_assert_eq!(border.whole, 0);
        let said = summary.findings();
        prop_assert!(said.iter().any(|finding| finding.text.contains("were split at multiples")));
    }

    #[test]
    fn a_chunk_that_is_none_is_refuted(requests in any_requests(), power in 17_u32..22) {
        // the device splits nothing
        let (text, _) = trace(&requests, 1 << 40);
        let (_, summary) = read(&text, Some(1 << power)).unwrap();
        let border = summary.devices[0].border.unwrap();
        prop_assert_eq!(border.split, 0);
        let named = &summary.devices[0].split_requests;
        prop_assert!(named.iter().all(|split| !split.split));
        prop_assert_eq!(named.len() as u64, border.whole);
    }

    #[test]
    fn any_bytes_are_a_trace_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = Recorded::read(&bytes[..], |_, _| {});
    }

    #[test]
    fn a_trace_with_anything_in_it_is_read_or_an_error(
        at in 0..PUBLISHED.len(), insert in "[ -~\n]{0,30}"
    ) {
        let (before, after) = PUBLISHED.split_at(at);
        match read(&format!("{before}{insert}{after}"), None) {
            Ok((recorded, _)) => prop_assert!(recorded.events > 0),
            Err(RecordedError::Line { number, .. }) => prop_assert!(number > 0),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

/// Writes of this many sectors from odd places, each split behind its first ones.
fn split_writes(sectors: u64, first: impl Fn(u64) -> u64) -> String {
    let mut text = String::new();
    for n in 0..50_u64 {
        let (begin, at) = (n * 4001 + 3, n as f64 / 1e3);
        writeln!(text, "8,0 1 1 {at:.6} 1 Q W {begin} + {sectors} [x]").unwrap();
        writeln!(text, "8,0 1 1 {at:.6} 1 X W {begin} / {} [x]", begin + first(n)).unwrap();
        writeln!(text, "8,0 1 1 {:.6} 1 C W {begin} + {sectors} [0]", at + 5e-4).unwrap();
    }
    text
}

#[test]
fn splits_by_the_longest_request_are_no_border() {
    let text = split_writes(256, |_| 128);
    let (_, summary) = read(&text, None).unwrap();
    let device = &summary.devices[0];
    assert_eq!(device.cause, Some(SplitCause::Length { bytes: 64 * KIB }));
    assert_eq!(device.border, None);
    let said = summary.findings();
    assert!(said.iter().any(|finding| finding.text.contains("max_sectors_kb")), "{said:?}");
}

#[test]
fn alignment_and_read_modify_write_are_counted_by_direction() {
    let mut text = String::new();
    let mut micros = 0;
    for n in 0..100_u64 {
        let mut line = |action: &str, kind: &str, sector: u64, sectors: u64| {
            micros += 100;
            writeln!(text, "8,0 1 1 0.{micros:06} 1 {action} {kind} {sector} + {sectors} [x]")
                .unwrap();
        };
        line("Q", "R", n * 800, 8);
        line("C", "R", n * 800, 8);
        line("Q", "W", n * 800 + 2, 254);
        line("C", "W", n * 800 + 2, 254);
        line("Q", "D", n * 2048, 2048);
    }
    let (_, summary) = read(&text, None).unwrap();
    let device = &summary.devices[0];
    assert_eq!(device.read_before_misaligned, 100);
    let counts = |place: usize, bytes: u64| {
        let aligned = device.directions[place].alignment.iter();
        aligned.filter(|part| part.bytes == bytes).map(|part| part.requests).sum::<u64>()
    };
    assert_eq!(device.directions[1].direction, Direction::Write);
    assert_eq!((counts(1, 1024), device.directions[1].misaligned), (100, 100));
    assert_eq!(counts(2, 1 << 20), 100);
    assert_eq!((device.directions[2].unfinished, device.directions[0].misaligned), (100, 0));
    let said = &summary.findings()[0];
    for words in ["100 % of writes", "of 100 of these was read", "-b size=4096"] {
        assert!(said.text.contains(words), "{said:?}");
    }
}

/// Writes of which some begin inside of a block of 4 KiB.
fn writes(aligned: u64, misaligned: u64) -> String {
    let mut text = String::new();
    for n in 0..aligned + misaligned {
        let (sector, at) = (n * 800 + u64::from(n < misaligned), n as f64 / 1e3);
        writeln!(text, "8,0 1 1 {at:.6} 1 Q W {sector} + 8 [x]").unwrap();
        writeln!(text, "8,0 1 1 {at:.6} 1 C W {sector} + 8 [0]").unwrap();
    }
    text
}

#[test]
fn a_few_misaligned_writes_such_as_of_a_log_are_no_finding() {
    for (aligned, misaligned, warns) in [(5, 1, false), (11, 5, false), (0, 16, true)] {
        let (_, summary) = read(&writes(aligned, misaligned), None).unwrap();
        let said = &summary.findings()[0];
        assert_eq!(said.warns, warns, "{said:?}");
    }
}

#[test]
fn a_file_system_that_has_blocks_of_the_disk_is_not_to_be_made_again() {
    for (kind, block_bytes, words) in [
        ("xfs", 1024, "-b size=4096"),
        ("xfs", 4096, "direct writes of parts of blocks, or its log (mkfs.xfs -l su=4096 pads it)"),
        ("ext4", 4096, "direct writes of parts of blocks, or its log. Write whole blocks"),
    ] {
        let file_system = Some(FileSystem { kind: kind.into(), block_bytes });
        let watched = Watched { file_system, ..watched(None) };
        let (_, summary) = read_of(&writes(100, 50), Requests::new(&[], watched)).unwrap();
        let said = &summary.findings()[0];
        assert!(said.text.contains("33 % of writes") && said.text.contains(words), "{said:?}");
    }
}

#[test]
fn the_longest_request_is_blamed_only_where_parts_are_as_long() {
    let text = split_writes(2048, |_| 1024);
    for (longest, most, pages, words) in [
        (512, 2048, 1024, "or raise it, to 2 MiB at most"),
        // as high as the kernel lets it be, or as high as its memory may have pieces
        (512, 512, 1024, "the longest request that the kernel sends"),
        (512, 2048, 512, "the longest request that the kernel sends"),
        (1280, 1280, 512, "max_segments"),
        (
            1280,
            1280,
            672,
            "may be a chunk; the longest request that the kernel sends to it is \
                           1280 KiB",
        ),
    ] {
        let (longest_bytes, pages_bytes) = (Some(longest * KIB), Some(pages * KIB));
        let longest_possible_bytes = Some(most * KIB);
        let watched =
            Watched { longest_bytes, longest_possible_bytes, pages_bytes, ..watched(None) };
        let (_, summary) = read_of(&text, Requests::new(&[], watched)).unwrap();
        let said = summary.findings();
        let said = said.iter().find(|said| said.text.contains("were split")).unwrap();
        assert!(said.text.contains(words), "{said:?}");
        assert_eq!(said.text.contains("or raise it"), pages == 1024 && most > longest, "{said:?}");
    }
}

#[test]
fn splits_without_a_cause_are_said_too() {
    let text = split_writes(2048, |n| 100 + n * 7);
    let (_, summary) = read(&text, None).unwrap();
    let said = summary.findings();
    let found = said.iter().find(|finding| finding.text.contains("100 % of requests were split"));
    assert!(found.unwrap().text.contains("no common border"), "{said:?}");
}

#[test]
fn the_text_of_the_kernel_is_read_too() {
    let text = "# tracer: nop\n#\n\
        dd-1 [001] ..... 758.337315: block_bio_queue: 7,0 WS 512 + 256 [dd]\n\
        dd-1 [001] ..... 758.337318: block_split: 7,0 WS 512 / 640 [dd]\n\
        dd-1 [001] ..... 758.337412: block_getrq: 7,0 WS 512 + 128 [dd]\n\
        x-1 [001] ..... 758.337500: io_uring_queue_async_work: ring 0f, request 1f, user_data \
        0x0, opcode WRITE, flags 0x0, normal queue, work 2f\n\
        ksoftirqd/1-22 [001] ..s.. 758.338079: block_rq_complete: 7,0 WS () 512 + 128 be,0,4 [0]\n\
        ksoftirqd/1-22 [001] ..s.. 758.338081: block_rq_complete: 7,0 WS () 640 + 128 be,0,4 [0]\n";
    let (recorded, summary) = read(text, None).unwrap();
    assert_eq!((recorded.events, recorded.unknown_lines), (5, 0));
    assert_eq!(summary.devices[0].split_requests[0].points, [640 * SECTOR]);
    assert_eq!(summary.async_work[0].requests, 1);
    assert!(summary.findings().iter().any(|said| said.text.contains("io_uring")));
}

#[test]
fn a_healthy_trace_has_nothing_to_fix() {
    let requests: Vec<_> = (0..100).map(|n| (n * 256, 256, n % 2 == 0)).collect();
    let (text, _) = trace(&requests, 1 << 20);
    let (_, summary) = read(&text, Some(1 << 20)).unwrap();
    let said = summary.findings();
    assert!(said.len() == 1 && !said[0].warns && said[0].text.contains("nothing to fix"));
    assert!(!read("8,0 1 1 0.1 1 Q W 8 + 8 [x]\n", None).unwrap().1.findings()[0].warns);
}

/// Appends of 128 KiB by several writers at a time: `place` says in which chunk of 1 MiB each is.
fn appends(place: impl Fn(u64) -> u64) -> String {
    let mut text = String::new();
    for round in 0..32 {
        let sector = |writer: u64| place(writer) * 2048 + round % 8 * 256;
        for writer in 0..8 {
            let _ = writeln!(
                text,
                "  9,127  0  1  {round}.000000000  1  Q  W {} + 256 [a]",
                sector(writer)
            );
        }
        for writer in 0..8 {
            let _ = writeln!(
                text,
                "  9,127  0  1  {round}.000900000  0  C  W {} + 256 [0]",
                sector(writer)
            );
        }
    }
    text
}

#[test]
fn members_of_an_array_with_more_than_their_part_are_named() {
    let of = |members, place: fn(u64) -> u64| {
        let watched = Watched { members, ..watched(Some(1 << 20)) };
        let (_, summary) = read_of(&appends(place), Requests::new(&[], watched)).unwrap();
        let texts = summary.findings().into_iter().filter(|found| found.warns);
        texts.map(|found| found.text).filter(|text| text.contains("member")).collect::<Vec<_>>()
    };
    let uneven = of(Some(4), |writer| writer * 4 + 1);
    let expected = "9:127: member 2 of 4 has 100 % of the requests in flight (25 % would be \
                    even): place files on other chunks.";
    assert_eq!(uneven, [expected]);
    assert!(of(Some(4), |writer| writer * 5).is_empty());
    assert!(of(None, |writer| writer * 4 + 1).is_empty());
}
