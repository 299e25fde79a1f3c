//! Where the files of a run are to be made.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What `--dir` names.
#[derive(Clone, Debug)]
pub(in crate::bench) enum RunTarget {
    /// A directory, by its full path.
    Directory(PathBuf),
    /// A block device whose content may be destroyed.
    Device(PathBuf),
    /// `/dev/null`: requests are scheduled and go nowhere.
    Null,
}

impl RunTarget {
    /// What `dir` is; a block device only where its content may be destroyed.
    pub(in crate::bench) fn of(dir: &Path, overwrite_device: bool) -> Result<Self, Failure> {
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
                "there is no directory `{shown}`; create it, or name another with --dir"
            )),
            _ => Failure::Input(format!(
                "cannot look up `{shown}`: {error}; name a directory with --dir that this user may \
                 enter"
            )),
        })?;
        if kind.is_dir() {
            Ok(Self::Directory(path))
        } else if kind.is_block_device() && overwrite_device {
            Ok(Self::Device(path))
        } else if kind.is_block_device() {
            Err(Failure::Input(format!(
                "`{shown}` is a block device, and the run would overwrite what is on it; name a \
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
            Self::Directory(path) | Self::Device(path) => path,
            Self::Null => Path::new("/dev/null"),
        }
    }
}
