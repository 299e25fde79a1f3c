//! Options for opening files.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{DirectFile, IGNORES_OFFSETS, invalid};

/// Options for opening a [`DirectFile`].
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// let file = forebay::FileOptions::new().read(true).write(true).create(true).open(&path)?;
/// println!("direct: {}, offsets in multiples of {}", file.is_direct(), file.offset_alignment());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileOptions {
    read: bool,
    write: bool,
    create: bool,
    create_new: bool,
    dsync: bool,
    direct: bool,
    custom_flags: i32,
    mode: u32,
    growing: Option<u64>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl FileOptions {
    /// Options for a direct file. Neither reading nor writing is set.
    pub const fn new() -> Self {
        Self {
            read: false,
            write: false,
            create: false,
            create_new: false,
            dsync: false,
            direct: true,
            custom_flags: 0,
            mode: 0o666,
            growing: None,
        }
    }

    /// Opens for reading.
    #[must_use]
    pub const fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }

    /// Opens for writing.
    #[must_use]
    pub const fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Creates the file if it does not exist.
    #[must_use]
    pub const fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Creates the file, and fails if it exists.
    #[must_use]
    pub const fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Completes a write only when its data is durable (`O_DSYNC`).
    #[must_use]
    pub const fn dsync(mut self, dsync: bool) -> Self {
        self.dsync = dsync;
        self
    }

    /// Whether to bypass the page cache (`O_DIRECT`); true unless set.
    #[must_use]
    pub const fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Sets flags for `open(2)` without a method here, such as `O_NOATIME`, `O_NOFOLLOW`,
    /// `O_TMPFILE` or `O_TRUNC`. They replace flags that were set before. Bits of the access mode
    /// are ignored.
    #[must_use]
    pub const fn custom_flags(mut self, flags: i32) -> Self {
        self.custom_flags = flags;
        self
    }

    /// Sets the permissions of a created file, which the process's `umask` reduces; `0o666` unless
    /// set.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Increases the file's length ahead of its writes, so that few writes have to do so. A file
    /// system does a write that lengthens the file alone, not concurrently with others. The length
    /// becomes `hint` bytes at first, or more if the write needs it, and is doubled each time
    /// after. It grows by less where the system allows no such length. So the file is longer than
    /// the written bytes, and ends with zeros, also after it is dropped.
    /// [`File::truncate_to_written`](crate::File::truncate_to_written) removes them.
    ///
    /// It is only for a [`File`](crate::File) opened through a scheduler or a disk. Nobody else may
    /// lengthen the file, because bytes that others write beyond its end through another descriptor
    /// can be cut off. The call that makes a write makes the necessary `ftruncate(2)`, on the
    /// calling thread. If that fails, the write ends with its error.
    #[must_use]
    pub const fn growing(mut self, hint: u64) -> Self {
        self.growing = Some(hint);
        self
    }

    pub(crate) const fn growth_hint(&self) -> Option<u64> {
        self.growing
    }

    /// Opens the file at `path`.
    ///
    /// If the file system refuses direct I/O, the file is buffered, and [`DirectFile::is_direct`]
    /// returns false.
    ///
    /// # Errors
    ///
    /// Those of `open(2)`. `InvalidInput` if neither read nor write is set, or for the custom flags
    /// `O_APPEND` and `O_PATH`, with which requests would not work, and `O_DIRECT`, which
    /// [`FileOptions::direct`] sets.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<DirectFile> {
        let mode = Mode::from_raw_mode(self.mode);
        let fd = rustix::fs::open(path.as_ref(), self.flags()?, mode)?;
        if self.direct {
            set_direct(&fd)?;
        }
        DirectFile::from_fd(fd)
    }

    /// The flags without `O_DIRECT`. With it, `open(2)` can create a file and then fail, so that
    /// `create_new` could not be tried again.
    fn flags(&self) -> io::Result<OFlags> {
        let mut flags = match (self.read, self.write) {
            (true, true) => OFlags::RDWR,
            (true, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (false, false) => {
                return Err(invalid("a file is opened for reading, writing or both: set one"));
            }
        };
        let custom = OFlags::from_bits_retain(self.custom_flags.cast_unsigned());
        // Checked before the file is created or truncated.
        if custom.contains(OFlags::APPEND) {
            return Err(invalid(IGNORES_OFFSETS));
        }
        if custom.contains(OFlags::DIRECT) {
            return Err(invalid("O_DIRECT is set with FileOptions::direct"));
        }
        if custom.contains(OFlags::PATH) {
            return Err(invalid("a file that is open with O_PATH takes no requests: leave it out"));
        }
        flags |= (custom - OFlags::ACCMODE) | OFlags::CLOEXEC;
        let mut add = |flag, wanted| flags |= if wanted { flag } else { OFlags::empty() };
        add(OFlags::CREATE, self.create || self.create_new);
        add(OFlags::EXCL, self.create_new);
        add(OFlags::DSYNC, self.dsync);
        Ok(flags)
    }
}

/// Sets `O_DIRECT`, or leaves the file buffered if that is refused.
fn set_direct(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    match rustix::fs::fcntl_setfl(fd, flags | OFlags::DIRECT) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn writable() -> FileOptions {
        DirectFile::options().read(true).write(true)
    }

    #[test]
    fn a_file_that_refuses_direct_io_is_opened_buffered() {
        let null = writable().open("/dev/null").unwrap();
        assert!(!null.is_direct());
    }

    #[test]
    fn create_and_create_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(writable().open(&path).unwrap_err().kind(), ErrorKind::NotFound);
        writable().create_new(true).open(&path).unwrap();
        let error = writable().create_new(true).open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        writable().create(true).dsync(true).open(&path).unwrap();
    }

    #[test]
    fn custom_flags_and_mode_are_those_of_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let flags = |flags: OFlags| flags.bits().cast_signed();
        let private = writable().create(true).mode(0o600);
        let file = private.open(&path).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_mode & 0o777, 0o600);
        rustix::fs::ftruncate(&file, 100).unwrap();

        // Neither the access mode nor other requested flags are removed.
        let file = private.clone().custom_flags(flags(OFlags::WRONLY)).open(&path).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 100);
        assert!(rustix::fs::fcntl_getfl(&file).unwrap().contains(OFlags::RDWR));
        let file = writable().custom_flags(flags(OFlags::TRUNC)).open(&path).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 0);

        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        let strict = writable().custom_flags(flags(OFlags::NOFOLLOW));
        let error = strict.open(dir.path().join("link")).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::LOOP));
    }

    #[test]
    fn custom_flags_that_no_request_could_do_with_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for flag in [OFlags::APPEND, OFlags::DIRECT, OFlags::PATH] {
            let options = writable().create(true).custom_flags(flag.bits().cast_signed());
            assert_eq!(options.open(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert!(!path.exists(), "{flag:?}");
        }
    }

    #[test]
    fn opening_for_nothing_is_an_error() {
        let error = DirectFile::options().open("/dev/null").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
