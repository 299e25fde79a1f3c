//! Files whose requests go through the scheduler.

mod growth;
mod outcome;
mod request;
mod send;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

pub use self::outcome::BufResult;
pub use self::request::Request;
pub use crate::io_thread::Timing;

use self::growth::Growth;
use self::outcome::Outcome;
use self::send::{Target, refused, send};
use crate::engine::Operation;
use crate::io_thread::submitter;
use crate::validation::RequestError;
use crate::{AlignedBuf, Class, DirectFile, Disk, FileOptions, IoBuf, IoBufMut, Scheduler};

/// A file on a disk of the scheduler. Cheap to clone; usable from any thread.
///
/// Each request is made in a [`Class`] and executed by an I/O thread of the file's disk, when it is
/// the class's turn and the disk has room. The [disk](Class::on) of the class does not matter. A
/// call sends a request and returns a handle, on which a thread ([`Request::wait`]) or a task
/// (`.await`) waits. Requests run concurrently and end in any order. A request that depends on
/// another one has to wait for its end.
///
/// Buffers are passed by value and returned with the result: an [`AlignedBuf`], a `Vec<u8>`, or any
/// other [`IoBuf`]. For a [direct](DirectFile::is_direct) file, buffers, offsets and lengths must
/// be aligned. Writes must be aligned to the real sectors of the disk if the scheduler knows them.
/// Otherwise a request ends at once with a [`RequestError`].
///
/// A file is deleted, in a class like all else, by [`Disk::submit`].
///
/// Large requests are split and have one result. The result of a read or a write is the length of
/// its beginning that succeeded without a gap. It is shorter than requested only at the end of the
/// file, or if a part failed or was cancelled. To find out, repeat the request for the rest.
///
/// ```
/// use forebay::{AlignedBuf, BufResult, FileOptions, Scheduler};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// let scheduler = Scheduler::builder().build()?;
/// let queries = scheduler.add_class("queries", 200)?;
/// let options = FileOptions::new().read(true).write(true).create(true);
/// let file = scheduler.open(&path, &options)?;
///
/// let mut buffer = AlignedBuf::new(4096, 4096)?;
/// buffer.fill(7);
/// let BufResult(written, buffer) = file.write_at(&queries, buffer, 0).wait();
/// assert_eq!(written?, 4096);
/// let (read, buffer) = file.read_at(&queries, buffer, 0).wait().into_result()?;
/// assert_eq!((read, buffer[0]), (4096, 7));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct File {
    shared: Arc<Shared>,
}

struct Shared {
    file: DirectFile,
    /// Keeps the I/O threads, which end with the last handle of the disk.
    disk: Disk,
    /// Set for a growing file.
    growth: Option<Growth>,
}

impl Disk {
    /// Opens the file at `path` as a file of this disk. [`Scheduler::open`] finds the disk itself.
    ///
    /// # Errors
    /// Those of [`FileOptions::open`]; also if the I/O threads cannot be started.
    pub fn open(&self, path: impl AsRef<Path>, options: &FileOptions) -> io::Result<File> {
        File::on(options.open(path)?, self.clone(), options.growth_hint())
    }

    /// Takes over an open descriptor, as a file of this disk. [`Scheduler::file_from_fd`] finds the
    /// disk itself.
    ///
    /// # Errors
    /// Those of [`DirectFile::from_fd`]; also if the I/O threads cannot be started.
    pub fn file_from_fd(&self, fd: impl Into<OwnedFd>) -> io::Result<File> {
        File::on(DirectFile::from_fd(fd)?, self.clone(), None)
    }
}

impl Scheduler {
    /// Opens the file at `path`, as a file of the disk that holds it: see [`Scheduler::disk_of`].
    ///
    /// # Errors
    /// Those of [`FileOptions::open`] and [`Scheduler::disk_of`]; also if the I/O threads cannot be
    /// started.
    pub fn open(&self, path: impl AsRef<Path>, options: &FileOptions) -> io::Result<File> {
        let file = options.open(path)?;
        let disk = self.disk_of_file(&file)?;
        File::on(file, disk, options.growth_hint())
    }

    /// Takes over an open descriptor, for a program that opens its files itself. Its disk is found
    /// as for [`Scheduler::open`]. Its requests bypass the page cache if it was opened with
    /// `O_DIRECT`, see [`DirectFile::is_direct`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// # std::fs::write(&path, "forebay")?;
    /// let scheduler = forebay::Scheduler::builder().build()?;
    /// let file = scheduler.file_from_fd(std::fs::File::open(&path)?)?;
    /// assert!(!file.direct_file().is_direct());
    /// let page = Vec::with_capacity(4096);
    /// let (read, page) = file.read_at(&scheduler.default_class(), page, 0).wait().into_result()?;
    /// assert_eq!((read, &*page), (7, &b"forebay"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`DirectFile::from_fd`], such as `InvalidInput` for a descriptor with `O_APPEND`,
    /// and of [`Scheduler::disk_of`]; also if the I/O threads cannot be started.
    pub fn file_from_fd(&self, fd: impl Into<OwnedFd>) -> io::Result<File> {
        let file = DirectFile::from_fd(fd)?;
        let disk = self.disk_of_file(&file)?;
        File::on(file, disk, None)
    }
}

impl File {
    fn on(file: DirectFile, disk: Disk, growth_hint: Option<u64>) -> io::Result<Self> {
        disk.inbox(submitter())?;
        file.set_sector(disk.record.sector());
        let growth = growth_hint.map(|hint| Growth::of(&file, hint)).transpose()?;
        Ok(Self { shared: Arc::new(Shared { file, disk, growth }) })
    }

    fn send<T: Outcome>(
        &self,
        class: &Class,
        operation: impl FnOnce(DirectFile) -> Operation,
    ) -> Request<T> {
        let target = Target { disk: self.disk(), growth: self.shared.growth.as_ref() };
        send(target, class, operation(self.direct_file().clone()))
    }

    /// Reads into `buffer` from byte `offset` on.
    ///
    /// The result is the number of bytes read, which is less than the buffer holds at the end of
    /// the file. Errors are those of `pread(2)`, and [`RequestError`].
    ///
    /// Cancel safety: dropping the handle cancels the read, and the buffer is lost.
    pub fn read_at<B: IoBufMut>(
        &self,
        class: &Class,
        buffer: B,
        offset: u64,
    ) -> Request<BufResult<B>> {
        self.send(class, |file| Operation::read(file, offset, buffer))
    }

    /// Writes `buffer` to the file from byte `offset` on.
    ///
    /// The result is the number of bytes written. Errors are those of `pwrite(2)`, and
    /// [`RequestError`].
    ///
    /// Cancel safety: dropping the handle cancels the parts of the write that have not happened,
    /// and the buffer is lost. A large write may have happened in part: see [`Request::detach`].
    pub fn write_at<B: IoBuf>(
        &self,
        class: &Class,
        buffer: B,
        offset: u64,
    ) -> Request<BufResult<B>> {
        self.send(class, |file| Operation::write(file, offset, buffer))
    }

    /// [`File::read_at`] into several buffers, one after the other: 1 to
    /// [`SEGMENTS_MAX`](crate::engine::SEGMENTS_MAX) of them.
    ///
    /// Cancel safety: as for [`File::read_at`].
    pub fn read_vectored_at(
        &self,
        class: &Class,
        buffers: Vec<AlignedBuf>,
        offset: u64,
    ) -> Request<BufResult<Vec<AlignedBuf>>> {
        self.send(class, |file| Operation::ReadVectored { file, offset, buffers })
    }

    /// [`File::write_at`] of several buffers, one after the other: 1 to
    /// [`SEGMENTS_MAX`](crate::engine::SEGMENTS_MAX) of them.
    ///
    /// Cancel safety: as for [`File::write_at`].
    pub fn write_vectored_at(
        &self,
        class: &Class,
        buffers: Vec<AlignedBuf>,
        offset: u64,
    ) -> Request<BufResult<Vec<AlignedBuf>>> {
        self.send(class, |file| Operation::WriteVectored { file, offset, buffers })
    }

    /// Makes completed writes durable, with the metadata that is needed to read them back
    /// (`fdatasync`).
    ///
    /// Cancel safety: dropping the handle cancels the flush if it still waits. The writes are not
    /// undone.
    pub fn sync_data(&self, class: &Class) -> Request<io::Result<()>> {
        self.send(class, |file| Operation::SyncData { file })
    }

    /// Makes completed writes and all attributes durable (`fsync`).
    ///
    /// Cancel safety: as for [`File::sync_data`].
    pub fn sync_all(&self, class: &Class) -> Request<io::Result<()>> {
        self.send(class, |file| Operation::SyncAll { file })
    }

    /// Reserves space for `len` bytes from byte `offset` on. The file grows if it ends before the
    /// end of the range. It is scheduled as a small write.
    ///
    /// Cancel safety: dropping the handle cancels it if it still waits; otherwise it happens.
    pub fn allocate(&self, class: &Class, offset: u64, len: u64) -> Request<io::Result<()>> {
        self.send(class, |file| Operation::Allocate { file, offset, len })
    }

    /// Frees the space of `len` bytes from byte `offset` on, which then read as zeros. The file
    /// keeps its length. It is scheduled as a discard, in parts if it is large.
    ///
    /// Cancel safety: dropping the handle cancels the parts that still wait; the others happen.
    pub fn punch_hole(&self, class: &Class, offset: u64, len: u64) -> Request<io::Result<()>> {
        self.send(class, |file| Operation::PunchHole { file, offset, len })
    }

    /// Sets the length of the file to `len` bytes. A longer file ends with zeros. It is scheduled
    /// as a small write.
    ///
    /// Cancel safety: as for [`File::allocate`].
    pub fn truncate(&self, class: &Class, len: u64) -> Request<io::Result<()>> {
        self.send(class, |file| Operation::Truncate { file, len })
    }

    /// Shortens a [growing](FileOptions::growing) file to its length when it was opened, or to the
    /// end of the bytes written since, whichever is more. Call it after all writes have ended,
    /// including failed ones. It is scheduled as a small write. The file can grow again.
    ///
    /// Errors are those of `ftruncate(2)`, and [`RequestError::NotGrowing`].
    ///
    /// Cancel safety: as for [`File::allocate`].
    pub fn truncate_to_written(&self, class: &Class) -> Request<io::Result<()>> {
        let not_growing = || Err(RequestError::NotGrowing.into());
        let growth = self.shared.growth.as_ref();
        match growth.map_or_else(not_growing, |growth| growth.used(self.direct_file())) {
            Ok(len) => self.truncate(class, len),
            Err(error) => refused(error, Operation::SyncAll { file: self.direct_file().clone() }),
        }
    }

    /// The descriptor, with its alignment.
    pub fn direct_file(&self) -> &DirectFile {
        &self.shared.file
    }

    /// The disk of the file.
    pub fn disk(&self) -> &Disk {
        &self.shared.disk
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("file", self.direct_file())
            .field("disk", &self.disk().name())
            .finish_non_exhaustive()
    }
}
