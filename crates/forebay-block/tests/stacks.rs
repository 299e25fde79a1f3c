//! What files lie on, on machines that are directories: recorded trees, and trees made here.
#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_block::{Machine, NoIostatDisk, Stack};
use tempfile::TempDir;

/// A machine that is a directory, where anything can be added.
struct Tree(TempDir);

impl Tree {
    fn new(mountinfo: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write("proc/self/mountinfo", mountinfo);
        tree
    }

    /// A copy of a machine that the tests of `forebay check` have recorded.
    fn recorded(name: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        let machines =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/forebay-check/tests");
        let from = machines.join("machines").join(name).join(".");
        let copied = Command::new("cp").arg("-a").args([from.as_path(), tree.0.path()]).status();
        assert!(copied.unwrap().success());
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.root().join(path.trim_start_matches('/'))).unwrap();
        self
    }

    /// A block device, as `/sys` has it; `inside` is the disk of a partition.
    fn device(self, name: &str, number: &str, inside: Option<&str>) -> Self {
        let dir = match inside {
            Some(disk) => format!("sys/devices/{disk}/{name}"),
            None => format!("sys/devices/{name}"),
        };
        self.write(&format!("{dir}/dev"), &format!("{number}\n"));
        if inside.is_some() {
            self.write(&format!("{dir}/partition"), "1\n");
        }
        for place in ["sys/dev/block", "sys/class/block"] {
            let name = if place == "sys/dev/block" { number } else { name };
            fs::create_dir_all(self.root().join(place)).unwrap();
            symlink(self.root().join(&dir), self.root().join(place).join(name)).unwrap();
        }
        self
    }

    fn link(self, to: &str, at: &str) -> Self {
        let at = self.root().join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.root().join(to), at).unwrap();
        self
    }

    fn stack(&self, path: &str) -> Stack {
        Stack::of_path(&Machine::new(self.root()), Path::new(path)).unwrap()
    }

    /// All that `path` lies on, in words.
    fn below(&self, path: &str) -> Vec<String> {
        self.stack(path).layers.iter().map(|layer| layer.to_string()).collect()
    }
}

fn devices(numbers: &[&str]) -> Vec<String> {
    numbers.iter().map(|number| format!("device {number}")).collect()
}

#[test]
fn a_logical_volume_lies_on_partitions_and_these_on_their_disks() {
    let tree = Tree::recorded("lvm").dir("/srv");
    let expected = ["253:0", "8:3", "8:0", "8:19", "8:16"];
    assert_eq!(tree.below("/srv/data"), devices(&expected));
    assert_eq!(tree.stack("/srv/data").mount.unwrap().point, Path::new("/srv/data"));
}

#[test]
fn an_array_lies_on_its_members() {
    let tree = Tree::recorded("md-raid0").dir("/var/lib");
    let expected = ["9:0", "259:1", "259:2", "259:3", "259:4"];
    assert_eq!(tree.below("/var/lib/scylla"), devices(&expected));
}

#[test]
fn a_partition_lies_on_its_disk() {
    let tree = Tree::new("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        .device("sda", "8:0", None)
        .device("sda1", "8:1", Some("sda"));
    assert_eq!(tree.below("/"), devices(&["8:1", "8:0"]));
}

#[test]
fn datasets_of_a_zfs_pool_meet_in_the_pool() {
    let tree = Tree::new(
        "20 1 0:30 / / rw - zfs tank/root rw,xattr,posixacl\n\
         21 20 0:31 / /data rw - zfs tank/data/store rw,xattr\n\
         22 20 0:32 / /other rw - zfs dozer rw,xattr\n",
    );
    assert_eq!(tree.below("/"), ["device 0:30", "the ZFS pool tank"]);
    assert_eq!(tree.below("/data"), ["device 0:31", "the ZFS pool tank"]);
    assert_eq!(tree.below("/other"), ["device 0:32", "the ZFS pool dozer"]);
}

/// btrfs over a partition and an encrypted disk, with another disk that is not of it.
fn btrfs(source: &str) -> Tree {
    let tree = Tree::new(&format!(
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
         21 20 0:40 /volume /data rw - btrfs {source} rw,subvolid=256,subvol=/volume\n"
    ))
    .device("sda", "8:0", None)
    .device("sda1", "8:1", Some("sda"))
    .device("sda2", "8:2", Some("sda"))
    .device("sdb", "8:16", None)
    .device("dm-3", "253:3", None)
    .link("sys/devices/sdb", "sys/devices/dm-3/slaves/sdb")
    .link("sys/devices/sda/sda2", "sys/fs/btrfs/7a/devices/sda2")
    .link("sys/devices/dm-3", "sys/fs/btrfs/7a/devices/dm-3")
    .link("sys/devices/sda/sda1", "sys/fs/btrfs/00/devices/sda1");
    tree.write("sys/devices/dm-3/dm/name", "safe\n");
    tree
}

#[test]
fn btrfs_lies_on_all_its_devices_whichever_was_mounted() {
    let by_partition = ["0:40", "8:2", "8:0", "253:3", "8:16"];
    assert_eq!(btrfs("/dev/sda2").below("/data"), devices(&by_partition));
    let by_mapped = ["0:40", "253:3", "8:16", "8:2", "8:0"];
    assert_eq!(btrfs("/dev/mapper/safe").below("/data"), devices(&by_mapped));
    assert_eq!(btrfs("/dev/mapper/none").below("/data"), devices(&["0:40"]));
}

const OVERLAY: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
    21 20 8:16 / /layers rw - xfs /dev/sdb rw\n\
    22 20 0:50 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/layers/u,workdir=/layers/w\n";

#[test]
fn an_overlay_lies_on_the_disk_of_its_upper_directory() {
    let tree = Tree::new(OVERLAY).dir("/layers/u").dir("/layers/w/work");
    assert_eq!(tree.below("/merged"), devices(&["0:50", "8:16"]));
}

#[test]
fn a_directory_that_is_only_called_like_the_upper_one_is_not_taken_for_it() {
    // in a container the options are those of the host
    let tree = Tree::new(OVERLAY).dir("/layers/u").dir("/layers/w");
    assert_eq!(tree.below("/merged"), devices(&["0:50"]));
    let within = "20 1 0:50 / / rw - overlay overlay rw,upperdir=/u,workdir=/w\n";
    let tree = Tree::new(within).dir("/u").dir("/w/work");
    assert_eq!(tree.below("/"), devices(&["0:50"]));
}

#[test]
fn an_overlay_on_itself_ends() {
    let circle = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        21 20 0:50 / /a rw - overlay overlay rw,upperdir=/b/u,workdir=/b/w\n\
        22 20 0:51 / /b rw - overlay overlay rw,upperdir=/a/u,workdir=/a/w\n";
    let tree = Tree::new(circle).dir("/a/u").dir("/a/w/work").dir("/b/u").dir("/b/w/work");
    assert_eq!(tree.below("/a"), devices(&["0:50", "0:51"]));
}

#[test]
fn a_loop_device_lies_on_the_disk_of_its_file() {
    let mounts = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        21 20 7:1 / /data rw - xfs /dev/loop0p1 rw\n\
        22 20 8:16 / /images rw - xfs /dev/sdb rw\n";
    let tree = Tree::new(mounts)
        .device("loop0", "7:0", None)
        .device("loop0p1", "7:1", Some("loop0"))
        .device("sdb", "8:16", None);
    tree.write("sys/devices/loop0/loop/backing_file", "/images/a\n");
    assert_eq!(tree.below("/data"), devices(&["7:1", "7:0"]), "the file is not to be seen");
    tree.write("images/a", "");
    assert_eq!(tree.below("/data"), devices(&["7:1", "7:0", "8:16"]));
}

#[test]
fn network_and_memory_lie_on_themselves() {
    let tree = Tree::recorded("hdd").dir("/net").dir("/mnt").dir("/dev");
    for (path, number) in
        [("/net/home/me", "0:50"), ("/mnt/remote", "0:51"), ("/mnt/mirror/a/b", "0:53")]
    {
        assert_eq!(tree.below(path), devices(&[number]), "{path}");
    }
    assert_eq!(tree.below("/dev/shm"), devices(&["0:24"]));
}

/// The name of the disk whose counters tell of `path`.
fn counted(tree: &Tree, path: &str) -> Result<String, NoIostatDisk> {
    tree.stack(path).iostat_disk(&Machine::new(tree.root())).map(|disk| disk.name)
}

#[test]
fn operations_on_files_are_counted_once() {
    let name = |name: &str| Ok(String::from(name));
    let partition = Tree::new("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
        .device("sda", "8:0", None)
        .device("sda1", "8:1", Some("sda"));
    assert_eq!(counted(&partition, "/"), name("sda"));
    assert_eq!(
        counted(&Tree::recorded("md-raid0").dir("/var/lib"), "/var/lib/scylla"),
        name("md0")
    );
    let volume = Tree::recorded("lvm").dir("/srv");
    assert_eq!(counted(&volume, "/srv/data"), name("dm-0"), "its members have a part each");
    let mapped = Tree::new("20 1 253:0 / / rw - ext4 /dev/mapper/crypt rw\n")
        .device("sda", "8:0", None)
        .device("sda1", "8:1", Some("sda"))
        .device("dm-0", "253:0", None)
        .link("sys/devices/sda/sda1", "sys/devices/dm-0/slaves/sda1");
    assert_eq!(counted(&mapped, "/"), name("sda"));
}

#[test]
fn members_are_those_of_arrays_that_have_chunks_on_each_in_turn() {
    for (level, count) in [("raid0", 4), ("raid1", 0)] {
        let tree = Tree::recorded("md-raid0").dir("/var/lib");
        fs::write(tree.root().join("sys/dev/block/9:0/md/level"), level).unwrap();
        let disk = tree.stack("/var/lib/scylla").iostat_disk(&Machine::new(tree.root()));
        assert_eq!(disk.unwrap().members.len(), count, "{level}");
    }
}

#[test]
fn missing_counters_of_a_disk_are_reported_with_the_reason() {
    for (kind, expected) in [
        ("tmpfs", NoIostatDisk::Memory),
        ("nfs4", NoIostatDisk::Network),
        ("fuse.sshfs", NoIostatDisk::Network),
        ("fuse.bindfs", NoIostatDisk::Program),
        ("overlay", NoIostatDisk::NoDevice),
    ] {
        let tree = Tree::new(&format!("20 1 0:20 / / rw - {kind} source rw\n"));
        assert_eq!(counted(&tree, "/"), Err(expected), "{kind}");
    }
    let pool = Tree::new("20 1 0:20 / / rw - zfs pool/data rw\n");
    assert_eq!(counted(&pool, "/"), Err(NoIostatDisk::Several));
    assert_eq!(counted(&btrfs("/dev/sda2"), "/data"), Err(NoIostatDisk::Several));
    let hidden = Tree::new("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    assert_eq!(counted(&hidden, "/"), Err(NoIostatDisk::NoDevice), "a container without /sys");
}
