//! The forms in which files are written in the field: those that are accepted with their meaning,
//! and those that are refused with a message.

use super::messages::{file, with, without};
use crate::properties::{DiskProperties, Properties};

/// The expected outcome of a file.
enum Right {
    /// The file is accepted, and this is true of its first disk.
    Read(fn(&DiskProperties) -> bool),
    /// The file is refused, and the message contains this text.
    Refused(&'static str),
}

use Right::{Read, Refused};

fn check(text: &str, right: &Right) {
    match (Properties::parse("io.yaml", text), right) {
        (Ok(properties), Read(is_right)) => {
            assert!(is_right(&properties.disks[0]), "{text}: {properties:?}");
        }
        (Err(error), Refused(words)) => {
            let error = error.to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        (Ok(properties), Refused(_)) => panic!("{text} is read: {properties:?}"),
        (Err(error), Read(_)) => panic!("{text} is refused: {error}"),
    }
}

/// One line of a file, and its expected outcome.
const LINES: &[(&str, Right)] = &[
    // suffixes
    ("read_bandwidth: 545MB", Read(|disk| disk.read_bandwidth == 545 << 20)),
    ("read_bandwidth: 545MiB", Read(|disk| disk.read_bandwidth == 545 << 20)),
    ("read_bandwidth: 545Mi", Read(|disk| disk.read_bandwidth == 545 << 20)),
    ("read_bandwidth: 1000000000B", Read(|disk| disk.read_bandwidth == 1_000_000_000)),
    ("read_bandwidth: 2 G", Read(|disk| disk.read_bandwidth == 2 << 30)),
    ("read_bandwidth: 1.5G", Read(|disk| disk.read_bandwidth == 3 << 29)),
    ("read_bandwidth: 545m", Refused("k, M, G or T")),
    ("read_bandwidth: 1g", Refused("k, M, G or T")),
    ("read_bandwidth: .5G", Refused("such as 150000 or 1.5G")),
    ("read_iops: 150k", Read(|disk| disk.read_iops == 150 << 10)),
    ("read_iops: 150K", Read(|disk| disk.read_iops == 150 << 10)),
    // forms of numbers
    ("read_bandwidth: 1e9", Read(|disk| disk.read_bandwidth == 1_000_000_000)),
    ("read_bandwidth: 1.5e9", Read(|disk| disk.read_bandwidth == 1_500_000_000)),
    ("read_bandwidth: 1E+09", Read(|disk| disk.read_bandwidth == 1_000_000_000)),
    ("read_bandwidth: 545000000.0", Read(|disk| disk.read_bandwidth == 545_000_000)),
    ("read_iops: 150_000", Refused("write 150000")),
    ("read_iops: 150,000", Refused("found `150,000`")),
    ("read_iops: 150000,", Refused("found `150000,`")),
    ("read_iops: +150000", Read(|disk| disk.read_iops == 150_000)),
    ("read_iops: -1", Refused("found `-1`")),
    ("read_iops: '150000'", Read(|disk| disk.read_iops == 150_000)),
    ("read_iops: 0", Refused("expected 1 to")),
    ("read_iops: 18446744073709551615", Refused("expected 1 to 100000000")),
    ("read_iops: 0x249F0", Read(|disk| disk.read_iops == 150_000)),
    ("read_iops: 0150000", Read(|disk| disk.read_iops == 150_000)),
    // factors, truths and sizes
    ("rate_factor: 0.5", Read(|disk| disk.read_iops == 47_500)),
    ("rate_factor: '0.5'", Read(|disk| disk.read_iops == 47_500)),
    ("rate_factor: .5", Read(|disk| disk.read_iops == 47_500)),
    ("rate_factor: 2", Read(|disk| disk.read_iops == 190_000)),
    ("rate_factor: 95%", Refused("such as 0.5")),
    ("rate_factor: 0,95", Refused("such as 0.5")),
    ("rate_factor: 0", Refused("above 0")),
    ("rate_factor: .nan", Refused("above 0")),
    ("rate_factor: 1e-9", Refused("times the rate_factor")),
    ("duplex: true", Read(|disk| disk.duplex)),
    ("duplex: yes", Read(|disk| disk.duplex)),
    ("duplex: on", Read(|disk| disk.duplex)),
    ("duplex: TRUE", Read(|disk| disk.duplex)),
    ("duplex: 'true'", Read(|disk| disk.duplex)),
    ("duplex: 1", Refused("`true` or `false`")),
    ("read_saturation_length: 128k", Read(|disk| disk.read_saturation_length == Some(128 << 10))),
    ("read_saturation_length: 128KiB", Read(|disk| disk.read_saturation_length == Some(128 << 10))),
    ("read_saturation_length: 131072", Read(|disk| disk.read_saturation_length == Some(131_072))),
    ("read_saturation_length: 0", Refused("16M")),
    ("read_saturation_length: 32M", Refused("16M")),
    ("physical_block_size: 4k", Read(|disk| disk.physical_block_size == Some(4096))),
    ("physical_block_size: 4096", Read(|disk| disk.physical_block_size == Some(4096))),
    ("physical_block_size: 520", Refused("a power of two")),
    // paths
    ("mountpoint: /mnt/my disk", Read(|disk| disk.mountpoints[0].ends_with("my disk"))),
    ("mountpoint: '/mnt/my disk'", Read(|disk| disk.mountpoints[0].ends_with("my disk"))),
    ("mountpoint: /mnt/a#b", Read(|disk| disk.mountpoints[0].ends_with("a#b"))),
    ("mountpoint: /mnt/a # first", Read(|disk| disk.mountpoints[0].ends_with("a"))),
    ("mountpoint: /mnt/\u{fc}", Read(|disk| disk.mountpoints[0].ends_with("\u{fc}"))),
    ("mountpoint: 123", Read(|disk| disk.mountpoints[0].ends_with("123"))),
    ("mountpoint: data", Read(|disk| disk.mountpoints[0].ends_with("data"))),
    ("mountpoint: ~/data", Read(|disk| disk.mountpoints[0].ends_with("data"))),
    ("mountpoint: /dev/nvme0n1", Read(|disk| disk.mountpoints[0].ends_with("nvme0n1"))),
    ("mountpoint: /mnt/a: b", Refused("not valid YAML")),
    ("mountpoint: ~", Refused("`~` and `null` mean none")),
    ("mountpoint:", Refused("there is no value")),
    ("mountpoint: [/mnt/a, /mnt/b]", Refused("`mountpoints`")),
    // keys
    ("model: fast", Refused("unknown key `model`")),
    ("num_disks: 4", Refused("unknown key `num_disks`")),
    ("read_bw: 5", Refused("did you mean `read_bandwidth`?")),
    ("read-iops: 5", Refused("did you mean `read_iops`?")),
    ("disks: 5", Refused("next to `disks`, not in it")),
    ("radii: [1]", Refused("it belongs in an entry of `regions`")),
];

#[test]
fn a_line_is_read_as_seastar_does_or_refused_with_what_to_write() {
    for (line, right) in LINES {
        check(&with(line), right);
    }
}

/// Whole files, and their expected outcomes. Files that differ in layout and in values.
fn files_of_disks() -> Vec<(String, Right)> {
    let good = with("read_iops: 95000");
    let is_good = || Read(|disk| disk.read_iops == 95_000);
    let disk = |path: &str| {
        format!(
            "- {{mountpoint: {path}, read_iops: 9, read_bandwidth: 1M, write_iops: 9, write_bandwidth: 1M}}\n"
        )
    };
    let disks = |paths: &[&str]| {
        format!("disks:\n{}", paths.iter().map(|path| disk(path)).collect::<String>())
    };
    let many = |count: usize| {
        let paths: Vec<String> = (0..count).map(|n| format!("/mnt/{n}")).collect();
        disks(&paths.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let lines =
        good.lines().skip(1).map(|line| line.trim_start_matches([' ', '-'])).collect::<Vec<_>>();
    vec![
        (good.replace('\n', "\r\n"), is_good()),
        (good.trim_end().to_owned(), is_good()),
        (format!("# made by hand\n{good}# its end\n"), is_good()),
        (
            format!(
                "{{\"disks\": [{{\"{}}}]}}",
                lines
                    .join(", \"")
                    .replace(": ", "\": ")
                    .replace("/mnt", "\"/mnt\"")
                    .replace("500M", "\"500M\"")
                    .replace("400M", "\"400M\"")
            ),
            is_good(),
        ),
        (
            good.replace("95000", "&fast 95000").replace("85000", "*fast"),
            Read(|disk| disk.write_iops == 95_000),
        ),
        (many(8), Read(|disk| disk.read_iops == 9)),
        (many(65), Refused("at most 64")),
        (disks(&["/mnt/a", "/mnt/a/"]), Refused("used twice")),
        (disks(&["/mnt/a", "/mnt/./b/../a"]), Refused("used twice")),
        (disks(&["[/mnt/a]"]), Refused("`mountpoints`")),
        (without("mountpoint"), Refused("no mountpoint")),
        (without("write_iops"), Refused("the key `write_iops` is missing")),
        (
            without("mountpoint").replacen("  - ", "  - mountpoints: /mnt\n    ", 1),
            Refused("expected a list"),
        ),
        (without("mountpoint").replacen("  - ", "  - mountpoints: [/mnt]\n    ", 1), is_good()),
        (
            good.replace("    write_iops", "    read_iops: 1\n    write_iops"),
            Refused("appears twice"),
        ),
        (good.replace("    read_iops", "\tread_iops"), Refused("indented by a tab")),
        (good.replace("    read_iops", "\u{a0}\u{a0}\u{a0}\u{a0}read_iops"), Refused("U+00A0")),
    ]
}

/// Files of other programs, and keys that are misplaced.
fn foreign_files() -> Vec<(String, Right)> {
    let good = with("read_iops: 95000");
    let lines =
        good.lines().skip(1).map(|line| line.trim_start_matches([' ', '-'])).collect::<Vec<_>>();
    vec![
        (format!("version: 1\n{good}"), Refused("unknown key `version`")),
        (good.replace("- ", "  "), Refused("expected a list")),
        (lines.join("\n"), Refused("it belongs in an entry of `disks`")),
        (good.trim_start_matches("disks:\n").to_owned(), Refused("write `disks:`")),
        (format!("{good}  - <<: *a\n"), Refused("")),
        (
            String::from("SEASTAR_IO=\"--io-properties-file=/etc/io.yaml\"\n"),
            Refused("behind `--io-properties-file`"),
        ),
        (String::from("SEASTAR_IO=\"--max-io-requests=99\"\n"), Refused("`forebay tune DIR`")),
        (format!("i3.big:\n  {}\n", lines[1..].join("\n  ")), Refused("several instance types")),
        (
            format!("L8s:\n  disks:\n  - {}\n", lines[1..].join("\n    ")),
            Refused("several instance types"),
        ),
        (
            format!(
                "apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: |\n    {}\n",
                good.replace('\n', "\n    ")
            ),
            Refused("manifest of Kubernetes"),
        ),
        (good.replace("    read_iops", "      read_iops"), Refused("3:16: not valid YAML")),
        (file(&[]), Refused("")),
    ]
}

#[test]
fn a_file_is_read_as_seastar_does_or_refused_with_what_it_seems_to_be() {
    for (text, right) in files_of_disks().into_iter().chain(foreign_files()) {
        check(&text, &right);
    }
}
