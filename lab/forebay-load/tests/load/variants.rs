//! The ways in which job files in the wild are written: which are read, as what, and what is said
//! of the others.

use std::time::Duration;

use forebay_load::job_file::{JobFile, JobKind};

use crate::parse;

/// The expected outcome of a file.
enum Right {
    /// It is read, and this is true of it.
    Read(fn(&JobFile) -> bool),
    /// It is refused, and this is in the message.
    Refused(&'static str),
}

use Right::{Read, Refused};

fn check(text: &str, right: &Right) {
    match (parse(text), right) {
        (Ok(file), Read(is_right)) => assert!(is_right(&file), "{text}: {file:?}"),
        (Err(error), Refused(words)) => assert!(error.contains(words), "{text}: {error}"),
        (Ok(file), Refused(_)) => panic!("{text} is read: {file:?}"),
        (Err(error), Read(_)) => panic!("{text} is refused: {error}"),
    }
}

/// The contents of a `shard_info` in one line, the following text, and the expected outcome.
const SHARD_INFO: &[(&str, &str, Right)] = &[
    ("parallelism: '4', shares: '100'", "", Read(|file| file.jobs[0].parallelism == 4)),
    ("parallelism: 0x10", "", Read(|file| file.jobs[0].parallelism == 16)),
    ("parallelism: !!int 4", "", Read(|file| file.jobs[0].parallelism == 4)),
    ("parallelism: 4, shares: 12000", "", Refused("expected 1 to 10000")),
    ("parallelism: 4, shares: 0", "", Refused("expected 1 to 10000")),
    ("parallelism: 1_6", "", Refused("write 16")),
    ("parallelism: 4.0", "", Refused("write 4")),
    ("parallelism: 010", "", Refused("found `010`")),
    ("parallelism: 4#c", "", Refused("found `4#c`")),
    ("parallelism: 0", "", Refused("write 1 or more")),
    ("shares: 100", "", Refused("`parallelism` is not given")),
    ("parallelism: 4, rps: 1e3", "", Refused("write 1000")),
    ("parallelism: 4, rps:", "", Refused("there is no value")),
    ("parallelism: 4, rps: 5, think_time: 1ms", "", Refused("remove one of the two")),
    ("parallelism: 4, batch: 2", "", Refused("add `rps`")),
    ("parallelism: 4, limit: 0", "", Refused("0 requests")),
    ("parallelism: 4, iov_count: 4", "", Refused("`vectorized: true`")),
    ("parallelism: 4, think_time: 1.5ms", "", Refused("write 1500us")),
    ("parallelism: 4, think_time: 1000", "", Refused("one of the units")),
    ("parallelism: 4, think_time: 1000\u{b5}s", "", Refused("units ns, us, ms")),
    ("parallelism: 4, think_time: 1000 us", "", Read(|file| file.jobs.len() == 1)),
    ("parallelism: 4, think_after: 1ms", "", Refused("add `think_time`")),
    ("parallelism: 4, start: 1s", "", Read(|file| file.jobs[0].start == Duration::from_secs(1))),
    // sizes
    ("parallelism: 4, reqsize: 4k", "", Read(|file| file.jobs[0].reqsize == 4096)),
    ("parallelism: 4, reqsize: 4K", "", Read(|file| file.jobs[0].reqsize == 4096)),
    ("parallelism: 4, reqsize: 4Ki", "", Read(|file| file.jobs[0].reqsize == 4096)),
    ("parallelism: 4, reqsize: 4 kB", "", Read(|file| file.jobs[0].reqsize == 4096)),
    ("parallelism: 4, reqsize: 512B", "", Read(|file| file.jobs[0].reqsize == 512)),
    ("parallelism: 4, reqsize: 1536", "", Read(|file| file.jobs[0].reqsize == 1536)),
    ("parallelism: 4, reqsize: 0.5MB", "", Refused("write 512kB")),
    // keys of another mapping
    ("parallelism: 4, dsync: true", "", Refused("`dsync`; it belongs under `options`")),
    ("parallelism: 4, sleep_type: steady", "", Refused("it belongs under `options`")),
    ("parallelism: 4, pause_distribution: poisson", "", Refused("it belongs under `options`")),
    ("parallelism: 4, pause_distribtion: poisson", "", Refused("which belongs under `options`?")),
    ("parallelism: 4, data_size: 1GB", "", Refused("next to `shard_info`, not in it")),
    ("parallelism: 4", "reqsize: 4k", Refused("it belongs under `shard_info`")),
    ("parallelism: 4", "options: {shares: 1}", Refused("it belongs under `shard_info`")),
    ("parallelism: 4, reqsze: 4k", "", Refused("did you mean `reqsize`?")),
    // options
    ("parallelism: 4", "options:", Read(|file| !file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: null", Read(|file| !file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: {}", Read(|file| !file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: {dsync: yes}", Read(|file| file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: {dsync: on}", Read(|file| file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: {dsync: True}", Read(|file| file.jobs[0].options.dsync)),
    ("parallelism: 4", "options: {dsync: 1}", Refused("`true` or `false`")),
    ("parallelism: 4", "options: {dsync:}", Refused("there is no value")),
    // sizes of files
    ("parallelism: 4", "data_size: 1TB", Read(|file| file.jobs[0].file_size == 1 << 39)),
    ("parallelism: 4", "data_size: 1.5GB", Refused("write 1536MB")),
    ("parallelism: 4", "files_count: 3", Read(|file| file.jobs[0].files_count == 1)),
];

#[test]
fn a_shard_info_is_read_as_seastar_does_or_refused_with_what_to_write() {
    for (info, line, right) in SHARD_INFO {
        let head = "- name: r\n  type: randread\n  shards: all\n";
        check(&format!("{head}  shard_info: {{{info}}}\n  {line}\n"), right);
    }
}

/// What stands in place of the first three lines of a job.
const HEADS: &[(&str, Right)] = &[
    ("- name: 007\n  type: randread\n  shards: all", Read(|file| file.jobs[0].name == "007")),
    ("- name: 1.50\n  type: randread\n  shards: all", Read(|file| file.jobs[0].name == "1.50")),
    ("- name: yes\n  type: randread\n  shards: all", Read(|file| file.jobs[0].name == "yes")),
    (
        "- name: 2026-08-02\n  type: randread\n  shards: all",
        Read(|file| file.jobs[0].name == "2026-08-02"),
    ),
    ("- name: null\n  type: randread\n  shards: all", Refused("there is no value")),
    ("- name: >-\n    r\n  type: randread\n  shards: all", Read(|file| file.jobs[0].name == "r")),
    ("- Name: r\n  type: randread\n  shards: all", Refused("did you mean `name`?")),
    ("- name: r\n  type: readrandom\n  shards: all", Refused("`randread`")),
    ("- name: r\n  type: fstat\n  shards: all", Refused("`randread`")),
    (
        "- name: r\n  type: seqwrite\n  shards: all",
        Read(|file| file.jobs[0].kind == JobKind::Overwrite),
    ),
    ("- name: r\n  type: randread\n  shards: 0", Refused("a list of shard numbers such as [0, 2]")),
    ("- name: r\n  type: randread\n  shards: 0-1", Refused("such as [0, 2]")),
    ("- name: r\n  type: randread\n  shards: ALL", Refused("is neither `all`")),
    ("- name: r\n  type: randread\n  shards: [0, 0]", Refused("listed twice")),
    ("- name: r\n  type: randread\n  shards: [7]", Refused("the run has shards 0 to 1")),
    (
        "- name: r\n  type: randread\n  shards:\n  - 0\n  - 1",
        Read(|file| file.jobs[0].shards == [0, 1]),
    ),
    ("- name: r\n  type: randread\n  type: append\n  shards: all", Refused("appears twice")),
    ("- name:\tr\n  type: randread\n  shards: all", Read(|file| file.jobs[0].name == "r")),
    ("- name: r\n\ttype: randread\n\tshards: all", Refused("2:1: the line is indented by a tab")),
    ("---\n- name: r\n  type: randread\n  shards: all", Read(|file| file.jobs.len() == 1)),
    (
        "%YAML 1.2\n---\n- name: r\n  type: randread\n  shards: all",
        Read(|file| file.jobs.len() == 1),
    ),
];

#[test]
fn a_head_is_read_as_seastar_does_or_refused_with_what_to_write() {
    for (head, right) in HEADS {
        check(&format!("{head}\n  shard_info: {{parallelism: 4}} # of each\n"), right);
    }
}

#[test]
fn a_file_is_read_as_seastar_does_or_refused_with_what_it_seems_to_be() {
    let good = "- name: r\n  type: randread\n  shards: all\n  shard_info:\n    parallelism: 4\n";
    let is_good = || Read(|file| file.jobs[0].parallelism == 4);
    let second = "- name: s\n  type: randread\n  shards: all\n";
    let json = "[{\"name\": \"r\", \"type\": \"randread\", \"shards\": \"all\",\n\t\"shard_info\": {\"parallelism\": 4}}]";
    let dumped = "- name: r\n  options: null\n  shard_info: {parallelism: 4}\n  shards: all\n  type: randread\n";
    for (text, right) in [
        (good.replace('\n', "\r\n"), is_good()),
        (good.replace('\n', "\r"), is_good()),
        (json.to_owned(), is_good()),
        (dumped.to_owned(), is_good()),
        (
            good.replace("shard_info:", "shard_info: &a") + second + "  shard_info: *a\n",
            Read(|file| file.jobs[1].parallelism == 4),
        ),
        (
            good.replace("shard_info:", "shard_info: &a") + second + "  shard_info: {<<: *a}\n",
            Refused("<<: merge keys are not supported; write the keys out"),
        ),
        (
            second.to_owned() + "  shard_info: {parallelism: 1, class: r}\n" + good,
            Read(|file| file.jobs.len() == 2),
        ),
        (good.to_owned() + good, Refused("two jobs are called `r`")),
        (
            good.to_owned() + second + "  shard_info: {parallelism: 1, class: r, shares: 4}\n",
            Refused("remove `shares` or `class`"),
        ),
        (format!("{good}---\n{good}"), Refused("a second document begins here")),
        (good.replacen("- ", "  ", 1), Refused("expected a list")),
        (format!("jobs:\n{good}"), Refused("expected a list")),
        (second.to_owned(), Refused("`parallelism` is not given")),
        (second.to_owned() + "  shard_info:\n", Refused("there is no value")),
        (String::from("# nothing\n"), Refused("the file is empty")),
        (
            String::from("; reads\n[global]\ndirect=1\n\n[r]\nrw=randread\nbs=4k\n"),
            Refused("a job file of fio; docs/migration.md"),
        ),
        (String::from("[r]\nrw=randread\n"), Refused("a job file of fio")),
        (
            String::from("disks:\n- {mountpoint: /a, read_iops: 1}\n"),
            Refused("these are properties of disks"),
        ),
    ] {
        check(&text, &right);
    }
}
