//! One measurement at a time: two on a place would each measure the other, and two that keep their
//! loads in one file would lose them.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Keeps others off `place` and `save` while it is there; the system lets go of it when the program
/// ends, however it does.
pub(super) fn of(place: &Path, save: &Path) -> Result<[UnixListener; 2], Failure> {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = save.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = whole(dir.unwrap_or_else(|| Path::new(".")));
    let save_whole = dir.join(save.file_name().unwrap_or_default());
    Ok([
        lock(&whole(place), || {
            format!(
                "another `forebay explore` measures `{}`, and they would disturb each other; wait \
                 until it has ended",
                place.display()
            )
        })?,
        lock(&save_whole, || {
            format!(
                "another `forebay explore` saves its loads next to `{}`; wait until it has ended, \
                 or name another file with --save",
                save.display()
            )
        })?,
    ])
}

/// A name that only one program has at a time; `taken` says who has it.
fn lock(path: &PathBuf, taken: impl Fn() -> String) -> Result<UnixListener, Failure> {
    // a path may be longer than a name
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let address = SocketAddr::from_abstract_name(format!("forebay-explore-{:x}", hasher.finish()));
    address.and_then(|address| UnixListener::bind_addr(&address)).map_err(|error| {
        if error.kind() == ErrorKind::AddrInUse {
            Failure::Input(taken())
        } else {
            Failure::Run(format!("cannot lock `{}`: {error}", path.display()))
        }
    })
}
