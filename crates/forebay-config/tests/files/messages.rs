//! What people read when something is wrong with their file.

use std::collections::BTreeMap;

use forebay_config::{ByteSize, Located, Quantity, Source, Span, parse};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Job {
    name: Located<String>,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    shards: Vec<u16>,
    info: Option<Located<Info>>,
    open: Option<Open>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Open {
    dsync: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    SeqRead,
    RandRead,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Info {
    parallelism: u32,
    reqsize: Option<ByteSize>,
    think_time: Option<Span>,
    rate: Option<Quantity>,
    skew: Option<f64>,
}

/// Asserts the error of a job list whose second job has these lines after its name.
#[track_caller]
fn complains(lines: &[&str], message: &str) {
    let first = "- name: a\n  type: seqread\n";
    let text = format!("{first}- name: b\n{}", lines.concat());
    let error = parse::<Vec<Job>>("jobs.yaml", &text).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(error, Err(message.to_owned()));
}

#[test]
fn unknown_keys_and_values_name_the_nearest() {
    complains(
        &["  type: seqread\n", "  info: {paralelism: 4}\n"],
        "jobs.yaml:5:10: [1].info.paralelism: unknown key `paralelism`; did you mean \
         `parallelism`?",
    );
    complains(
        &["  type: seqread\n", "  colour: red\n"],
        "jobs.yaml:5:3: [1].colour: unknown key `colour`; known are `name`, `type`, `shards`, \
         `info`, `open`",
    );
    complains(
        &["  type: rnadread\n"],
        "jobs.yaml:4:9: [1].type: unknown value `rnadread`; did you mean `randread`?",
    );
    complains(
        &["  type: cpu\n"],
        "jobs.yaml:4:9: [1].type: unknown value `cpu`; known are `seqread`, `randread`",
    );
}

#[test]
fn a_key_of_another_mapping_is_sent_there() {
    // from a mapping to one alongside it, to the one around it, and to one in it
    complains(
        &["  type: seqread\n", "  info: {parallelism: 4, dsync: true}\n"],
        "jobs.yaml:5:26: [1].info.dsync: unknown key `dsync`; it belongs under `open`",
    );
    complains(
        &["  type: seqread\n", "  info: {shards: [1]}\n"],
        "jobs.yaml:5:10: [1].info.shards: unknown key `shards`; it belongs next to `info`, not in \
         it",
    );
    complains(
        &["  reqsize: 4k\n"],
        "jobs.yaml:4:3: [1].reqsize: unknown key `reqsize`; it belongs under `info`",
    );
    // misspelt too, if nothing here is as near
    complains(
        &["  type: seqread\n", "  info: {dsinc: true}\n"],
        "jobs.yaml:5:10: [1].info.dsinc: unknown key `dsinc`; did you mean `dsync`, which belongs \
         under `open`?",
    );
    let disk = "mountpoint: /a\nread_iops: 5\n";
    let said = parse::<Listed>("a.yaml", disk).unwrap_err().to_string();
    assert_eq!(
        said,
        "a.yaml:1:1: mountpoint: unknown key `mountpoint`; it belongs in an entry of `disks`"
    );
    let said = parse::<Listed>("a.yaml", "disks: [{mountpoint: /a, disks: 1}]\n").unwrap_err();
    assert!(said.to_string().ends_with("it belongs next to `disks`, not in it"), "{said}");
    let said = parse::<Vec<Job>>("a.yaml", "name: a\ntype: seqread\n").unwrap_err().to_string();
    assert!(said.contains("expected a list"), "{said}");
}

/// A file of disks that are mappings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Listed {
    disks: Located<Vec<Located<Disk>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Disk {
    mountpoint: Option<Located<String>>,
}

#[test]
fn a_tab_is_blamed_on_its_line() {
    for text in ["- name: a\n\ttype: seqread\n", "- name: a\n  type: seqread\n \tinfo: 4\n"] {
        let said = parse::<Vec<Job>>("a.yaml", text).unwrap_err();
        let line = text.lines().position(|line| line.contains('\t')).unwrap() + 1;
        assert_eq!(said.line, line as u64, "{said}");
        assert!(said.message.contains("indented by a tab"), "{said}");
    }
}

#[test]
fn a_blank_that_is_no_space_is_named() {
    let text = "- name: a\n\u{a0}\u{a0}type: seqread\n  info: 4\n";
    let said = parse::<Vec<Job>>("a.yaml", text).unwrap_err();
    assert_eq!((said.line, said.column), (2, 1), "{said}");
    assert!(said.message.contains("(U+00A0)"), "{said}");
}

#[test]
fn numbers_in_another_form_are_refused_with_the_right_one() {
    for (wrong, right) in [
        ("parallelism: 1_000", "found `1_000`; write 1000,"),
        ("rate: 150_000", "found `150_000`; write 150000,"),
        ("rate: 1_000.5", "found `1_000.5`; write 1000.5,"),
        ("parallelism: 1e3", "; write 1000"),
        ("parallelism: 4.0", "; write 4"),
        ("think_time: 1.5ms", "; write 1500us"),
        ("think_time: 0.5s", "; write 500ms"),
        ("reqsize: 0.5MB", "; write 512kB"),
    ] {
        let text = format!("- name: b_1\n  type: seqread\n  info: {{{wrong}}}\n");
        let said = parse::<Vec<Job>>("a.yaml", &text).unwrap_err().to_string();
        assert!(said.contains(right), "{wrong}: {said}");
    }
    for wrong in ["parallelism: 4.5", "parallelism: 010", "parallelism: -1e3"] {
        let text = format!("- name: a\n  type: seqread\n  info: {{{wrong}}}\n");
        let said = parse::<Vec<Job>>("a.yaml", &text).unwrap_err().to_string();
        assert!(!said.contains("write"), "{wrong}: {said}");
    }
}

#[test]
fn only_a_key_that_is_optional_may_have_no_value() {
    let text = "- name: a\n  type: seqread\n  open:\n";
    assert!(parse::<Vec<Job>>("a.yaml", text).is_err());
    let source = Source::new("a.yaml", text).with_optional(&["open"]);
    let jobs: Vec<Job> = source.parse().unwrap();
    assert!(jobs[0].open.is_none());
    let other = Source::new("a.yaml", "- name: a\n  type:\n").with_optional(&["open"]);
    assert!(other.parse::<Vec<Job>>().is_err());
}

#[test]
fn missing_and_repeated_keys() {
    complains(&[], "jobs.yaml:3:3: [1].type: the key `type` is missing; add it");
    complains(
        &["  type: seqread\n", "  info: {}\n"],
        "jobs.yaml:5:3: [1].info.parallelism: the key `parallelism` is missing; add it",
    );
    // the last key of the mapping is itself a mapping
    complains(
        &["  info:\n", "    parallelism: 4\n", "    rate: 1k\n"],
        "jobs.yaml:3:3: [1].type: the key `type` is missing; add it",
    );
    complains(
        &["  info:\n"],
        "jobs.yaml:4:3: [1].info: there is no value (`~` and `null` mean none); write one, \
         or remove the key",
    );
    complains(
        &["  info: null\n"],
        "jobs.yaml:4:3: [1].info: there is no value (`~` and `null` mean none); write one, \
         or remove the key",
    );
    complains(
        &["  name: c\n"],
        "jobs.yaml:4:3: [1].name: the key appears twice in this mapping; remove one of them",
    );
}

#[test]
fn wrong_types_and_ranges() {
    complains(
        &["  info: 4\n"],
        "jobs.yaml:4:9: [1].info: found `4`; expected a mapping (`KEY: VALUE` lines)",
    );
    complains(
        &["  shards: 0\n"],
        "jobs.yaml:4:11: [1].shards: found `0`; expected a list (`- ` before each item, or \
         `[a, b]`)",
    );
    complains(
        &["  shards: [0, 65536]\n"],
        "jobs.yaml:4:15: [1].shards[1]: found `65536`; expected a whole number from 0 to 65535",
    );
    complains(
        &["  info: {parallelism: -1}\n"],
        "jobs.yaml:4:23: [1].info.parallelism: found `-1`; expected a whole number from 0 to \
         4294967295",
    );
    complains(
        &["  info: {parallelism: [4]}\n"],
        "jobs.yaml:4:23: [1].info.parallelism: found a list; expected a single value",
    );
    complains(
        &["  info: {skew: much}\n"],
        "jobs.yaml:4:16: [1].info.skew: found `much`; expected a number, such as 0.5",
    );
}

#[test]
fn the_range_of_a_type_is_not_given_as_that_of_a_key() {
    for (number, expected) in
        [("-1", "a whole number, 0 or more"), ("18446744073709551616", "a smaller number")]
    {
        let error = parse::<BTreeMap<String, u64>>("f", &format!("rps: {number}\n")).unwrap_err();
        assert_eq!(error.to_string(), format!("f:1:6: rps: found `{number}`; expected {expected}"));
    }
}

#[test]
fn wrong_units() {
    complains(
        &["  info: {reqsize: 4 pages}\n"],
        "jobs.yaml:4:19: [1].info.reqsize: found `4 pages`; expected a whole number of bytes, \
         alone or with k, M, G or T (powers of 1024; also kB, KiB and the like), such as 4096 or \
         4kB",
    );
    complains(
        &["  info: {reqsize: true}\n"],
        "jobs.yaml:4:19: [1].info.reqsize: found `true`; expected a whole number of bytes, \
         alone or with k, M, G or T (powers of 1024; also kB, KiB and the like), such as 4096 or \
         4kB",
    );
    complains(
        &["  info: {reqsize: {a: 1}}\n"],
        "jobs.yaml:4:19: [1].info.reqsize: found a mapping; expected a whole number of bytes, \
         alone or with k, M, G or T (powers of 1024; also kB, KiB and the like), such as 4096 or \
         4kB",
    );
    complains(
        &["  info:\n", "    rate: [1]\n"],
        "jobs.yaml:5:11: [1].info.rate: found a list; expected a number, alone or with k, M, G or \
         T (powers of 1024), such as 150000 or 1.5G",
    );
    complains(
        &["  info:\n", "    rate:\n", "      a: 1\n"],
        "jobs.yaml:6:7: [1].info.rate: found a mapping; expected a number, alone or with k, M, G \
         or T (powers of 1024), such as 150000 or 1.5G",
    );
    complains(
        &["  info: {reqsize: 17179869184G}\n"],
        "jobs.yaml:4:19: [1].info.reqsize: found `17179869184G`; expected at most \
         18446744073709551615 bytes",
    );
    complains(
        &["  info: {think_time: 500}\n"],
        "jobs.yaml:4:22: [1].info.think_time: found `500`; expected a whole number with one of \
         the units ns, us, ms, s, m, h, such as 500us",
    );
    complains(
        &["  info: {rate: .inf}\n"],
        "jobs.yaml:4:16: [1].info.rate: found `.inf`; expected a finite number",
    );
    complains(
        &["  info: {rate: 5%}\n"],
        "jobs.yaml:4:16: [1].info.rate: found `5%`; expected a number, alone or with k, M, G or T \
         (powers of 1024), such as 150000 or 1.5G",
    );
}

#[test]
fn an_alias_is_answered_for_where_its_value_stands() {
    complains(
        &["  info: &slow {parallelism: x}\n", "- name: c\n", "  info: *slow\n"],
        "jobs.yaml:4:29: [1].info.parallelism: found `x`; expected a whole number from 0 to \
         4294967295",
    );
}

#[test]
fn an_alias_of_a_value_of_another_kind_is_answered_for_where_it_stands() {
    complains(
        &["  type: &kind seqread\n", "  shards: *kind\n"],
        "jobs.yaml:5:11: [1].shards: found `seqread`; expected a list (`- ` before each item, or \
         `[a, b]`)",
    );
    complains(
        &["  type: &kind seqread\n", "  info: {parallelism: *kind}\n"],
        "jobs.yaml:5:23: [1].info.parallelism: found `seqread`; expected a whole number from 0 to \
         4294967295",
    );
    complains(
        &["  type: &kind seqread\n", "  info: {think_time: *kind}\n"],
        "jobs.yaml:5:22: [1].info.think_time: found `seqread`; expected a whole number with one of \
         the units ns, us, ms, s, m, h, such as 500us",
    );
    complains(
        &["  shards: [&shard 4]\n", "  type: *shard\n"],
        "jobs.yaml:5:9: [1].type: unknown value `4`; known are `seqread`, `randread`",
    );
}

#[test]
fn checks_made_after_parsing_name_the_place() -> Result<(), forebay_config::ConfigError> {
    let text =
        "- name: a\n  type: seqread\n- name: b\n  type: seqread\n  info:\n    parallelism: 4\n";
    let source = Source::new("jobs.yaml", text);
    let jobs: Vec<Located<Job>> = source.parse()?;
    let job = &jobs[1];
    let info = job.value.info.as_ref().map(|info| info.at).unwrap_or_default();
    for (at, message) in [
        (job.at, "jobs.yaml:3:3: [1]: no"),
        (job.value.name.at, "jobs.yaml:3:9: [1].name: no"),
        (info, "jobs.yaml:6:5: [1].info: no"),
        (Default::default(), "jobs.yaml: no"),
    ] {
        assert_eq!(source.error(at, "no").to_string(), message);
    }
    Ok(())
}

/// A file of disks, as far as this test needs one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only parsed")]
struct Disks {
    disks: Vec<String>,
}

#[test]
fn a_file_of_another_kind_is_called_by_its_kind() {
    let job = "# reads\n- name: a\n  type: randread\n  shard_info: {parallelism: 1}\n";
    let said = parse::<Disks>("a.yaml", job).unwrap_err().to_string();
    assert_eq!(said, "a.yaml:2:1: this is a job file, which `bench` and `sim run` take");
    let said = parse::<Disks>("a.yaml", "kind: ideal\ncapacity: 1GB\n").unwrap_err().to_string();
    assert!(said.starts_with("a.yaml:1:1: kind: this is a disk file, which --disk"), "{said}");
    let said = parse::<Vec<Job>>("a.yaml", "disks:\n  - read_iops: 1\n").unwrap_err().to_string();
    assert!(said.starts_with("a.yaml:1:1: these are properties of disks"), "{said}");
    for (text, kind) in [
        ("apiVersion: v1\nkind: ConfigMap\ndata:\n  io.yaml: |\n    disks: []\n", "Kubernetes"),
        ("m5.big:\n  read_iops: 9\nm5.small:\n  read_iops: 3\n", "instance types"),
        ("L8s:\n  disks:\n  - read_iops: 9\n", "instance types"),
        ("- mountpoint: /a\n  read_iops: 9\n", "a list of disks; write `disks:`"),
        ("{\"fio version\": \"fio-3.33\", \"jobs\": []}\n", "results of fio"),
        ("#cloud-config\nwrite_files:\n- path: /a\n", "cloud-init"),
        ("cluster_name: a\nlisten_address: b\n", "another program"),
        ("; reads\n[global]\nioengine=libaio\n\n[r]\nrw=randread\nbs=4k\n", "a job file of fio"),
        ("[r]\nsize=1g\ngroup_reporting\n", "a job file of fio"),
        ("[Unit]\nDescription=a\n", "INI or TOML"),
        ("SEASTAR_IO=\"--io-properties-file=/etc/a.yaml\"\n", "--io-properties-file"),
        ("# set by a tool\nSEASTAR_IO=\"--max-io-requests=9\"\nB=1\n", "forebay tune"),
        ("export A=b\nC=d\n", "variables for a shell"),
        ("<!DOCTYPE html>\n<html>: a\n", "HTML"),
    ] {
        let said = parse::<Disks>("a.yaml", text).unwrap_err().to_string();
        assert!(said.contains(kind), "{text}: {said}");
    }
    // a mistake in the right file is none
    let said = parse::<Disks>("a.yaml", "disks: [a]\nkinds: 1\n").unwrap_err().to_string();
    assert!(said.starts_with("a.yaml:2:1: kinds: unknown key"), "{said}");
    let said = parse::<Vec<Job>>("a.yaml", "- name: a\n  type: no\n").unwrap_err().to_string();
    assert!(!said.contains("this is"), "{said}");
}

#[test]
fn a_binary_file_is_called_one() {
    let file = std::env::temp_dir().join(format!("forebay-binary-{}", std::process::id()));
    for bytes in [vec![0x7f, b'E', b'L', b'F', 0, 1], vec![0; 2 << 20]] {
        std::fs::write(&file, bytes).unwrap();
        let said = forebay_config::read(&file).unwrap_err().to_string();
        assert!(said.contains("a binary file"), "{said}");
    }
    std::fs::remove_file(&file).unwrap();
}
