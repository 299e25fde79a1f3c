//! Messages about errors in a file.

use crate::properties::Properties;

const GOOD: [&str; 5] = [
    "mountpoint: /mnt",
    "read_iops: 95000",
    "write_iops: 85000",
    "read_bandwidth: 500M",
    "write_bandwidth: 400M",
];

/// A file with one good disk, in which `line` replaces the line with its key, or is added at the
/// end.
pub(super) fn with(line: &str) -> String {
    let key = |line: &str| line.split(':').next().map(str::to_owned);
    let mut lines = GOOD.to_vec();
    match lines.iter().position(|other| key(other) == key(line)) {
        Some(index) => lines[index] = line,
        None => lines.push(line),
    }
    file(&lines)
}

/// A file with one good disk, but without the line with `key`.
pub(super) fn without(key: &str) -> String {
    let lines = GOOD.into_iter().filter(|line| !line.starts_with(key));
    file(&lines.collect::<Vec<_>>())
}

pub(super) fn file(lines: &[&str]) -> String {
    format!("disks:\n  - {}\n", lines.join("\n    "))
}

#[track_caller]
fn complains(text: &str, message: &str) {
    let error = Properties::parse("io.yaml", text).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn keys() {
    complains(
        &with("read_ipos: 1"),
        "io.yaml:7:5: disks[0].read_ipos: unknown key `read_ipos`; did you mean `read_iops`?",
    );
    complains(
        "defaults:\n  read_iops: 5\n",
        "io.yaml:1:1: defaults: this seems to be a table of the figures of several instance types; \
         copy those of one into a file of its own, below `disks:` and `- mountpoint: DIR`; unknown \
         key `defaults`; known are `io_properties`, `disks`",
    );
    complains(
        &with("read_iops:"),
        "io.yaml:3:5: disks[0].read_iops: there is no value (`~` and `null` mean none); write one, \
         or remove the key",
    );
    complains(
        &without("write_iops"),
        "io.yaml:2:5: disks[0].write_iops: the key `write_iops` is missing; add it",
    );
    complains(
        &with("duplex: true\n    duplex: true"),
        "io.yaml:8:5: disks[0].duplex: the key appears twice in this mapping; remove one of them",
    );
}

#[test]
fn types() {
    complains(
        "- mountpoint: /mnt\n",
        "io.yaml:1:1: found a list; expected a mapping (`KEY: VALUE` lines)",
    );
    complains("disks: []\n", "io.yaml:1:8: disks: the list is empty; expected at least one disk");
    complains(
        "disks:\n  mountpoint: /mnt\n",
        "io.yaml:2:3: disks: found a mapping; expected a list (`- ` before each item, or `[a, b]`)",
    );
    complains(
        &with("read_bandwidth: 500 MB/s"),
        "io.yaml:5:21: disks[0].read_bandwidth: found `500 MB/s`; expected a number, alone or with \
         k, M, G or T (powers of 1024), such as 150000 or 1.5G",
    );
    complains(
        &with("duplex: full"),
        "io.yaml:7:13: disks[0].duplex: found `full`; expected `true` or `false`",
    );
    complains(
        &with("rate_factor: 95%"),
        "io.yaml:7:18: disks[0].rate_factor: found `95%`; expected a number, such as 0.5",
    );
}

#[test]
fn mountpoints() {
    complains(
        &with("mountpoints: [/a]"),
        "io.yaml:7:18: disks[0].mountpoints: the disk has both `mountpoint` and `mountpoints`; \
         keep one of them",
    );
    complains(
        &without("mountpoint"),
        "io.yaml:2:5: disks[0]: the disk has no mountpoint; add `mountpoint: PATH`, a directory \
         on it",
    );
    complains(
        &with("mountpoint: ''"),
        "io.yaml:2:17: disks[0].mountpoint: the path is empty; write a directory or a block device",
    );
    let twice = without("mountpoint").replacen("  - ", "  - mountpoints: [/a, /b/, /a]\n    ", 1);
    complains(
        &twice,
        "io.yaml:2:28: disks[0].mountpoints[2]: used twice; a mountpoint belongs to one disk; \
         remove one of the two",
    );
    let empty = twice.replace("[/a, /b/, /a]", "[]");
    complains(
        &empty,
        "io.yaml:2:18: disks[0].mountpoints: the list is empty; expected at least one path",
    );
    let two =
        format!("{}{}", with("duplex: true"), with("mountpoint: /mnt/").replace("disks:\n", ""));
    complains(
        &two,
        "io.yaml:8:17: disks[1].mountpoint: used twice; a mountpoint belongs to one disk; \
         remove one of the two",
    );
}

#[test]
fn numbers() {
    complains(
        &with("read_iops: 0"),
        "io.yaml:3:16: disks[0].read_iops: found 0; expected 1 to 100000000 operations per second; \
         correct it or measure again",
    );
    complains(
        &with("write_iops: 100000001"),
        "io.yaml:4:17: disks[0].write_iops: found 100000001; expected 1 to 100000000 operations \
         per second; correct it or measure again",
    );
    complains(
        &with("write_bandwidth: 1T"),
        "io.yaml:6:22: disks[0].write_bandwidth: found 1099511627776; expected 1 to 1000000000000 \
         bytes per second; correct it or measure again",
    );
    complains(
        &with("rate_factor: 0.000005"),
        "io.yaml:3:16: disks[0].read_iops: found 95000 times the rate_factor 5e-6; expected 1 \
         to 100000000 operations per second; correct it or measure again",
    );
    complains(
        &with("rate_factor: 1e-300"),
        "io.yaml:3:16: disks[0].read_iops: found 95000 times the rate_factor 1e-300; expected 1 \
         to 100000000 operations per second; correct it or measure again",
    );
    complains(
        &with("rate_factor: -1e300"),
        "io.yaml:7:18: disks[0].rate_factor: found -1e300; expected a number above 0, such as 0.95",
    );
    for factor in ["0", "-1", ".inf", ".nan"] {
        let error = Properties::parse("f", &with(&format!("rate_factor: {factor}"))).unwrap_err();
        assert!(error.message.ends_with("; expected a number above 0, such as 0.95"), "{error}");
        assert_eq!(error.key.as_deref(), Some("disks[0].rate_factor"));
    }
    complains(
        &with("read_saturation_length: 17M"),
        "io.yaml:7:29: disks[0].read_saturation_length: found 17825792; expected 1 to 16777216 \
         bytes (16M); correct it or remove the key",
    );
    complains(
        &with("write_saturation_length: 0"),
        "io.yaml:7:30: disks[0].write_saturation_length: found 0; expected 1 to 16777216 \
         bytes (16M); correct it or remove the key",
    );
    complains(
        &with("physical_block_size: 1000"),
        "io.yaml:7:26: disks[0].physical_block_size: found 1000; expected a power of two from 512 \
         to 1048576; correct it or remove the key",
    );
}

#[test]
fn latency_targets() {
    for wrong in ["p95", "1ms", "p95=1", "true"] {
        complains(
            &with(&format!("latency_target: {wrong}")),
            &format!(
                "io.yaml:7:21: disks[0].latency_target: found `{wrong}`; expected a percentile of \
                 reads and a time, such as p95=1ms or p99.9=2ms, of writes, such as \
                 writes:p95=5ms, or in the disk, such as disk:p95=1ms; `off` is for none"
            ),
        );
    }
    complains(
        &with("latency_target: p100=1ms"),
        "io.yaml:7:21: disks[0].latency_target: found `p100=1ms`; expected a percentile from \
         50 to 99.9 for a latency target; `off` is for none",
    );
    complains(
        &with("latency_target: p95=0ms"),
        "io.yaml:7:21: disks[0].latency_target: found `p95=0ms`; expected a latency above zero, \
         and of at most a minute, for a latency target; `off` is for none",
    );
}
