//! `forebay trace` where it cannot trace. Where it can is tried in `tests/discards`.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::process::run;

fn trace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["trace", "discards"]).args(arguments);
    command
}

#[test]
fn untraceable_devices_are_named() {
    run(&mut trace(&["--device", "/dev/none-such"])).complains(2, &["`/dev/none-such`"]);
    run(&mut trace(&["--device", "/"])).complains(2, &["`/` is not a block device", "--dir"]);
    run(&mut trace(&["--dir", "/proc"])).complains(2, &["not on a disk of this machine"]);
    run(&mut trace(&["--dir", "/none-such"])).complains(2, &["`/none-such`"]);
    run(&mut trace(&["--output", "/none-such/file"])).complains(2, &["/none-such/file"]);
    run(&mut trace(&["--duration", "0s"])).complains(2, &["more than zero"]);
    run(&mut trace(&["--duration", "1s", "--", "true"])).complains(2, &["--duration"]);
    run(&mut trace(&["--after", "1s"])).complains(2, &["COMMAND"]);
    run(&mut trace(&["--device", "/dev/null", "--dir", "/"])).complains(2, &["--dir"]);
}

#[test]
fn only_root_can_trace() {
    for mut command in [trace(&["--duration", "1s"]), requests(&["--duration", "1s"])] {
        if rustix::process::geteuid().is_root() {
            command.uid(65_534);
        }
        // where the program itself lies where nobody else may look it cannot be tried
        match command.output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains("only root can trace"), "{said}");
            }
            Err(error) => super::system::skipped(error),
        }
    }
}

#[test]
fn root_that_may_not_mount_is_told_what_tracing_needs() {
    if !rustix::process::geteuid().is_root() {
        return super::system::skipped("only root can lay its capabilities down");
    }
    // as in a container
    let script = "umount /sys/kernel/tracing 2> /dev/null; \
                  exec setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin \"$@\"";
    for command in [trace(&["--duration", "1s"]), requests(&["--duration", "1s"])] {
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "sh", "-c", script, "sh"]).arg(command.get_program());
        let ended = run(inside.args(command.get_args()));
        ended.complains(1, &["tracefs cannot be mounted", "CONFIG_FTRACE", "CAP_SYS_ADMIN"]);
    }
}

/// What the article of 2025 shows of a request that two disks of an array share.
const SPLIT: &str = "\
  9,127  3     1821     4.187301000 18311  Q  WS 21057335224 + 256 [reactor-3]
  9,127  3     1822     4.187302000 18311  X  WS 21057335224 / 21057335296 [reactor-3]
  9,127  3     1827     4.187400000 18311  Q  WS 21057350000 + 256 [reactor-3]
  9,127  3     1830     4.187452000     0  C  WS 21057350000 + 256 [0]
  9,127  3     1831     4.187462000     0  C  WS 21057335224 + 72 [0]
  9,127  3     1832     4.192550000     0  C  WS 21057335296 + 184 [0]
";

fn requests(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["trace", "requests"]).args(arguments);
    command
}

#[test]
fn a_recorded_split_is_found_without_root() {
    let dir = tempfile::tempdir().unwrap();
    let [file, page] = ["trace.txt", "page.html"].map(|name| dir.path().join(name));
    std::fs::write(&file, SPLIT).unwrap();
    let from = ["--from", file.to_str().unwrap(), "--chunk", "1MiB"];
    let ended = run(&mut requests(&from));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = ended.stdout;
    for words in ["0x9CE3AE00000", "36 KiB 161 us, 92 KiB 5249 us", "1 (50.0 %)", "mkfs.xfs -d"] {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains("/")), "{text}");
    let report = ["--json", "--report", page.to_str().unwrap()];
    let found = run(&mut requests(&[&from[..], &report].concat())).results();
    let device = &found["devices"][0];
    assert_eq!(device["split_requests"][0]["points"][0], 0x9CE_3AE0_0000_u64);
    assert_eq!(device["border"]["known"], "stated");
    assert_eq!(device["directions"][0]["whole_us"]["p50"], 52.0);
    assert!(found["findings"][0]["warns"].as_bool().unwrap());
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("0x9CE3AE00000") && html.contains("id=\"results\""));
}

#[test]
fn discards_of_a_recorded_trace_are_counted_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.txt");
    let event = |kind: &str| -> String {
        let at = |n: u32| format!("8,0 0 1 {}.0 7 {kind} D {} + 2048 [x]\n", 5 * n, 2048 * n);
        (0..6).map(at).collect()
    };
    let reads = "8,0 0 1 30.0 7 Q R 8 + 8 [x]\n8,0 0 1 30.0 7 D R 8 + 8 [x]\n";
    let sorted = |kinds: &[&str]| {
        let text: String = kinds.iter().map(|kind| event(kind)).collect();
        let mut lines: Vec<&str> = text.lines().collect();
        let time = |line: &&str| line.split(' ').nth(3).unwrap().parse::<f64>().unwrap() as u64;
        lines.sort_by_key(time);
        lines.join("\n") + "\n" + reads
    };
    // issued after they were queued, or only one of the two
    for kinds in [&["Q", "D"][..], &["Q"], &["D"]] {
        std::fs::write(&file, sorted(kinds)).unwrap();
        let found = run(&mut trace(&["--from", file.to_str().unwrap(), "--json"])).results();
        assert_eq!((&found["requests"], &found["bytes"]), (&6.into(), &(6 << 20).into()));
        assert_eq!(found["shape"], "bursts");
        assert_eq!(found["period"]["median_s"], 5.0, "{found}");
    }
    run(&mut trace(&["--from", "/none-such"])).complains(2, &["`/none-such`"]);
    run(&mut trace(&["--from", "x", "--duration", "1s"])).complains(2, &["--duration"]);
}

#[test]
fn failures_and_what_is_not_read_are_in_the_text_and_in_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.txt");
    let trace = "8,0 0 1 1.000 7 Q W 8 + 8 [x]\n8,0 0 2 1.001 7 G W 8 + 8 [x]\n\
                 8,0 0 3 1.002 7 D W 8 + 8 [x]\n8,0 0 4 1.005 0 C W 8 + 8 [-5]\n";
    std::fs::write(&file, trace.repeat(30)).unwrap();
    let from = ["--from", file.to_str().unwrap()];
    let text = run(&mut requests(&from)).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let failed = "30 of 30 completions report an error (30 times Input/output error (os error 5))";
    for words in [failed, "recorded but not parsed: 30 G", "failed 30 (100.0 %)", "in the disk 30"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let found = run(&mut requests(&[&from[..], &["--json"]].concat())).results();
    assert_eq!(found["not_read"][0]["count"], 30);
    assert_eq!(found["devices"][0]["errors"][0]["error"], 5);
}

#[test]
fn a_file_that_is_no_trace_is_reported_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace");
    let path = file.to_str().unwrap();
    for (bytes, words) in [
        (&b"\x07tae\0\0\0\0"[..], "blkparse -i FILE"),
        (b"\x7fELF\x02\0\0", "line 1: this is not text"),
        (b"fio version 2 iolog\n/dev/sda add\n", "line 1: `fio version 2 iolog`"),
        (
            b"8,0 1 1 0.1 1 Q W 8 + 8 [x]\n8,0 1 1 0.1 1 Q W 8 by 8 [x]\n",
            "line 2: expected SECTOR + SECTORS after the kind",
        ),
        (b"", "no request in it"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        run(&mut requests(&["--from", path])).complains(2, &[path, words]);
    }
    run(&mut requests(&["--from", "/none-such"])).complains(2, &["`/none-such`"]);
    run(&mut requests(&["--from", "/"])).complains(2, &["`/`"]);
    run(&mut requests(&["--from", path, "--dir", "/"])).complains(2, &["--dir"]);
    run(&mut requests(&["--from", path, "--", "true"])).complains(2, &["COMMAND"]);
    run(&mut requests(&["--chunk", "1000"])).complains(2, &["multiple of 512"]);
    run(&mut requests(&["--chunk", "0"])).complains(2, &["more than zero"]);
    run(&mut requests(&["--block", "6KiB"])).complains(2, &["power of two"]);
    run(&mut requests(&["--device", "/dev/none-such"])).complains(2, &["`/dev/none-such`"]);
    run(&mut requests(&["--report", "/none-such/page"])).complains(2, &["/none-such/page"]);
}
