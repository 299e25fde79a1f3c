//! How many I/O queues to have.

use std::num::NonZero;
use std::path::Path;
use std::{fs, thread};

use forebay::{IoQueues, LOCAL_DEPTH_MIN};
use forebay_core::SHARDS_MAX;
use serde::Serialize;

/// The threads that do I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Threads {
    pub(super) shards: u32,
    /// NUMA nodes that they run on, at most as many.
    pub(super) nodes: u32,
}

impl Threads {
    /// As stated, or else a shard for each processor of this machine, and its NUMA nodes.
    pub(super) fn here(shards: Option<u32>, nodes: Option<u32>) -> Self {
        let processors = || thread::available_parallelism().map_or(1, NonZero::get);
        let shards = shards.unwrap_or_else(|| processors().min(SHARDS_MAX) as u32);
        let nodes = nodes.unwrap_or_else(|| nodes_used(Path::new("/")));
        Self { shards, nodes: nodes.min(shards) }
    }
}

/// A number of I/O queues, and what it leaves each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Queues {
    pub(super) count: u32,
    /// Small requests in the disk for each, when all are busy.
    pub(super) local_depth: u64,
}

/// The number for `depth` small requests in the disk.
pub(super) fn recommended(depth: u64, threads: Threads) -> Queues {
    let IoQueues { count, local_depth } =
        IoQueues::recommended(depth, threads.shards, threads.nodes);
    Queues { count, local_depth }
}

impl Queues {
    /// Why this many.
    pub(super) fn explain(self, depth: u64, threads: Threads) -> String {
        let Self { count, local_depth } = self;
        let Threads { shards, nodes } = threads;
        let shared = "The queues share one budget: a lone busy one may use it all.";
        let full = format!("the disk is busy with {depth} requests of 4 KiB");
        if count == 1 && local_depth < LOCAL_DEPTH_MIN {
            return format!("{full}, of which several queues would have next to none");
        }
        if local_depth < LOCAL_DEPTH_MIN {
            return format!(
                "{full}, fewer than {LOCAL_DEPTH_MIN} for each queue; but with fewer queues than \
                 NUMA nodes ({nodes}) requests would go across nodes. {shared}"
            );
        }
        if count < shards {
            return format!(
                "{full}; with a queue per shard each of {shards} would have fewer than \
                 {LOCAL_DEPTH_MIN}. Let the shards of a NUMA node share queues. {shared}"
            );
        }
        format!("{full}; with a queue per shard each has {LOCAL_DEPTH_MIN} or more. {shared}")
    }
}

/// The nodes of the machine with processors, at least 1.
fn nodes_used(root: &Path) -> u32 {
    let entries = fs::read_dir(root.join("sys/devices/system/node")).into_iter().flatten();
    let with_processors = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        let is_node = number.is_some_and(|number| number.parse::<u32>().is_ok());
        let list = || fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        // a node may be memory alone
        is_node && !list().trim().is_empty()
    });
    u32::try_from(with_processors.count()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_explained() {
        for (depth, shards, nodes) in
            [(30, 6, 1), (30, 12, 1), (1000, 8, 2), (6, 64, 2), (1, 64, 1), (3, 1, 1)]
        {
            let threads = Threads { shards, nodes };
            let explained = recommended(depth, threads).explain(depth, threads);
            assert!(explained.contains(&depth.to_string()), "{explained}");
        }
    }

    #[test]
    fn nodes_without_processors_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nodes_used(dir.path()), 1);
        for (node, list) in [("node0", "0-1\n"), ("node1", "2-3\n"), ("node2", "\n")] {
            let node = dir.path().join("sys/devices/system/node").join(node);
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("cpulist"), list).unwrap();
        }
        assert_eq!(nodes_used(dir.path()), 2);
    }
}
