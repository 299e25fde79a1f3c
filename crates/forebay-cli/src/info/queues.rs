//! How many I/O queues to have.

use serde::Serialize;

/// A queue with fewer requests in the disk cannot keep its part of it busy.
const LOCAL_DEPTH_MIN: u64 = 4;

/// The threads that do I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Threads {
    pub(super) shards: u32,
    /// NUMA nodes that they run on, at most as many.
    pub(super) nodes: u32,
}

/// A number of I/O queues, and what it leaves each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Queues {
    pub(super) count: u32,
    /// Small requests in the disk for each, when all are busy.
    pub(super) local_depth: u64,
}

/// As many queues as there are shards, but so few that each has a local depth of 4 out of `depth`
/// small requests in the disk, and at least one for each NUMA node.
pub(super) fn recommended(depth: u64, threads: Threads) -> Queues {
    let Threads { shards, nodes } = threads;
    let most = u32::try_from(depth / LOCAL_DEPTH_MIN).unwrap_or(u32::MAX);
    let count = most.min(shards).max(nodes).max(1);
    Queues { count, local_depth: depth / u64::from(count) }
}

impl Queues {
    /// Why so many.
    pub(super) fn explain(self, depth: u64, threads: Threads) -> String {
        let Self { count, local_depth } = self;
        let Threads { shards, nodes } = threads;
        let shared = "The queues share one budget: a lone busy one may use it all.";
        let full = format!("the window is full with {depth} requests of 4 KiB");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_as_many_as_keep_a_depth_of_four() {
        for (depth, shards, nodes, count, local_depth) in [
            // the published example: depth 30, six processors
            (30, 6, 1, 6, 5),
            (30, 12, 1, 7, 4),
            (1000, 8, 2, 8, 125),
            (6, 64, 2, 2, 3),
            (1, 64, 1, 1, 1),
            (3, 1, 1, 1, 3),
        ] {
            let threads = Threads { shards, nodes };
            let queues = recommended(depth, threads);
            assert_eq!((queues.count, queues.local_depth), (count, local_depth), "{depth}");
            assert!(queues.explain(depth, threads).contains(&depth.to_string()));
        }
    }
}
