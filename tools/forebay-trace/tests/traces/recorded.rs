//! What is read of recorded text, and what is refused.

use forebay_trace::Recorded;

#[test]
fn an_unknown_format_is_reported_with_its_line() {
    let event = "  9,127  3     1821     4.187301000 18311  Q  WS 21057335224 + 256 [reactor-3]";
    let binary = [b"\x07tae".as_slice(), &[0; 60]].concat();
    for (text, expected) in [
        (b"".as_slice(), "(D, block_rq_issue); it has no event; record"),
        (b"# nothing\n\n", "no request in it"),
        (b"8,0 1 1 0.1 1 P N [x]\n", "no request in it"),
        (b"fio version 2 iolog\n", "line 1: `fio version 2 iolog` is no event"),
        (
            &binary,
            "line 1: this is a binary recording of blktrace; convert it to text: blkparse \
                   -i",
        ),
        (b"\x7fELF\0\0", "line 1: this is not text"),
        (
            format!("{event}\n8,0 1 1 0.2 1 Q W 8 by 8 [x]\n").as_bytes(),
            "line 2: expected SECTOR + SECTORS after the kind",
        ),
        (
            format!("{event}\n8,0 1 1 0.2 1 X W 8 + 8 [x]\n").as_bytes(),
            "line 2: expected SECTOR / SECTOR where a request",
        ),
        (
            format!("{event}\n8,0 one 1 0.2 1 Q W 8 + 8 [x]\n").as_bytes(),
            "line 2: expected a processor and a sequence number after the device",
        ),
        (
            b"8,0 1 1 0.2 1 C W 8 + 8 [0]\n8,0 1 1 0.1 1 G W 8 + 8 [x]\n",
            "it has 1 completed (C), 1 G",
        ),
        (b"x 1 [000] 1.5: block:block_plug: [x]\n", "it has 1 block_plug; record"),
        (b"1.5 R 8 4096\n", "line 1: `1.5 R 8 4096` is no event"),
        (b"1.5, 7, fio, C, 8, 8, 4096\n", "a custom format of blkparse (-f)"),
        (b"8,0 1 1 0.5\n", "line 1: expected a process and an action"),
    ] {
        let read = Recorded::read(text, |_, _| {});
        let Err(error) = read else { panic!("{expected}: {read:?}") };
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    // a word that some other tool put between events
    let mixed = format!("{event}\nhello\n{event}\n");
    let read = Recorded::read(mixed.as_bytes(), |_, _| {}).unwrap();
    assert_eq!((read.events, read.unknown_lines, read.unknown_first), (2, 1, 2));
    // one line of many is no reason to refuse all
    let many = format!("{event}\n").repeat(200);
    let broken = format!("{event}\n8,0 one 1 0.2 1 Q W 8 + 8 [x]\n{many}");
    let read = Recorded::read(broken.as_bytes(), |_, _| {}).unwrap();
    assert_eq!((read.events, read.unknown_lines, read.unknown_first), (201, 1, 2));
    // but not a file of something else that has an event somewhere
    let late = format!("{}{event}\n", "hello\n".repeat(101));
    let error = Recorded::read(late.as_bytes(), |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("line 1: `hello` is no event"), "{error}");
    for lost in ["CPU:1 [LOST 123 EVENTS]", "CPU:1 [123 EVENTS DROPPED]"] {
        let read = Recorded::read(format!("{event}\n{lost}\n").as_bytes(), |_, _| {}).unwrap();
        assert_eq!((read.lost, read.unknown_lines), (123, 0));
    }
    let lost = format!("{event}\nCPU0 (sda):\nhello\nSkips: 1 forward (1,234 -   0.5%)\n");
    let read = Recorded::read(lost.as_bytes(), |_, _| {}).unwrap();
    assert_eq!((read.lost, read.unknown_lines), (1234, 0));
}

#[test]
fn the_name_of_a_process_may_be_any_bytes() {
    let event = "9,127 3 1821 4.187301000 18311 Q WS 8 + 256 [caf?]\n";
    for (begin, name) in [(&b""[..], b'\xe9'), (&b"\xef\xbb\xbf"[..], b'?')] {
        let bytes = event.bytes().map(|byte| if byte == b'?' { name } else { byte });
        let bytes: Vec<u8> = begin.iter().copied().chain(bytes).collect();
        let read = Recorded::read(&bytes[..], |_, _| {}).unwrap();
        assert_eq!((read.events, read.unknown_lines), (1, 0));
    }
}

#[test]
fn an_event_that_is_cut_off_at_the_end_of_the_file_is_stated_and_not_read() {
    for event in [
        "9,127 3 1821 4.187301000 18311 Q WS 21057335224 + 256 [reactor-3]",
        "x-1 [000] 1.5: block_rq_issue: 9,127 WS 131072 () 21057335224 + 256 [reactor-3]",
    ] {
        // also where a shorter number is left of its last one
        for len in 1..event.len() {
            let cut = format!("{event}\n{}", &event[..len]);
            let read = Recorded::read(cut.as_bytes(), |_, _| {}).unwrap();
            assert_eq!((read.events, read.unknown_lines, read.unknown_first), (1, 1, 2), "{cut}");
        }
        let whole = format!("{event}\n{event}");
        let read = Recorded::read(whole.as_bytes(), |_, _| {}).unwrap();
        assert_eq!((read.events, read.unknown_lines), (2, 0));
    }
}
