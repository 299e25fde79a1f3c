//! What backs the files of a filesystem.

/// What backs the files of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// The kernel, on disks of this machine.
    Disk,
    /// The kernel, in memory.
    Memory,
    /// Another machine.
    Network,
    /// A program, through FUSE, which alone knows where. It may answer from memory what was asked
    /// of a disk: flags of a file, such as that for direct I/O, are the program's to heed.
    Program,
    /// Nothing: the kernel shows what it knows as files, and others cannot be made.
    Kernel,
}

impl Backing {
    /// By the kind of filesystem, as `/proc/self/mountinfo` has it.
    pub fn of(kind: &str) -> Self {
        match kind {
            "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => Self::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "glusterfs"
            | "lustre" | "afs" | "fuse.sshfs" | "fuse.glusterfs" | "fuse.ceph"
            | "fuse.ceph-fuse" | "fuse.s3fs" | "fuse.gcsfuse" | "fuse.rclone" | "fuse.juicefs" => {
                Self::Network
            }
            "proc" | "sysfs" | "cgroup" | "cgroup2" | "devpts" | "debugfs" | "tracefs"
            | "securityfs" | "configfs" | "bpf" | "pstore" | "efivarfs" | "binfmt_misc"
            | "fusectl" | "mqueue" => Self::Kernel,
            "fuseblk" => Self::Program,
            _ if kind.split('.').next() == Some("fuse") => Self::Program,
            _ => Self::Disk,
        }
    }

    /// Whether somebody else answers for the files, and perhaps never does.
    pub fn may_not_answer(self) -> bool {
        matches!(self, Self::Network | Self::Program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_filesystems_have_keepers() {
        for (kind, backing) in [
            ("xfs", Backing::Disk),
            ("overlay", Backing::Disk),
            ("tmpfs", Backing::Memory),
            ("nfs4", Backing::Network),
            ("fuse.sshfs", Backing::Network),
            ("fuse", Backing::Program),
            ("fuse.bindfs", Backing::Program),
            ("fuseblk", Backing::Program),
            ("proc", Backing::Kernel),
            ("cgroup2", Backing::Kernel),
        ] {
            assert_eq!(Backing::of(kind), backing, "{kind}");
        }
    }
}
