//! How many NUMA nodes the processors of this process are on.

use std::fs;
use std::path::Path;

/// The nodes of the machine with processors, at least 1.
pub(super) fn used(root: &Path) -> u32 {
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
    fn nodes_without_processors_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(used(dir.path()), 1);
        for (node, list) in [("node0", "0-1\n"), ("node1", "2-3\n"), ("node2", "\n")] {
            let node = dir.path().join("sys/devices/system/node").join(node);
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("cpulist"), list).unwrap();
        }
        assert_eq!(used(dir.path()), 2);
    }
}
