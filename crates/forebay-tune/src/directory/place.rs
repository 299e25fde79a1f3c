//! Which places are measured, and which are refused.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use forebay_block::{Keeper, Machine, Mount, Stack};

use super::sysfs::{BlockDevice, block_device};
use crate::error::Error;

/// Directories on one disk, or a block device.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) paths: Vec<PathBuf>,
    pub(super) device: String,
    pub(super) is_device: bool,
    pub(super) block: BlockDevice,
    pub(super) mount: Option<Mount>,
}

impl Place {
    /// The disks that `paths` lie on, each once, with those of the paths that are on it. A block
    /// device is a place only where `destroy` says that its data may be destroyed.
    ///
    /// # Errors
    /// A path does not exist, is no directory, or must not be measured.
    pub fn find(paths: &[PathBuf], destroy: bool) -> Result<Vec<Self>, Error> {
        let mut places: Vec<Self> = Vec::new();
        for path in paths {
            let place = Self::of(path, destroy, Path::new("/"))?;
            match places.iter_mut().find(|known| known.device == place.device) {
                Some(known) => known.paths.extend(place.paths),
                None => places.push(place),
            }
        }
        Ok(places)
    }

    fn of(path: &Path, destroy: bool, root: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let full = fs::canonicalize(path).map_err(|error| {
            Error::Refused(format!("cannot find `{shown}`: {error}; name a directory that exists"))
        })?;
        let kind =
            fs::metadata(&full).map_err(Error::io(format!("look at `{shown}`")))?.file_type();
        if kind.is_block_device() && !destroy {
            return Err(Error::Refused(format!(
                "`{shown}` is a block device, and measuring it would destroy what is on it; name a \
                 directory, or add --destroy-device-data if nothing on it is needed"
            )));
        }
        if !kind.is_dir() && !kind.is_block_device() {
            return Err(Error::Refused(format!("`{shown}` is not a directory; name one")));
        }
        let is_device = kind.is_block_device();
        let stack = Stack::of_path(&Machine::new(root), &full)
            .map_err(Error::io(format!("look up the device of `{shown}`")))?;
        if let Some(mount) = &stack.mount {
            refuse(path, mount)?;
        }
        let device = stack.block_device().unwrap_or(stack.number).to_string();
        let block = block_device(root, &device);
        Ok(Self { paths: vec![full], device, is_device, block, mount: stack.mount })
    }

    /// The directories, or the block device.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Keeps others from measuring the same disks for as long as the result lives. It is known
    /// to the kernel alone, so nothing is left of it in any case.
    ///
    /// # Errors
    /// Somebody else does.
    pub fn lock(&self) -> Result<Vec<UnixListener>, Error> {
        let names = std::iter::once(&self.device).chain(&self.block.disks);
        let mut listeners = Vec::new();
        for name in names {
            let address = SocketAddr::from_abstract_name(format!("forebay-tune-{name}"));
            let listener = address.and_then(|address| UnixListener::bind_addr(&address));
            match listener {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    return Err(Error::Refused(format!(
                        "another `forebay tune` measures the disk {name}, and both would be wrong; \
                         wait until it has ended"
                    )));
                }
                Err(source) => {
                    let what = format!("lock the disk {name}");
                    return Err(Error::Io { what, source });
                }
            }
        }
        Ok(listeners)
    }
}

fn refuse(path: &Path, mount: &Mount) -> Result<(), Error> {
    let why = match Keeper::of(&mount.kind) {
        Keeper::Memory => "in memory: there is no disk to measure; name a directory on one",
        Keeper::Network => {
            "on another machine: not a disk would be measured but a server; run this there"
        }
        // What can be said of a program that answers is a verdict.
        Keeper::Program | Keeper::Disk => return Ok(()),
    };
    Err(Error::Refused(format!("`{}` is on {}, {why}", path.display(), mount.kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let dir = root.join("data");
        fs::create_dir_all(&dir).unwrap();
        // the same directory as the recorded machine has it
        fs::create_dir_all(root.join(dir.strip_prefix("/").unwrap())).unwrap();
        let mountinfo = format!("21 1 0:99 / / rw - {kind} source rw\n");
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), mountinfo).unwrap();
        let place = Place::of(&dir, false, &root);
        place.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        assert!(refusal("tmpfs").contains("in memory"));
        assert!(refusal("nfs4").contains("on another machine"));
        assert_eq!(refusal("xfs"), "");
        assert_eq!(refusal("fuse.bindfs"), "");
    }

    #[test]
    fn what_is_no_directory_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paths = [file.path().to_owned()];
        let error = Place::find(&paths, true).unwrap_err().to_string();
        assert!(error.contains("is not a directory"), "{error}");
        let missing = [file.path().join("missing")];
        assert!(Place::find(&missing, true).is_err());
    }

    #[test]
    fn directories_on_one_disk_are_one_place() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let paths = [dir.path().to_owned(), dir.path().parent().unwrap().to_owned()];
        let places = Place::find(&paths, false).unwrap();
        assert_eq!(places.len(), 1);
        assert_eq!(places[0].paths().len(), 2);
    }

    #[test]
    fn a_disk_is_locked_once() {
        let place = Place {
            paths: Vec::new(),
            device: format!("test-{}", std::process::id()),
            is_device: false,
            block: BlockDevice::default(),
            mount: None,
        };
        let held = place.lock().unwrap();
        let error = place.lock().unwrap_err().to_string();
        assert!(error.contains("another `forebay tune`"), "{error}");
        drop(held);
        place.lock().unwrap();
    }
}
