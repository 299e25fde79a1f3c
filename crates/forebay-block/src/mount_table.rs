//! All mounts that a process sees, as the tree that they are.

use std::path::Path;

use crate::mount::Mount;

/// The lines of a `/proc/self/mountinfo`.
#[derive(Debug)]
pub(crate) struct MountTable(Vec<Mount>);

impl Mount {
    /// The mount that holds `dir`, a full path without links, by the text of
    /// `/proc/self/mountinfo`.
    pub fn holding(mountinfo: &str, dir: &Path) -> Option<Self> {
        MountTable::new(mountinfo).holding(dir).cloned()
    }
}

impl MountTable {
    pub(crate) fn new(mountinfo: &str) -> Self {
        Self(Mount::all(mountinfo).collect())
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Mount> {
        self.0.iter().find(|mount| mount.id == id)
    }

    /// The mount that holds `dir`, a full path without links.
    pub(crate) fn holding(&self, dir: &Path) -> Option<&Mount> {
        let mut above: Vec<&Path> = dir.ancestors().collect();
        above.reverse();
        above.into_iter().fold(None, |holder, point| self.at(holder, point))
    }

    /// The mount that is met at `point` by who comes from `holder`, the mount of what is above:
    /// the topmost that is mounted there, or `holder` itself. What is mounted below a point that
    /// was covered later is not met.
    pub(crate) fn at<'a>(&'a self, holder: Option<&'a Mount>, point: &Path) -> Option<&'a Mount> {
        let is_in = |mount: &Mount, holder: Option<&Mount>| {
            holder.is_some_and(|holder| mount.parent == holder.id && mount.id != holder.id)
        };
        let here = || self.0.iter().rev().filter(|mount| mount.point == point);
        let first = here().find(|mount| is_in(mount, holder));
        let Some(mut top) = first.or_else(|| here().find(|mount| self.is_outermost(mount))) else {
            return holder;
        };
        // no more steps than there are mounts, should the table go in circles
        for _ in 0..self.0.len() {
            match here().find(|mount| is_in(mount, Some(top))) {
                Some(above) => top = above,
                None => break,
            }
        }
        Some(top)
    }

    /// Whether the mount that it is in cannot be seen from here.
    fn is_outermost(&self, mount: &Mount) -> bool {
        mount.parent == mount.id || self.by_id(mount.parent).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(table: &str, dir: &str) -> Option<u64> {
        MountTable::new(table).holding(Path::new(dir)).map(|mount| mount.id)
    }

    #[test]
    fn bytes_covered_later_are_not_met() {
        let table = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     21 20 8:2 / /a/b rw - xfs /dev/sda2 rw\n\
                     22 20 8:3 / /a rw - xfs /dev/sda3 rw\n\
                     23 22 8:4 / /a rw - xfs /dev/sda4 rw\n";
        assert_eq!(held_by(table, "/a/b/c"), Some(23));
        assert_eq!(held_by(table, "/b"), Some(20));
    }

    #[test]
    fn mounts_of_a_root_that_is_no_mount_are_met() {
        let table =
            "31 20 0:20 / /proc rw - proc proc rw\n32 20 8:2 / /data rw - xfs /dev/sda2 rw\n";
        assert_eq!(held_by(table, "/data/a"), Some(32));
        assert_eq!(held_by(table, "/other"), None);
    }

    #[test]
    fn a_table_that_goes_in_circles_ends() {
        let table = "1 1 0:2 / / rw - rootfs rootfs rw\n2 3 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     3 2 8:1 / / rw - ext4 /dev/sda1 rw\n";
        assert!(held_by(table, "/a").is_some());
        assert_eq!(held_by("", "/"), None);
    }
}
