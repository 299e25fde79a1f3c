//! The number of I/O queues of a disk.

/// The least number of requests in the disk with which a queue keeps its part of the disk busy.
pub const LOCAL_DEPTH_MIN: u64 = 4;

/// A number of I/O queues of a disk, and the depth of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoQueues {
    /// The number of queues, at least 1.
    pub count: u32,
    /// The number of requests of 4 KiB in the disk for each queue, when all are busy.
    pub local_depth: u64,
}

impl IoQueues {
    /// The recommended number of queues, at most `wanted`. It is limited so that each queue has a
    /// local depth of at least [`LOCAL_DEPTH_MIN`], out of the `depth` requests of 4 KiB that fill
    /// the disk's window. It is at least one for each of the NUMA `nodes` in use, because requests
    /// across nodes cost more than a small depth.
    pub fn recommended(depth: u64, wanted: u32, nodes: u32) -> Self {
        let most = u32::try_from(depth / LOCAL_DEPTH_MIN).unwrap_or(u32::MAX);
        let count = most.min(wanted).max(nodes).max(1);
        Self { count, local_depth: depth / u64::from(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_as_many_as_keep_a_depth_of_four() {
        for (depth, wanted, nodes, count, local_depth) in [
            // the published example: depth 30, six processors
            (30, 6, 1, 6, 5),
            (30, 12, 1, 7, 4),
            (1000, 8, 2, 8, 125),
            (6, 64, 2, 2, 3),
            (1, 64, 1, 1, 1),
            (3, 1, 1, 1, 3),
            (3, 0, 0, 1, 3),
        ] {
            let queues = IoQueues::recommended(depth, wanted, nodes);
            assert_eq!((queues.count, queues.local_depth), (count, local_depth), "{depth}");
        }
    }
}
