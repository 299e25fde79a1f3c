//! Which NUMA node a thread runs on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The NUMA node of the CPU that the calling thread runs on, below [`count`];
/// 0 where the system does not say.
pub(crate) fn node_of_this_thread() -> usize {
    nodes().get(rustix::thread::sched_getcpu()).copied().unwrap_or(0)
}

/// How many NUMA nodes have CPUs; at least 1.
pub(crate) fn count() -> usize {
    nodes().iter().max().map_or(1, |last| last + 1)
}

/// The NUMA node of each CPU, below [`count`].
pub(crate) fn nodes() -> &'static [usize] {
    static NODES: OnceLock<Vec<usize>> = OnceLock::new();
    NODES.get_or_init(|| nodes_by_cpu(Path::new("/sys/devices/system/node")))
}

/// The node of each CPU, by the `nodeN/cpulist` files in `dir`; the nodes that
/// have CPUs are counted from 0 on, without gaps.
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

/// Most CPUs that a list is read for: what the kernel supports.
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

/// What `/sys/devices/system/node` has on some machines.
#[cfg(test)]
pub(crate) mod recorded {
    use std::fs;

    /// Of each machine the files `nodeN/cpulist`.
    const MACHINES: [(&str, &[(&str, &str)]); 6] = [
        ("a virtual machine", &[("node0", "0-1\n")]),
        (
            "two sockets with hyper-threads",
            &[("node0", "0-17,36-53\n"), ("node1", "18-35,54-71\n")],
        ),
        (
            "two sockets, CPUs counted in turn",
            &[("node0", "0,2,4,6,8,10,12,14\n"), ("node1", "1,3,5,7,9,11,13,15\n")],
        ),
        (
            "one socket as four nodes",
            &[
                ("node0", "0-15,64-79\n"),
                ("node1", "16-31,80-95\n"),
                ("node2", "32-47,96-111\n"),
                ("node3", "48-63,112-127\n"),
            ],
        ),
        (
            "two sockets and memory without CPUs",
            &[("node0", "0-31\n"), ("node1", "32-63\n"), ("node2", "\n")],
        ),
        ("nodes with gaps", &[("node0", "0-7\n"), ("node8", "8-15\n")]),
    ];

    /// Of each the node of each CPU, as it is read.
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
    fn a_system_without_nodes_has_one() {
        assert_eq!(nodes_by_cpu(Path::new("/nowhere")), Vec::<usize>::new());
        assert!(node_of_this_thread() < count());
        assert_eq!(cpus("x,7-,3").collect::<Vec<_>>(), [3]);
    }
}
