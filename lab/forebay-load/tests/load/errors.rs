//! Messages about invalid job files.

use crate::{job_with, parse, parse_with_groups};

#[test]
fn errors_in_an_entry() {
    let cases = [
        (
            "- name: a\n  type: randraed\n  shards: all\n",
            "jobs.yaml:2:9: [0].type: unknown value `randraed`; did you mean `randread`?",
        ),
        (
            "- name: a\n  type: append\n",
            "jobs.yaml:1:3: [0].shards: the key `shards` is missing; add it",
        ),
        (
            "- type: append\n  shards: all\n",
            "jobs.yaml:1:3: [0].name: the key `name` is missing; add it",
        ),
        (
            "- name: a\n  shards: all\n",
            "jobs.yaml:1:3: [0].type: the key `type` is missing; add it",
        ),
        (
            "- name: a\n  type: append\n  shards: most\n",
            "jobs.yaml:3:11: [0].shards: `most` is neither `all` nor a list of shard numbers such \
             as [0, 2]",
        ),
        (
            "- name: a\n  type: append\n  shards: all\n",
            "jobs.yaml:1:3: [0]: `parallelism` is not given, and without fibers the job would do \
             nothing; add `parallelism: 1` or more",
        ),
        ("[]", "jobs.yaml: there is no job; add one"),
        (
            "- name: a/b\n  type: append\n  shards: all\n",
            "jobs.yaml:1:9: [0].name: the name becomes part of file names; write it without `/` \
             and control characters",
        ),
        (
            "- name: a\n  type: append\n  shards: [0, 2]\n",
            "jobs.yaml:3:15: [0].shards[1]: shard 2 does not exist, the run has shards 0 to 1; \
             remove it, or run with more shards",
        ),
        (
            "- name: a\n  type: append\n  shards: [0, 0]\n",
            "jobs.yaml:3:11: [0].shards: shard 0 is listed twice; remove one",
        ),
        (
            "- name: a\n  type: append\n  shards: []\n",
            "jobs.yaml:3:11: [0].shards: no shard would run the job; list one, or write `all`",
        ),
        (
            "- name: a\n  type: unlink\n  shards: all\n",
            "jobs.yaml:1:3: [0]: an unlink job needs files to remove; add `files_count`, their \
             number on each shard",
        ),
        (
            "- name: a\n  type: randread\n  shards: all\n  options: {fsync_every: 3}\n  \
             shard_info: {parallelism: 1}\n",
            "jobs.yaml:4:26: [0].options.fsync_every: the job does not write; remove \
             `fsync_every`, or use overwrite, randwrite or append",
        ),
        (
            "- name: a\n  type: randread\n  shards: all\n  data_size: 1MB\n  \
             shard_info: {parallelism: 1, reqsize: 2MB}\n",
            "jobs.yaml:5:41: [0].shard_info.reqsize: requests of 2097152 bytes do not fit into \
             the file of 1048576 bytes on each shard; lower `reqsize` or raise `data_size`",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err(), message, "{text}");
    }
}

/// Kinds of jobs, lines of their `shard_info`, and the expected messages.
const SHARD_INFO: &[(&str, &[&str], &str)] = &[
    (
        "randread",
        &["paralelism: 1"],
        "5:5: [0].shard_info.paralelism: unknown key `paralelism`; did you mean `parallelism`?",
    ),
    (
        "randread",
        &["shares: 1"],
        "5:5: [0].shard_info: `parallelism` is not given, and without fibers the job would \
             do nothing; add `parallelism: 1` or more",
    ),
    (
        "randread",
        &["parallelism: 0"],
        "5:18: [0].shard_info.parallelism: without fibers the job would do nothing; write 1 \
             or more",
    ),
    (
        "randread",
        &["parallelism: 100000"],
        "5:18: [0].shard_info.parallelism: 100000 fibers; expected 1 to 65536",
    ),
    (
        "randread",
        &["parallelism: 1", "reqsize: 100"],
        "6:14: [0].shard_info.reqsize: requests of 100 bytes; expected a multiple of 512 up \
             to 1073741824",
    ),
    (
        "randread",
        &["parallelism: 1", "reqsize: 1000"],
        "6:14: [0].shard_info.reqsize: requests of 1000 bytes; expected a multiple of 512 up \
             to 1073741824",
    ),
    (
        "randread",
        &["parallelism: 1", "shares: 0"],
        "6:13: [0].shard_info.shares: 0 shares; expected 1 to 10000",
    ),
    (
        "randread",
        &["parallelism: 1", "shares: 1", "class: b"],
        "7:12: [0].shard_info.class: shares are the class's own; remove `shares` or `class`",
    ),
    (
        "randread",
        &["parallelism: 1", "class: b"],
        "6:12: [0].shard_info.class: no job or sched group is called `b`; none are known here",
    ),
    (
        "randread",
        &["parallelism: 1", "class: a"],
        "6:12: [0].shard_info.class: the job's `class` is the job itself; remove `class` and give \
         `shares`",
    ),
    (
        "randread",
        &["parallelism: 1", "rps: 10", "think_time: 1ms"],
        "7:17: [0].shard_info.think_time: `rps` says when requests are sent, so there is no \
             room for pauses; remove one of the two",
    ),
    (
        "randread",
        &["parallelism: 1", "think_after: 1ms"],
        "6:18: [0].shard_info.think_after: there is no pause; add `think_time`, or remove \
             `think_after`",
    ),
    (
        "randread",
        &["parallelism: 1", "batch: 4"],
        "6:12: [0].shard_info.batch: batches belong to an open loop; add `rps` or remove \
             `batch`",
    ),
    (
        "randread",
        &["parallelism: 1", "limit: 0"],
        "6:12: [0].shard_info.limit: 0 requests; expected 1 or more, or remove the key",
    ),
    (
        "randread",
        &["parallelism: 1", "iov_count: 2"],
        "6:16: [0].shard_info.iov_count: `iov_count` splits buffers of vectored requests only; \
         add `vectorized: true` or remove `iov_count`",
    ),
    (
        "randread",
        &["parallelism: 1", "reqsize: 12kB", "vectorized: true", "iov_count: 2"],
        "8:16: [0].shard_info.iov_count: 12288 bytes do not split into 2 equal segments of a \
             multiple of 4096 bytes; change `iov_count` or `reqsize`",
    ),
    (
        "fsync",
        &["parallelism: 2"],
        "5:18: [0].shard_info.parallelism: a file has one flush in flight; write 1",
    ),
    (
        "fsync",
        &["parallelism: 1", "rps: 5", "batch: 2"],
        "7:12: [0].shard_info.batch: 2 requests; expected 1 to 1",
    ),
    (
        "cpu",
        &["parallelism: 1", "execution_time: 0"],
        "6:21: [0].shard_info.execution_time: a request must take some time; write 1us or more",
    ),
];

#[test]
fn errors_in_shard_info() {
    for (kind, shard_info, message) in SHARD_INFO {
        let text = job_with(kind, shard_info);
        assert_eq!(parse(&text).unwrap_err(), format!("jobs.yaml:{message}"), "{text}");
    }
}

#[test]
fn errors_in_names_that_do_not_fit_together() {
    let job = |name: &str, info: &str| {
        format!(
            "- {{name: {name}, type: seqread, shards: all, shard_info: {{parallelism: 1{info}}}}}\n"
        )
    };
    let two = |first: &str, second: &str| job("a", first) + &job("b", second);
    let cases = [
        (job("a", "") + &job("a", ""), "2:10: [1].name: two jobs are called `a`; rename one"),
        (
            two("", ", class: a") + &job("c", ", class: b"),
            "3:77: [2].shard_info.class: job `b` runs in class `a`; write `class: a`",
        ),
        (
            two("", ", class: aa"),
            "2:77: [1].shard_info.class: no job or sched group is called `aa`; did you mean `a`?",
        ),
        (
            two(", bandwidth: 1MB", ", class: a, bandwidth: 2MB"),
            "2:91: [1].shard_info.bandwidth: another job caps class `a` at 1048576 bytes/s; give \
             one cap per class",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(parse(&text).unwrap_err(), format!("jobs.yaml:{message}"), "{text}");
    }

    let groups = "- {name: x, shares: 1}\n- {name: y, shares: 1, parent: x}\n";
    let cases = [
        (
            job("a", ", class: x"),
            "1:77: [0].shard_info.class: `x` is a group of classes; name one of its classes",
        ),
        (
            job("y", ""),
            "1:10: [0].name: the sched-groups file has an entry of this name; rename the job, or \
             run it there with `class: y`",
        ),
    ];
    for (text, message) in cases {
        let error = parse_with_groups(&text, groups).unwrap_err();
        assert_eq!(error, format!("jobs.yaml:{message}"), "{text}");
    }
    assert!(parse_with_groups(&job("y", ", class: y"), groups).is_ok());
}

#[test]
fn errors_in_sched_groups() {
    let jobs = job_with("randread", &["parallelism: 1"]);
    let cases = [
        ("- {name: x}\n", "1:3: [0].shares: the key `shares` is missing; add it"),
        ("- {name: x, shares: 10001}\n", "1:21: [0].shares: 10001 shares; expected 1 to 10000"),
        (
            "- {name: x, shares: 1}\n- {name: x, shares: 1}\n",
            "2:10: [1].name: two entries are called `x`; rename one",
        ),
        (
            "- {name: query, shares: 1, parent: all}\n",
            "1:36: [0].parent: no entry is called `all`; none are known here",
        ),
        (
            "- {name: x, shares: 1}\n- {name: y, shares: 1, parent: x}\n\
             - {name: z, shares: 1, parent: y}\n",
            "2:32: [1].parent: a parent of classes cannot have a parent; groups nest one level",
        ),
        ("- {name: '', shares: 1}\n", "1:10: [0].name: the name is empty; write one"),
    ];
    for (groups, message) in cases {
        let error = parse_with_groups(&jobs, groups).unwrap_err();
        assert_eq!(error, format!("groups.yaml:{message}"), "{groups}");
    }
}

#[test]
fn errors_in_jobs_that_delete() {
    let job = |kind: &str, files: &str, info: &str, options: &str| {
        format!(
            "- {{name: a, type: {kind}, shards: all, data_size: 1GB, {files}\n   \
             shard_info: {{parallelism: 1, {info}}},\n   options: {{{options}}}}}\n"
        )
    };
    let (files, steps) = ("files_count: 2,", "reqsize: 32MB");
    let cases = [
        (job("discard", "", steps, ""), "a discard job needs files to remove; add `files_count`"),
        (job("discard", files, "", ""), "needs the size of its steps; add `reqsize`"),
        (job("discard", files, "reqsize: 512", ""), "a multiple of 4096 bytes such as 32MB"),
        (job("discard", files, steps, "extent_size: 5000"), "extents of 5000 bytes; expected"),
        (job("unlink", files, "", "extent_size: 4kB"), "extents of 4096 bytes; expected"),
        (
            job("discard", "files_count: 1,", steps, "extent_size: 8kB").replace("1GB", "2GB"),
            "131072 extents in a file; at most 65536",
        ),
        (
            job("randread", "", "", "extent_size: 1MB"),
            "`extent_size` is for jobs that delete \
                                                       files; remove",
        ),
        (job("unlink", files, "", "paced: true"), "only steps are paced; remove `paced`"),
        (job("discard", files, steps, "fsync_every: 2"), "already flushes after each step"),
    ];
    for (text, expected) in cases {
        let message = parse(&text).map(drop).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}
