//! Which filesystem holds a directory, and how it is mounted.

use std::path::PathBuf;

use crate::backing::Backing;
use crate::number::DeviceNumber;

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its number, as `statx` gives it; one of them may be used again once it is unmounted.
    pub id: u64,
    /// The mount that it is in.
    pub parent: u64,
    /// The number of the filesystem: of its block device, or one of its own.
    pub device: DeviceNumber,
    /// The part of the filesystem that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The kind of filesystem, such as `xfs` or `fuse.sshfs`.
    pub kind: String,
    /// What is mounted: a device, or words.
    pub source: String,
    /// Options of the mount.
    options: Vec<String>,
    /// Options of the filesystem, which all its mounts share.
    super_options: Vec<String>,
}

impl Mount {
    /// All mounts of the text of `/proc/self/mountinfo`.
    pub fn all(mountinfo: &str) -> impl Iterator<Item = Self> {
        mountinfo.lines().filter_map(Self::parse)
    }

    /// Reads a line such as `36 25 259:1 / /data rw,noatime - xfs /dev/nvme0n1p1 rw,discard`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ');
        let (id, parent) = (mount.next()?.parse().ok()?, mount.next()?.parse().ok()?);
        let device = mount.next()?.parse().ok()?;
        let mut filesystem = filesystem.split(' ');
        let (root, point, flags) = (mount.next()?, mount.next()?, mount.next()?);
        let (kind, source) = (filesystem.next()?, filesystem.next()?);
        let super_options = filesystem.next().unwrap_or_default();
        Some(Self {
            id,
            parent,
            device,
            root: unescaped(root).into(),
            point: unescaped(point).into(),
            kind: kind.to_owned(),
            source: unescaped(source),
            options: flags.split(',').map(unescaped).collect(),
            super_options: super_options.split(',').map(unescaped).collect(),
        })
    }

    /// Whether a question about its files may never be answered.
    pub fn may_not_answer(&self) -> bool {
        Backing::of(&self.kind).may_not_answer()
    }

    /// Whether the mount or its filesystem has an option without value.
    pub fn has(&self, option: &str) -> bool {
        self.all_options().any(|given| given == option)
    }

    /// Whether nothing may change on the filesystem, by whichever mount. A bind mount may be
    /// read-only on its own, and the filesystem behind it not.
    pub fn is_read_only_filesystem(&self) -> bool {
        self.super_options.iter().any(|given| given == "ro")
    }

    fn all_options(&self) -> impl Iterator<Item = &String> {
        self.options.iter().chain(&self.super_options)
    }

    /// Whether space that is given back is discarded at once.
    pub fn discards(&self) -> bool {
        self.has("discard") || self.value("discard").is_some()
    }

    /// The value of an option.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.all_options().find_map(|given| given.strip_prefix(option)?.strip_prefix('='))
    }

    /// The option and its value as a number.
    pub fn number(&self, option: &str) -> Option<u64> {
        self.value(option)?.parse().ok()
    }
}

/// Resolves the octal escapes that stand for blanks and backslashes.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_line_with_optional_fields_and_escapes_is_read() {
        let line = "97 27 0:52 /sub /a\\040b rw,nosuid shared:3 master:1 - xfs /dev/md0 \
                    rw,sunit=2048,discard";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.point.to_str(), mount.kind.as_str()), (Some("/a b"), "xfs"));
        assert_eq!(mount.root, Path::new("/sub"));
        assert!(mount.has("discard") && mount.has("nosuid") && !mount.has("sunit"));
        assert_eq!(mount.number("sunit"), Some(2048));
    }

    #[test]
    fn a_read_only_bind_mount_is_no_read_only_filesystem() {
        let read_only = |flags: &str| {
            let mount = Mount::parse(&format!("3 1 8:1 / /data {flags}")).unwrap();
            assert!(mount.has("ro"), "{flags}");
            mount.is_read_only_filesystem()
        };
        assert!(!read_only("ro,relatime - xfs /dev/sda1 rw,discard"));
        assert!(read_only("rw,relatime - xfs /dev/sda1 ro,discard"));
        assert!(read_only("ro,relatime shared:1 - xfs /dev/sda1 ro"));
    }

    #[test]
    fn lines_that_are_no_mounts_are_left_out() {
        for line in ["", "36 25 259:1 / /data rw", "36 - xfs", "a b c d e f - "] {
            assert_eq!(Mount::parse(line), None, "{line}");
        }
        assert_eq!(unescaped("a\\b\\"), "a\\b\\");
    }

    #[test]
    fn the_deepest_and_then_the_last_mount_holds_a_directory() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      2 1 8:2 / /data rw - xfs /dev/sda2 rw\n\
                      3 1 8:3 / /data rw - ext4 /dev/sda3 rw\n\
                      4 1 8:4 / /database rw - xfs /dev/sda4 rw\n";
        let source = |dir| Mount::holding(mounts, Path::new(dir)).unwrap().source;
        assert_eq!(source("/data/store"), "/dev/sda3");
        assert_eq!(source("/database"), "/dev/sda4");
        assert_eq!(source("/data2"), "/dev/sda1");
    }

    #[test]
    fn options_say_whether_freed_space_is_discarded() {
        let mountinfo = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 21 0:25 / /data rw shared:1 - xfs /dev/md0 rw
31 30 0:26 / /data/with\\040space rw - btrfs /dev/sdb rw,discard=async
";
        let mount = |dir: &str| Mount::holding(mountinfo, Path::new(dir)).unwrap();
        let home = mount("/home");
        assert_eq!((home.kind.as_str(), home.source.as_str()), ("ext4", "/dev/vda"));
        assert!(home.discards());
        assert!(mount("/data/x").kind == "xfs" && !mount("/data/x").discards());
        let space = mount("/data/with space");
        assert!(space.kind == "btrfs" && space.discards());
        assert_eq!(mount("/database").kind, "ext4");
        assert_eq!(Mount::holding("", Path::new("/")), None);
    }
}
