//! The NUMA nodes of CPUs and threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The NUMA node of the CPU that the calling thread runs on, below [`count`]. 0 if the system does
/// not report it.
pub(crate) fn node_of_this_thread() -> usize {
    nodes().get(rustix::thread::sched_getcpu()).copied().unwrap_or(0)
}

/// The number of NUMA nodes with CPUs; at least 1.
pub(crate) fn count() -> usize {
    nodes().iter().max().map_or(1, |last| last + 1)
}

/// The NUMA node of each CPU, below [`count`].
pub(crate) fn nodes() -> &'static [usize] {
    static NODES: OnceLock<Vec<usize>> = OnceLock::new();
    NODES.get_or_init(|| nodes_by_cpu(Path::new("/sys/devices/system/node")))
}

/// The node of each CPU, from the files `nodeN/cpulist` in `dir`. Nodes with CPUs are numbered from
/// 0 without gaps.
fn nodes_by_cpu(dir: &Path) -> Vec<usize> {
    let mut lists = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { continue };
        let list = fs::read_to_string(entry.path().join("cpulist")).unwrap_or_default();
        let cpus: Vec<usize> = cpus(&list).collect();
        if !cpus.is_empty() {
            lists.insert(number, cpus);
        }
    }
    let mut nodes = Vec::new();
    for (node, cpus) in lists.into_values().enumerate() {
        for cpu in cpus {
            if nodes.len() <= cpu {
                nodes.resize(cpu + 1, 0);
            }
            nodes[cpu] = node;
        }
    }
    nodes
}

/// The most CPUs of a list: the limit of the kernel.
const CPUS_MAX: usize = 8192;

/// The CPUs of a list such as `0-3,8`.
fn cpus(list: &str) -> impl Iterator<Item = usize> {
    list.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last.min(CPUS_MAX).saturating_add(1),
            _ => 0..0,
        }
    })
}

/// What `/sys/devices/system/node` has on real machines, as `lscpu`, `numactl -H` and hwloc report it.
#[cfg(test)]
pub(crate) mod recorded {
    use std::fs;

    /// Of each machine the files `nodeN/cpulist`.
    const MACHINES: [(&str, &[(&str, &str)]); 8] = [
        ("a kernel without NUMA", &[]),
        ("a virtual machine with two CPUs", &[("node0", "0-1\n")]),
        ("two Xeon E5-2660 v2", &[("node0", "0-9,20-29\n"), ("node1", "10-19,30-39\n")]),
        (
            "two Xeon of 56 cores, each divided into four sub-NUMA clusters",
            &[
                ("node0", "0-13,112-125\n"),
                ("node1", "14-27,126-139\n"),
                ("node2", "28-41,140-153\n"),
                ("node3", "42-55,154-167\n"),
                ("node4", "56-69,168-181\n"),
                ("node5", "70-83,182-195\n"),
                ("node6", "84-97,196-209\n"),
                ("node7", "98-111,210-223\n"),
            ],
        ),
        (
            "two Xeon of 52 cores and two CXL memory nodes without CPUs",
            &[
                ("node0", "0-51,104-155\n"),
                ("node1", "52-103,156-207\n"),
                ("node2", "\n"),
                ("node3", "\n"),
            ],
        ),
        (
            "a POWER9 8335-GTW with offline CPUs and memory nodes of graphics cards",
            &[
                ("node0", "0-15\n"),
                ("node250", "\n"),
                ("node251", "\n"),
                ("node252", "\n"),
                ("node253", "\n"),
                ("node254", "\n"),
                ("node255", "\n"),
                ("node8", "88-103\n"),
            ],
        ),
        (
            "four Opteron, whose nodes have numbers with gaps",
            &[
                ("node0", "0-5\n"),
                ("node1", "6-11\n"),
                ("node2", "12-17\n"),
                ("node33", "18-23\n"),
                ("node34", "24-29\n"),
                ("node45", "30-35\n"),
                ("node72", "36-41\n"),
                ("node73", "42-47\n"),
            ],
        ),
        // Its even CPUs are online and have no node: the memory of node 0 was offline.
        (
            "a PowerEdge R630 with CPUs 0 to 3 and 21 to 23 and node 0 offline",
            &[("node1", "5,7,9,11,13,15,17,19\n")],
        ),
    ];

    /// Of each machine the node of each CPU, as it is read.
    pub(crate) fn machines() -> Vec<(&'static str, Vec<usize>)> {
        let read = |(name, files): (&'static str, &[(&str, &str)])| {
            let dir = tempfile::tempdir().unwrap();
            for (node, list) in files {
                fs::create_dir(dir.path().join(node)).unwrap();
                fs::write(dir.path().join(node).join("cpulist"), list).unwrap();
            }
            (name, super::nodes_by_cpu(dir.path()))
        };
        MACHINES.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_the_node_whose_list_names_it() {
        let dir = tempfile::tempdir().unwrap();
        for (node, list) in [("node0", "0-1,4\n"), ("node1", "\n"), ("node2", "2-3,5\n")] {
            fs::create_dir(dir.path().join(node)).unwrap();
            fs::write(dir.path().join(node).join("cpulist"), list).unwrap();
        }
        fs::write(dir.path().join("possible"), "0-2\n").unwrap();
        assert_eq!(nodes_by_cpu(dir.path()), [0, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn nodes_with_cpus_are_counted_without_gaps_on_recorded_machines() {
        let counts = recorded::machines().into_iter().map(|(_, nodes)| {
            let count = nodes.iter().max().map_or(1, |last| last + 1);
            (nodes.len(), count)
        });
        let expected = [(0, 1), (2, 1), (40, 2), (224, 8), (208, 2), (104, 2), (48, 8), (20, 1)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_system_without_nodes_has_one() {
        assert_eq!(nodes_by_cpu(Path::new("/nowhere")), Vec::<usize>::new());
        assert!(node_of_this_thread() < count());
        assert_eq!(cpus("x,7-,3").collect::<Vec<_>>(), [3]);
    }
}
