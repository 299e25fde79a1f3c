//! Where the files of a run are to be made.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// One of equal parts of a device, the rest of which other processes use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) struct DevicePart {
    /// From 0.
    pub(super) index: u64,
    /// Of this many.
    pub(super) count: u64,
}

impl DevicePart {
    /// The most parts.
    const COUNT_MAX: u64 = 64;

    /// Reads `N/M`, from `1/M` to `M/M`.
    pub(in crate::bench) fn parse(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(n, m)| Some((n.parse().ok()?, m.parse().ok()?)));
        match numbers {
            Some((n, count)) if (1..=count).contains(&n) && count <= Self::COUNT_MAX => {
                Ok(Self { index: n - 1, count })
            }
            _ => Err(format!("expected a part such as 1/3, of at most {}", Self::COUNT_MAX)),
        }
    }
}

/// What `--dir` names.
#[derive(Clone, Debug)]
pub(in crate::bench) enum RunTarget {
    /// A directory, by its full path.
    Directory(PathBuf),
    /// A block device whose content may be destroyed; one part of it where others use the rest.
    Device(PathBuf, Option<DevicePart>),
    /// `/dev/null`: requests are scheduled and go nowhere.
    Null,
}

impl RunTarget {
    /// What `dir` is; a block device only where its content may be destroyed.
    pub(in crate::bench) fn of(
        dir: &Path,
        overwrite_device: bool,
        part: Option<DevicePart>,
    ) -> Result<Self, Failure> {
        if dir == Path::new("/dev/null") {
            return Ok(Self::Null);
        }
        let shown = dir.display();
        let found = fs::canonicalize(dir).and_then(|path| {
            let kind = fs::metadata(&path)?.file_type();
            Ok((path, kind))
        });
        let (path, kind) = found.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::Input(format!(
                "the directory `{shown}` does not exist; create it, or name another with --dir"
            )),
            _ => Failure::Input(format!(
                "cannot look up `{shown}`: {error}; name a directory with --dir that this user may \
                 enter"
            )),
        })?;
        if part.is_some() && !kind.is_block_device() {
            return Err(Failure::Input(format!(
                "`{shown}` is not a block device, and --share-device divides one; name a device \
                 with --dir, or leave out the option: in a directory each run has its own files"
            )));
        }
        if kind.is_dir() {
            Ok(Self::Directory(path))
        } else if kind.is_block_device() && overwrite_device {
            Ok(Self::Device(path, part))
        } else if kind.is_block_device() {
            Err(Failure::Input(format!(
                "`{shown}` is a block device, and the run would overwrite its data; name a \
                 directory with --dir, or add --overwrite-device if the data may be destroyed"
            )))
        } else {
            Err(Failure::Input(format!(
                "`{shown}` is not a directory; name one with --dir, in which a private directory \
                 for the run is made"
            )))
        }
    }

    /// Its path.
    pub(in crate::bench) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Device(path, _) => path,
            Self::Null => Path::new("/dev/null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_count_from_one() {
        assert_eq!(DevicePart::parse("1/3"), Ok(DevicePart { index: 0, count: 3 }));
        assert_eq!(DevicePart::parse("64/64"), Ok(DevicePart { index: 63, count: 64 }));
        for wrong in ["", "1", "0/3", "4/3", "1/65", "a/b", "-1/3"] {
            assert!(DevicePart::parse(wrong).unwrap_err().contains("1/3"), "{wrong}");
        }
    }
}
