//! From what was recorded on each shard to results.

use super::job_load::job_load;
use super::model::{
    ClassResult, FlushResult, IntervalResult, LatencyParts, LatencyResult, ShardResult, rounded,
};
use crate::job_file::{Job, JobFile};
use crate::recorder::buckets::bounds;
use crate::recorder::{Interval, Latencies, Recorder};

/// The quantities recorded on one shard.
#[derive(Clone, Debug)]
pub struct ShardRecords {
    /// The number of the shard.
    pub shard: u32,
    /// The index of each of its jobs in [`JobFile::jobs`], and what was recorded of it.
    pub jobs: Vec<(usize, Recorder)>,
}

/// What each job got over all shards, in the order of the job file; jobs without records are
/// left out.
pub fn over_all_shards(file: &JobFile, shards: &[ShardRecords]) -> Vec<ClassResult> {
    let all = || shards.iter().flat_map(|shard| &shard.jobs);
    let merged = |index: usize| {
        let mut records = all().filter(|(job, _)| *job == index).map(|(_, recorder)| recorder);
        let mut merged = records.next()?.clone();
        records.for_each(|recorder| merged.merge(recorder));
        Some(merged)
    };
    let jobs = file.jobs.iter().enumerate();
    let result = |(index, job)| {
        let merged = merged(index)?;
        let intervals = merged.intervals.parts.iter().map(interval_result).collect();
        Some(ClassResult { intervals, load: job_load(job), ..class_result(file, job, &merged) })
    };
    jobs.filter_map(result).collect()
}

/// What each job got on each shard, in the order given.
pub fn by_shard(file: &JobFile, shards: &[ShardRecords]) -> Vec<ShardResult> {
    let result = |(index, recorder): &(usize, Recorder)| {
        Some(class_result(file, file.jobs.get(*index)?, recorder))
    };
    let of_shard = |records: &ShardRecords| ShardResult {
        shard: records.shard,
        classes: records.jobs.iter().filter_map(result).collect(),
    };
    shards.iter().map(of_shard).collect()
}

fn class_result(file: &JobFile, job: &Job, recorder: &Recorder) -> ClassResult {
    let class = file.classes.get(job.class);
    let seconds = recorder.measured.seconds();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    ClassResult {
        name: job.name.clone(),
        class: class.map(|class| class.name.clone()).unwrap_or_default(),
        shares: class.map_or(0, |class| class.shares),
        requests: recorder.requests,
        errors: recorder.errors,
        unfinished: recorder.unfinished,
        iops: rounded(per_second(recorder.requests), 1),
        bandwidth_bytes_per_second: per_second(recorder.bytes).round() as u64,
        latency_us: latency_result(&recorder.latency),
        service_us: latency_result(&recorder.service),
        queue_us: latency_result(&recorder.queue),
        disk_us: latency_result(&recorder.disk),
        flushes: (recorder.flush.count() > 0).then(|| FlushResult {
            requests: recorder.flushes,
            iops: rounded(per_second(recorder.flushes), 1),
            latency_us: latency_result(&recorder.flush),
        }),
        p99_parts_us: p99_parts(recorder),
        load: String::new(),
        intervals: Vec::new(),
    }
}

/// The parts of the 99th percentile, in the proportions of the requests around it, so that they add
/// up to it.
fn p99_parts(recorder: &Recorder) -> Option<LatencyParts> {
    let parts = recorder.breakdown.around(0.99);
    let sum = (parts.backlog_ns + parts.queue_ns + parts.disk_ns) as f64;
    let p99_us = recorder.latency.quantile_ns(0.99) as f64 / 1e3;
    let part = |ns: u64| rounded(ns as f64 / sum * p99_us, 2);
    (sum > 0.0).then(|| LatencyParts {
        backlog: part(parts.backlog_ns),
        queue: part(parts.queue_ns),
        disk: part(parts.disk_ns),
    })
}

fn interval_result(interval: &Interval) -> IntervalResult {
    let text = |counts: &[u32]| {
        let counts = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let counts = counts.map(|(bucket, count)| format!("{}:{count}", bounds(bucket).0));
        counts.collect::<Vec<_>>().join(" ")
    };
    IntervalResult {
        requests: interval.requests,
        bytes: interval.bytes,
        latency_ns: text(&interval.latencies),
        flush_latency_ns: text(&interval.flush_latencies),
    }
}

fn latency_result(latencies: &Latencies) -> LatencyResult {
    let us = |ns: f64| rounded(ns / 1e3, 2);
    let quantile = |quantile| us(latencies.quantile_ns(quantile) as f64);
    LatencyResult {
        mean: us(latencies.mean_ns()),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: us(latencies.max_ns() as f64),
    }
}
