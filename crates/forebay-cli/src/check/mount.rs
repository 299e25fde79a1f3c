//! Which filesystem holds a directory, and how it is mounted.

use std::path::{Path, PathBuf};

use super::machine::Machine;

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The part of the filesystem that is mounted.
    pub(super) root: PathBuf,
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// The kind of filesystem, such as `xfs` or `fuse.sshfs`.
    pub(super) kind: String,
    /// What is mounted: a device, or words.
    pub(super) source: String,
    /// Options of the mount and of the filesystem.
    options: Vec<String>,
}

impl Mount {
    /// The mount that holds `dir`, a full path without links.
    pub(super) fn of(machine: &Machine, dir: &Path) -> Option<Self> {
        let mounts = Self::all(machine).filter(|mount| dir.starts_with(&mount.point));
        // of several at one place the last is on top, and max_by_key keeps the last
        mounts.max_by_key(|mount| mount.point.components().count())
    }

    /// All mounts that this process sees.
    pub(super) fn all(machine: &Machine) -> impl Iterator<Item = Self> {
        let text = machine.text("proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<Self> = text.lines().filter_map(Self::parse).collect();
        mounts.into_iter()
    }

    /// Reads a line such as `36 25 259:1 / /data rw,noatime - xfs /dev/nvme0n1p1 rw,discard`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut filesystem = filesystem.split(' ');
        let (root, point, flags) = (mount.next()?, mount.next()?, mount.next()?);
        let (kind, source) = (filesystem.next()?, filesystem.next()?);
        let super_options = filesystem.next().unwrap_or_default();
        let options = flags.split(',').chain(super_options.split(','));
        Some(Self {
            root: unescaped(root).into(),
            point: unescaped(point).into(),
            kind: kind.to_owned(),
            source: unescaped(source),
            options: options.map(str::to_owned).collect(),
        })
    }

    /// Whether it is mounted with an option without value.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    /// The value of an option.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        self.options.iter().find_map(|given| given.strip_prefix(option)?.strip_prefix('='))
    }

    /// The option and its value as a number.
    pub(super) fn number(&self, option: &str) -> Option<u64> {
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
    fn what_is_no_mount_is_left_out() {
        for line in ["", "36 25 259:1 / /data rw", "36 - xfs", "a b c d e f - "] {
            assert_eq!(Mount::parse(line), None, "{line}");
        }
        assert_eq!(unescaped("a\\b\\"), "a\\b\\");
    }

    #[test]
    fn the_deepest_and_then_the_last_mount_holds_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("proc/self")).unwrap();
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      2 1 8:2 / /data rw - xfs /dev/sda2 rw\n\
                      3 1 8:3 / /data rw - ext4 /dev/sda3 rw\n\
                      4 1 8:4 / /database rw - xfs /dev/sda4 rw\n";
        std::fs::write(root.join("proc/self/mountinfo"), mounts).unwrap();
        let machine = Machine::new(root);
        let source = |dir| Mount::of(&machine, Path::new(dir)).unwrap().source;
        assert_eq!(source("/data/store"), "/dev/sda3");
        assert_eq!(source("/database"), "/dev/sda4");
        assert_eq!(source("/data2"), "/dev/sda1");
    }
}
