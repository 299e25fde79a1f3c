//! An open file description of our own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

/// The same file, opened anew: it is told of errors of writeback by itself, so that what is told
/// here is kept from nobody. (A duplicate would share that with the original.) Also of a file
/// that has no name any more.
///
/// # Errors
/// Those of `open(2)`; where there is no `/proc`, `NotFound`.
pub(crate) fn reopened(file: impl AsFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let open = |flags| rustix::fs::open(&*path, flags | OFlags::CLOEXEC, Mode::empty());
    // What may be written may be asked for what of it is in memory, whoever owns it.
    let opened = open(OFlags::WRONLY).or_else(|_| open(OFlags::RDONLY));
    opened.map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("cannot open a file anew to write it back: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_without_a_name_is_opened_anew() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"kept").unwrap();
        let own = reopened(&file).unwrap();
        assert_eq!(rustix::fs::fstat(&own).unwrap().st_size, 4);
        assert_eq!(rustix::fs::tell(&own).unwrap(), 0, "it has a position of its own");
    }
}
