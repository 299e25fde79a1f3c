//! What identifies the load of a job, in the words of the job file: by it results are told apart
//! that are of two loads.

use std::num::NonZeroU64;

use crate::job_file::{FileOptions, Gaps, Job, JobKind, Pace};

/// Between two parts.
const BETWEEN: &str = ", ";

/// What `job` asks for, without its name and class: `randread, shards 0 1, rps 90, ...`. What is not
/// given and not needed is left out.
pub(super) fn job_load(job: &Job) -> String {
    let shards: Vec<String> = job.shards.iter().map(ToString::to_string).collect();
    let mut parts = vec![
        format!("{:?}", job.kind).to_lowercase(),
        format!("shards {}", shards.join(" ")),
        format!("parallelism {}", job.parallelism),
    ];
    if job.kind == JobKind::Cpu {
        parts.push(format!("execution_time {:?}", job.execution_time));
    } else {
        parts.push(format!("reqsize {}", job.reqsize));
        parts.push(format!("file size {}", job.file_size));
    }
    match job.pace {
        Pace::Open(rate) => {
            parts.push(format!("rps {}", rate.rps));
            parts.extend((rate.batch.get() > 1).then(|| format!("batch {}", rate.batch)));
            parts.extend((rate.gaps == Gaps::Poisson).then(|| String::from("poisson")));
        }
        Pace::Closed(think) if !think.time.is_zero() => {
            parts.push(format!("think_time {:?} after {:?}", think.time, think.after));
        }
        Pace::Closed(_) => {}
    }
    parts.extend((!job.start.is_zero()).then(|| format!("start {:?}", job.start)));
    let numbers = [
        ("files_count", Some(job.files_count).filter(|&count| count > 1)),
        ("iov_count", Some(job.iov_count.into()).filter(|&count| count > 1)),
        ("limit", job.limit.map(NonZeroU64::get)),
        ("fsync_every", job.fsync_every.map(NonZeroU64::get)),
        ("extent_allocation_size_hint", job.options.extent_allocation_size_hint),
        ("sloppy_size_hint", job.options.sloppy_size_hint),
        ("extent_size", job.options.extent_size),
    ];
    parts.extend(numbers.into_iter().filter_map(|(key, value)| Some(format!("{key} {}", value?))));
    let FileOptions { dsync, fallocate, paced, .. } = job.options;
    let flags = [("dsync", dsync), ("fallocate", fallocate), ("paced", paced)];
    parts.extend(flags.into_iter().filter(|(_, is)| *is).map(|(key, _)| key.to_owned()));
    parts.join(BETWEEN)
}

/// How two loads differ: what one has and the other has not, in each; none where they are alike, or
/// where one is not known, as in older files.
pub(super) fn differing(old: &str, new: &str) -> Option<[String; 2]> {
    if old == new || old.is_empty() || new.is_empty() {
        return None;
    }
    let beyond = |here: &str, there: &str| {
        let there: Vec<&str> = there.split(BETWEEN).collect();
        let parts = here.split(BETWEEN).filter(|part| !there.contains(part));
        let parts: Vec<&str> = parts.collect();
        if parts.is_empty() { String::from("nothing of that") } else { parts.join(BETWEEN) }
    };
    Some([beyond(old, new), beyond(new, old)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::JobFile;
    use forebay_config::Source;

    fn load(info: &str) -> String {
        let text = format!(
            "- {{name: a, type: randread, shards: all, data_size: 2MB, shard_info: {{{info}}}}}\n"
        );
        let file = JobFile::parse(&Source::new("jobs.yaml", &text), None, 2).unwrap();
        job_load(&file.jobs[0])
    }

    #[test]
    fn a_load_is_told_by_what_the_job_file_says() {
        let usual = load("parallelism: 8, rps: 500, reqsize: 4kB");
        assert_eq!(
            usual,
            "randread, shards 0 1, parallelism 8, reqsize 4096, file size 1048576, rps 500"
        );
        for (info, before, now) in [
            ("parallelism: 8, rps: 400, reqsize: 4kB", "rps 500", "rps 400"),
            ("parallelism: 4, rps: 500, reqsize: 4kB", "parallelism 8", "parallelism 4"),
            ("parallelism: 8, rps: 500, reqsize: 8kB", "reqsize 4096", "reqsize 8192"),
            ("parallelism: 8, reqsize: 4kB", "rps 500", "nothing of that"),
            (
                "parallelism: 8, reqsize: 4kB, think_time: 1ms",
                "rps 500",
                "think_time 1ms after 0ns",
            ),
        ] {
            let found = differing(&usual, &load(info));
            assert_eq!(found, Some([before, now].map(String::from)), "{info}");
        }
        // shares may be what was changed
        assert_eq!(differing(&usual, &load("parallelism: 8, rps: 500, shares: 7")), None);
        assert_eq!(differing(&usual, ""), None);
    }
}
