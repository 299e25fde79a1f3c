//! Job files as people and other programs write them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "also outside of test functions")]

mod errors;
mod results;
mod variants;
mod virtual_time;

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use forebay_config::Source;
use forebay_load::job_file::{
    ClassSpec, FileOptions, Gaps, GroupSpec, Job, JobFile, JobKind, Pace, Rate, Think,
};
use proptest::{prop_assert_eq, proptest};

const MIB: u64 = 1 << 20;

fn parse(text: &str) -> Result<JobFile, String> {
    JobFile::parse(&Source::new("jobs.yaml", text), None, 2).map_err(|error| error.to_string())
}

fn parse_with_groups(text: &str, groups: &str) -> Result<JobFile, String> {
    let (jobs, groups) = (Source::new("jobs.yaml", text), Source::new("groups.yaml", groups));
    JobFile::parse(&jobs, Some(&groups), 2).map_err(|error| error.to_string())
}

/// A job with the required keys and these lines in `shard_info`.
fn job_with(kind: &str, shard_info: &[&str]) -> String {
    let mut text = format!("- name: a\n  type: {kind}\n  shards: all\n  shard_info:\n");
    for line in shard_info {
        text += &format!("    {line}\n");
    }
    text
}

fn only_job(text: &str) -> Job {
    let mut jobs = parse(text).unwrap().jobs;
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

#[test]
fn left_out_keys_have_the_defaults_of_the_original() {
    let text = job_with("randread", &["parallelism: 3"]);
    let file = parse(&text).unwrap();
    let expected = Job {
        name: String::from("a"),
        kind: JobKind::RandRead,
        shards: vec![0, 1],
        file_size: 1 << 30,
        files_count: 1,
        class: 0,
        parallelism: 3,
        start: Duration::ZERO,
        pace: Pace::Closed(Think::default()),
        limit: None,
        reqsize: 4096,
        iov_count: 1,
        execution_time: Duration::from_millis(1),
        fsync_every: None,
        options: FileOptions::default(),
        steps: None,
    };
    let name = String::from("a");
    let class = ClassSpec { name, shares: 10, parent: None, bandwidth_max: None };
    assert_eq!(file, JobFile { jobs: vec![expected], classes: vec![class], groups: vec![] });
}

#[test]
fn every_key_is_read() {
    let text = "
- name: log
  type: append
  shards: [1]
  data_size: 3MB
  files_count: 1
  shard_info:
    parallelism: 4
    rps: 250
    batch: 2
    limit: 1000
    reqsize: 16kB
    shares: 700
    bandwidth: 5MB
    think_time: 0
    think_after: 0
    execution_time: 20us
    vectorized: true
    iov_count: 4
  options:
    dsync: true
    sleep_type: steady
    pause_distribution: poisson
    extent_allocation_size_hint: 32MB
    sloppy_size_hint: 1MB
    fallocate: true
    fsync_every: 8
";
    let file = parse(text).unwrap();
    let rps = NonZeroU32::new(250).unwrap();
    let batch = NonZeroU32::new(2).unwrap();
    let expected = Job {
        name: String::from("log"),
        kind: JobKind::Append,
        shards: vec![1],
        file_size: 3 * MIB,
        files_count: 1,
        class: 0,
        parallelism: 4,
        start: Duration::ZERO,
        pace: Pace::Open(Rate { rps, batch, gaps: Gaps::Poisson, skips_missed: false }),
        limit: NonZeroU64::new(1000),
        reqsize: 16384,
        iov_count: 4,
        execution_time: Duration::from_micros(20),
        fsync_every: NonZeroU64::new(8),
        options: FileOptions {
            dsync: true,
            fallocate: true,
            extent_allocation_size_hint: Some(32 * MIB),
            sloppy_size_hint: Some(MIB),
            ..FileOptions::default()
        },
        steps: None,
    };
    assert_eq!(file.jobs, [expected]);
    assert_eq!(file.classes[0].shares, 700);
    assert_eq!(file.classes[0].bandwidth_max, NonZeroU64::new(5 * MIB));
}

#[test]
fn every_type_is_read() {
    let types = [
        ("seqread", JobKind::SeqRead),
        ("overwrite", JobKind::Overwrite),
        ("seqwrite", JobKind::Overwrite),
        ("randread", JobKind::RandRead),
        ("randwrite", JobKind::RandWrite),
        ("append", JobKind::Append),
        ("fsync", JobKind::Fsync),
        ("cpu", JobKind::Cpu),
    ];
    for (name, kind) in types {
        assert_eq!(only_job(&job_with(name, &["parallelism: 1"])).kind, kind);
    }
    let unlink = "- {name: u, type: unlink, shards: all, data_size: 100MB, files_count: 7,
                     shard_info: {parallelism: 1}}";
    let unlink = only_job(unlink);
    assert_eq!((unlink.kind, unlink.files_count), (JobKind::Unlink, 7));
    // 50 MiB on each of two shards, in seven files.
    assert_eq!(unlink.file_size, 8 * MIB);
}

#[test]
fn discard_jobs_have_steps_and_extents() {
    let text = "- {name: d, type: discard, shards: [0], data_size: 1GB, files_count: 4,
                   shard_info: {parallelism: 1, rps: 16, reqsize: 32MB},
                   options: {extent_size: 1MB, paced: true}}";
    let job = only_job(text);
    assert_eq!((job.kind, job.files_count, job.file_size), (JobKind::Delete, 4, 256 * MIB));
    assert_eq!((job.reqsize, job.fsync_every), (32 << 20, NonZeroU64::new(1)));
    assert_eq!((job.options.extent_size, job.options.paced), (Some(MIB), true));
    let unlink = text.replace("discard", "unlink").replace(", paced: true", "");
    let unlink = only_job(&unlink);
    assert_eq!((unlink.options.extent_size, unlink.fsync_every), (Some(MIB), None));
}

#[test]
fn data_size_is_divided_by_the_shards_of_the_job() {
    let size = |kind: &str, shards: &str, data_size: &str| {
        only_job(&format!(
            "- {{name: a, type: {kind}, shards: {shards}, {data_size} shard_info: {{parallelism: 1}}}}"
        ))
        .file_size
    };
    assert_eq!(size("seqread", "all", "data_size: 1GB,"), 512 * MIB);
    assert_eq!(size("seqread", "[1]", "data_size: 1GB,"), 1024 * MIB);
    assert_eq!(size("seqread", "all", "data_size: 3MB,"), 2 * MIB);
    assert_eq!(size("append", "all", ""), 0);
    assert_eq!(size("fsync", "all", ""), 0);
    assert_eq!(size("cpu", "all", "data_size: 3MB,"), 0);
}

#[test]
fn phases_of_thinking_are_read() {
    let job = only_job(&job_with(
        "seqread",
        &["parallelism: 1", "think_time: 5ms", "think_after: 1s", "shares: 1"],
    ));
    let (time, after) = (Duration::from_millis(5), Duration::from_secs(1));
    assert_eq!(job.pace, Pace::Closed(Think { time, after }));
}

/// The shapes of file that the original and its scripts come with.
#[test]
fn files_of_the_original_run_unchanged() {
    let text = "
# Sequential writers alongside a latency-bound reader.
- name: writers
  shards: all
  type: seqwrite
  shard_info:
    parallelism: 10
    reqsize: 256kB
    shares: 10
    think_time: 0

- name: readers
  shards: [0]
  type: randread
  data_size: 1GB
  extent_allocation_size_hint: 32MB
  shard_info:
    parallelism: 100
    reqsize: 1536
    class: writers
    rps: 75
  options:
    pause_distribution: poisson
    sleep_type: busyloop

- name: hog
  type: cpu
  shards: [0]
  shard_info:
    parallelism: 1
    execution_time: 550us
  options: {pause_distribution: uniform}
";
    let file = parse(text).unwrap();
    let classes: Vec<_> =
        file.jobs.iter().map(|job| file.classes[job.class].name.clone()).collect();
    assert_eq!(classes, ["writers", "writers", "hog"]);
    assert_eq!(file.jobs[1].options.extent_allocation_size_hint, Some(32 * MIB));

    let dumped = "- data_size: 8192MB\n  name: read_rated_2500\n  options: {sleep_type: busyloop}
  shard_info: {parallelism: 5, reqsize: 4kB, rps: 20000, shares: 2500}
  shards: all\n  type: randread\n";
    assert_eq!(only_job(dumped).file_size, 4096 * MIB);
}

#[test]
fn sched_groups_give_classes_and_groups() {
    let jobs = "
- {name: q, type: randread, shards: all, shard_info: {parallelism: 1, class: query}}
- {name: c, type: seqread, shards: all, shard_info: {parallelism: 1, class: compaction, bandwidth: 9MB}}
- {name: own, type: seqread, shards: all, shard_info: {parallelism: 1, shares: 5}}
- {name: like-own, type: seqread, shards: all, shard_info: {parallelism: 1, class: own}}
";
    let groups = "
- {name: compaction, shares: 200, parent: maintenance}
- {name: query, shares: 1000}
- {name: maintenance, shares: 100}
- {name: backup, shares: 100, parent: maintenance}
";
    let file = parse_with_groups(jobs, groups).unwrap();
    let class = |name: &str, shares, parent| ClassSpec {
        name: name.to_owned(),
        shares,
        parent,
        bandwidth_max: None,
    };
    let cap = NonZeroU64::new(9 * MIB);
    let expected = [
        ClassSpec { bandwidth_max: cap, ..class("compaction", 200, Some(0)) },
        class("query", 1000, None),
        class("backup", 100, Some(0)),
        class("own", 5, None),
    ];
    assert_eq!(file.classes, expected);
    assert_eq!(file.groups, [GroupSpec { name: String::from("maintenance"), shares: 100 }]);
    assert_eq!(file.jobs.iter().map(|job| job.class).collect::<Vec<_>>(), [1, 0, 3, 3]);
}

#[test]
fn the_examples_run_on_any_number_of_shards() {
    let mixed = include_str!("../../../../examples/mixed.yaml");
    let datastore = include_str!("../../../../examples/datastore.yaml");
    let writes = include_str!("../../../../examples/datastore-write-load.yaml");
    let compaction = include_str!("../../../../examples/compaction.yaml");
    for (text, jobs, classes) in
        [(mixed, 3, 3), (datastore, 7, 6), (writes, 5, 4), (compaction, 2, 2)]
    {
        for shards in [1, 2, 64] {
            let file = JobFile::parse(&Source::new("example", text), None, shards).unwrap();
            assert_eq!((file.jobs.len(), file.classes.len()), (jobs, classes));
        }
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "(?s)[-a: \n\\[\\]{}#&*0-9kMB\"'|>]{0,200}") {
        // An error is fine, a panic is not.
        parse(&text).ok();
    }

    #[test]
    fn numbers_are_read_as_written(
        parallelism in 1_u32..65_536, rps in 1_u32..1_000_000, batch in 1_u32..65_536,
        limit in 1_u64.., sectors in 1_u32..2048, shares in 1_u32..10_000,
    ) {
        let job = job_with("randwrite", &[
            &format!("parallelism: {parallelism}"),
            &format!("rps: {rps}"),
            &format!("batch: {batch}"),
            &format!("limit: {limit}"),
            &format!("reqsize: {}", sectors * 512),
            &format!("shares: {shares}"),
        ]);
        let file = parse(&job).unwrap();
        let job = &file.jobs[0];
        let (rps, batch) = (NonZeroU32::new(rps).unwrap(), NonZeroU32::new(batch).unwrap());
        prop_assert_eq!(job.parallelism, parallelism);
        prop_assert_eq!(job.pace, Pace::Open(Rate { rps, batch, gaps: Gaps::Uniform, skips_missed: false }));
        prop_assert_eq!(job.limit, NonZeroU64::new(limit));
        prop_assert_eq!(job.reqsize, sectors * 512);
        prop_assert_eq!(file.classes[0].shares, shares);
    }

    #[test]
    fn segments_are_equal_and_aligned(sectors in 1_u32..512, count in 2_u32..64) {
        let text = job_with("randwrite", &[
            "parallelism: 1",
            &format!("reqsize: {}", sectors * 512),
            "vectorized: true",
            &format!("iov_count: {count}"),
        ]);
        let unit = if sectors < 8 { 512 } else { 4096 };
        let fits = (sectors * 512).is_multiple_of(count)
            && (sectors * 512 / count).is_multiple_of(unit);
        let split = parse(&text).ok().map(|file| file.jobs[0].iov_count);
        prop_assert_eq!(split, fits.then_some(count));
    }
}
