//! Why a disk cannot be served, in words that say what to do.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The input is at fault.
pub(crate) fn refuse(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// Why the mount failed, and what helps.
pub(crate) fn explain_mount(error: &io::Error, mountpoint: &Path) -> io::Error {
    let advice = if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse: load the kernel module with `modprobe fuse`, or start the \
         container with `--device /dev/fuse --cap-add SYS_ADMIN`"
    } else if rustix::process::geteuid().is_root() {
        "if this is a container, start it with `--device /dev/fuse --cap-add SYS_ADMIN`"
    } else {
        "mounting as a user needs the program fusermount3 (package fuse3) and read and write \
         access to /dev/fuse; or run this as root"
    };
    // what the helper program says has an end of line
    let cause = error.to_string();
    let text = format!("cannot mount on {}: {}; {advice}", mountpoint.display(), cause.trim_end());
    io::Error::new(error.kind(), text)
}

/// Whether something can be mounted on `mountpoint`.
pub(crate) fn check_mountpoint(mountpoint: &Path) -> io::Result<()> {
    let name = mountpoint.display();
    let mut entries = mountpoint.read_dir().map_err(|error| {
        refuse(format!("mountpoint {name}: {error}; create an empty directory there"))
    })?;
    if entries.next().is_some() {
        return Err(refuse(format!("mountpoint {name}: not empty; name an empty directory")));
    }
    Ok(())
}
