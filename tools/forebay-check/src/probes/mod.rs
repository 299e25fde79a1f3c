//! What is looked at: one module per question, each a function of what is known.

mod aio;
mod alignment;
mod block_size;
mod cgroup;
mod cloud;
mod discard;
mod filesystem;
mod free_space;
mod io_uring;
mod merges;
mod nowait;
mod page_cache;
mod requests;
mod rotational;
mod scheduler;
mod sectors;
mod stripe;
mod trim_batches;
mod write_cache;

use crate::finding::Finding;
use crate::subject::Subject;

type Probe = fn(&Subject<'_>) -> Vec<Finding>;

/// Every probe and its name.
const PROBES: [(&str, Probe); 19] = [
    ("filesystem", filesystem::probe),
    ("free-space", free_space::probe),
    ("block-size", block_size::probe),
    ("sectors", sectors::probe),
    ("stripe", stripe::probe),
    ("direct-io", alignment::probe),
    ("nowait", nowait::probe),
    ("page-cache", page_cache::probe),
    ("io-uring", io_uring::probe),
    ("aio", aio::probe),
    ("scheduler", scheduler::probe),
    ("requests", requests::probe),
    ("merges", merges::probe),
    ("rotational", rotational::probe),
    ("write-cache", write_cache::probe),
    ("discard", discard::probe),
    ("trim-batches", trim_batches::probe),
    ("limits", cgroup::probe),
    ("cloud", cloud::probe),
];

/// What all probes say, what matters most first.
pub(crate) fn all(subject: &Subject<'_>) -> Vec<Finding> {
    let say = |(name, probe): (&'static str, Probe)| {
        probe(subject).into_iter().map(move |finding| Finding { probe: name, ..finding })
    };
    let mut findings: Vec<Finding> = PROBES.into_iter().flat_map(say).collect();
    findings.extend(subject.machine.hidden().into_iter().map(|(path, why)| Finding {
        probe: "files",
        ..Finding::unknown(format!("/{}: {why}", path.display()))
    }));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
}
