//! Writes through the page cache, with write-back scheduled in a class.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};

use super::dirty_file::DirtyFile;
use super::part;
use super::sync::{Metadata, sync, sync_with, wait};
use super::write_back_path::WriteBackPath;
use crate::page_cache::file_len;
use crate::permit::holds_permit_now;
use crate::{Class, Scheduler};

/// In files longer than this many bytes, [`BufferedWriter::sync_with`] does not look for bytes that
/// other writers have made dirty.
const LOOKED_AT_MAX: u64 = 64 << 20;

/// Writes to a file through the page cache, and schedules write-back of its dirty bytes in a
/// [`Class`].
///
/// A write ends when the page cache has its bytes, as usual. When 128 KiB to 1 MiB of contiguous
/// bytes are dirty (as many as cost a quarter of the effective goal), they become a part, which
/// asks for a permit. A thread of the library writes back the part with `sync_file_range`, and
/// holds the permit until the disk has it. If that left its pages dirty, or if the kernel does not
/// show the file's pages (overlays, old kernels), it flushes the file instead (`fdatasync`, with a
/// permit of its own). Several parts are written back at the same time. Dirty bytes that do not
/// make a part stay in memory until half of the bound is dirty, until
/// [`write_back`](Self::write_back) or a flush is called, until the writer is dropped, or until the
/// kernel writes them, 30 s later. [`set_write_back_after`](Self::set_write_back_after) leaves more
/// in memory.
///
/// So the writes reach the disk when it is their class's turn, and not when the kernel finds too
/// many dirty pages. Reads do not wait behind gigabytes of writes. As with the kernel's write-back,
/// the order of parts is undefined, and only a flush makes them durable. A killed process loses no
/// write that has returned.
///
/// # Bounds
/// At most 16 MiB of a file are dirty ([`with_dirty_max`](Self::with_dirty_max)), 64 MiB of a
/// class's files on a disk, and 128 MiB of all files on a disk. Beyond the last bound each class
/// has 1 MiB. A write beyond a bound waits in turn, and its future pends, while everything dirty is
/// written back. A thread that holds a permit does not wait: its writes may exceed the bounds. A
/// bound below two pages acts as one of two pages. The bounds count the written pages. The kernel
/// counts a large page as a whole if a part of it is dirty, so it may report far more dirty bytes
/// after small random writes to a file that was read before.
///
/// # Errors of writeback
/// Bytes that could not be written back stay failed until a writer of the file has written them
/// again and they were written back without an error. Until then every flush of the file fails: by
/// all its writers in the scheduler, including later ones, by
/// [`Write::flush`](std::io::Write::flush), and by [`Class::sync_data`] and [`Class::sync_all`]. It
/// does not matter whether the error was reported before, so no thread that shares a writer takes a
/// failed flush for a successful one. The inner error is a
/// [`WriteBackError`](crate::WriteBackError), which names the first failed range. The next write
/// reports the error too, once.
///
/// The kernel reports errors for a file, not for a range. So all bytes under write-back at that
/// time become failed, and after a failed flush all bytes since the last successful one. Bytes
/// beyond the end of the file at a flush no longer count, so an append-only log can be truncated.
/// If there are more than 1024 failed ranges, neighbours are merged. The last 1024 failed files of
/// a disk that no writer has open are remembered.
///
/// The engine's own flushes get the kernel's errors, once for each open file description. The
/// library writes back parts through a file description of its own.
///
/// If a part got no permit, the next write and the next flush report it, once each.
///
/// # Locks and leases
/// The library opens and closes no descriptor of the file in the program's descriptor table, so the
/// program keeps its `fcntl` record locks. It opens the file in a table of its own, unless that is
/// refused or would break a lease of this descriptor. In that case an error of write-back is
/// reported either to the program's own flushes or to the library's. Parts that still wait for a
/// permit 0.5 s after the writer was dropped are left to the kernel and
/// [counted](crate::PageCacheCounters::left_to_kernel), and the library closes the file. A
/// [`Deleter`](crate::Deleter) that deletes the file cancels them at once. If the system refuses a
/// second table (Linux before 5.9, some containers), waiting parts are left to the kernel when the
/// writer is dropped, and the drop waits for parts that are being written.
///
/// # Which files
/// It works with files and block devices that are open for writing. The writer takes the
/// descriptor, or borrows it from an engine that keeps it (`&File`). Writes of the engine that
/// bypass the writer are unscheduled until the writer flushes. With `O_APPEND` only
/// [`Write`](std::io::Write) works. If a write reaches the disk before it returns (`O_DIRECT`,
/// `O_SYNC`, a FUSE file system without a write cache), it waits for a permit first.
///
/// A thread that holds a permit may use a writer without a deadlock. In a waker that a thread of
/// the library runs, a flush, or a write that has to wait, fails with
/// [`Deadlock`](io::ErrorKind::Deadlock), because it would wait for that thread. In a forked child
/// all calls fail with [`Forked`](crate::Forked).
///
/// ```
/// use std::io::Write;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("table");
/// let scheduler = forebay::Scheduler::builder().build()?;
/// let compaction = scheduler.add_class("compaction", 100)?;
///
/// let mut table = compaction.buffered_writer(std::fs::File::create(&path)?)?;
/// table.write_all(&[7; 10_000])?;
/// table.sync_all()?;
/// # assert_eq!(std::fs::read(&path)?, [7; 10_000]);
/// # Ok(())
/// # }
/// ```
pub struct BufferedWriter<F: AsFd> {
    /// It is dropped before the file, whose descriptor it uses.
    dirt: HandedOver,
    pub(super) file: F,
    /// The offset of the next bytes of [`Write`](std::io::Write). With `O_APPEND` they go to the
    /// end of the file, and this follows them.
    pub(super) position: u64,
    pub(super) appends: bool,
}

/// The file, whose dirty bytes are handed over when the writer is dropped.
struct HandedOver(Arc<DirtyFile>);

impl Drop for HandedOver {
    fn drop(&mut self) {
        if self.0.class.disk.process.is_here() {
            if self.0.dirt.write_back_after() == 0 {
                self.hand_over();
            } else {
                self.0.count_left(self.0.dirt.pending());
            }
            self.0.leave_writer();
        }
    }
}

impl HandedOver {
    fn hand_over(&self) {
        self.0.hand_over_all();
        part::ask(&self.0, false);
    }
}

impl Class {
    /// Makes a writer to an open file, whose write-back is scheduled in this class, on the disk of
    /// the file.
    ///
    /// # Errors
    /// `InvalidInput` if `file` is neither a file nor a block device, or is open for reading only.
    /// Those of `open(2)` and [`Scheduler::disk_of_file`]. An error if no thread can be started.
    pub fn buffered_writer<F: AsFd>(&self, file: F) -> io::Result<BufferedWriter<F>> {
        self.disk.process.check().map_err(io::Error::other)?;
        let flags = checked(&file)?;
        // The position of the descriptor is read, and never moved.
        let position = rustix::fs::tell(&file)?;
        let disk = Scheduler::of(&self.scheduler).disk_of_file(file.as_fd())?;
        let class = Self { disk: Arc::clone(&disk.record), holder: false, ..self.clone() };
        let dirty = Arc::new(DirtyFile::new(&file, class, WriteBackPath::of(flags))?);
        let dirt = HandedOver(dirty);
        let appends = flags.contains(OFlags::APPEND);
        Ok(BufferedWriter { file, dirt, position, appends })
    }
}

/// The flags of a file that can be written.
fn checked(file: impl AsFd) -> io::Result<OFlags> {
    let file = file.as_fd();
    let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::BlockDevice) {
        return refuse("a buffered writer is for files and block devices");
    }
    let flags = rustix::fs::fcntl_getfl(file)?;
    if flags & OFlags::RWMODE == OFlags::RDONLY {
        return refuse(
            "a file that is open for reading only cannot be written: open it for writing",
        );
    }
    Ok(flags)
}

impl<F: AsFd> BufferedWriter<F> {
    /// Sets how many bytes of the file may be dirty, 16 MiB by default. Parts are at most half as
    /// long.
    #[must_use]
    pub fn with_dirty_max(self, bytes: u64) -> Self {
        self.dirty_file().dirt.set_dirty_max(bytes);
        self
    }

    /// Writes bytes from the beginning of `buffer` at `offset`, and returns how many. It writes up
    /// to the end of a part, so mostly less than 1 MiB. Waits while too many bytes are dirty.
    ///
    /// # Errors
    /// Those of `pwrite(2)`, and errors of earlier writes. `InvalidInput` with `O_APPEND`.
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.check_offsets()?;
        self.write_some(buffer, Some(offset))
    }

    /// [`Self::write_at`] until all of `buffer` is written.
    ///
    /// # Errors
    /// As for [`Self::write_at`].
    pub fn write_all_at(&self, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let written = self.write_at(buffer, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            buffer = &buffer[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// [`Self::write_at`] for a task, which pends while too many bytes are dirty. The poll that
    /// finds room does the write itself. It is as fast as memory, unless a page is written in part
    /// and has to be read from the disk first.
    ///
    /// Cancel safety: if it is dropped before it is ready, it has written nothing.
    ///
    /// # Errors
    /// As for [`Self::write_at`].
    pub async fn write_at_async(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.check_offsets()?;
        self.here(self.write_in_task(buffer, Some(offset))).await
    }

    /// Starts write-back of all dirty bytes, scheduled in the class, and does not wait for its end.
    ///
    /// # Errors
    /// In a forked child.
    pub fn write_back(&self) -> io::Result<()> {
        self.check()?;
        self.dirt.hand_over();
        Ok(())
    }

    /// Makes the writes durable, with the metadata that is needed to read them back (`fdatasync`).
    /// First it writes back the dirty bytes in parts, scheduled in the class. This includes bytes
    /// that other writers have made dirty, if the kernel shows them. Then it flushes with a permit.
    ///
    /// # Errors
    /// [`WriteBackError`](crate::WriteBackError) while earlier writes are failed, with the kind of
    /// the system's error. Those of `fdatasync(2)` and [`Class::admit`].
    pub fn sync_data(&self) -> io::Result<()> {
        self.sync_here(Metadata::Needed)
    }

    /// [`Self::sync_data`] with all attributes (`fsync`).
    ///
    /// # Errors
    /// As for [`Self::sync_data`].
    pub fn sync_all(&self) -> io::Result<()> {
        self.sync_here(Metadata::All)
    }

    /// [`Self::sync_data`] for an engine that flushes itself: `flush` is called on this thread with
    /// a permit, after the dirty bytes are on the disk. In a file of more than 64 MiB, bytes that
    /// other writers have made dirty are left to `flush`, because finding them takes too long.
    ///
    /// # Errors
    /// Those of `flush` and of [`Self::sync_data`]. In the latter case `flush` may not have been
    /// called.
    pub fn sync_with(&self, flush: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.check()?;
        let looks = file_len(&self.file)? <= LOOKED_AT_MAX;
        sync_with(self.file.as_fd(), self.dirty_file(), looks, flush)
    }

    /// Sets the class that asks for permits, which includes the parts that already wait. An engine
    /// calls it when work of a class with more shares waits for a lock that this file's writer
    /// holds. Dirty bytes still count for the first class.
    ///
    /// # Errors
    /// `class` belongs to another scheduler; in a forked child.
    pub fn set_class(&self, class: &Class) -> io::Result<()> {
        self.check()?;
        let file = self.dirty_file();
        let class = class.on(&file.class.disk()).map_err(io::Error::other)?;
        file.set_asking(Class { holder: false, ..class });
        Ok(())
    }

    /// Sets how many bytes may be dirty before write-back begins: 0 by default, and at most half of
    /// the dirty limit. Up to that number, dropping the writer does not start write-back either.
    /// Bytes beyond it are written back from the beginning of the file. Flushes,
    /// [`Self::write_back`] and writes that wait for room still write back everything.
    ///
    /// This is for files that are often deleted before they are flushed, such as the log of an
    /// engine that does not flush each commit. Bytes that were not written back before the delete
    /// cost no disk time. The kernel writes back the bytes that stay dirty, 30 s later by default,
    /// and without a permit.
    pub fn set_write_back_after(&self, bytes: u64) {
        self.dirty_file().dirt.set_write_back_after(bytes);
    }

    /// [`Self::sync_data`] for a task.
    ///
    /// Cancel safety: the dirty bytes are still written back. Bytes that fail stay failed, and
    /// every later flush reports them.
    ///
    /// # Errors
    /// As for [`Self::sync_data`].
    pub async fn sync_data_async(&self) -> io::Result<()> {
        self.here(sync(self.file.as_fd(), self.dirty_file(), Metadata::Needed, false)).await
    }

    /// [`Self::sync_all`] for a task.
    ///
    /// Cancel safety: as for [`Self::sync_data_async`].
    ///
    /// # Errors
    /// As for [`Self::sync_data`].
    pub async fn sync_all_async(&self) -> io::Result<()> {
        self.here(sync(self.file.as_fd(), self.dirty_file(), Metadata::All, false)).await
    }

    /// The number of bytes that this writer wrote and that are not on the disk yet. 0 in a forked
    /// child.
    pub fn dirty(&self) -> u64 {
        self.dirty_file().dirt.dirty()
    }

    /// The descriptor. The writer has a position of its own and does not move that of the
    /// descriptor. Only writes with `O_APPEND` move it, as always.
    pub const fn get_ref(&self) -> &F {
        &self.file
    }

    /// Returns the descriptor, and starts write-back of the dirty bytes, except those that
    /// [`Self::set_write_back_after`] leaves in memory. The position of the descriptor was not
    /// moved. An engine that continues where the writer ended calls
    /// [`stream_position`](std::io::Seek::stream_position) first.
    ///
    /// # Errors
    /// In a forked child.
    pub fn into_inner(self) -> io::Result<F> {
        self.check()?;
        Ok(self.file)
    }

    pub(super) fn dirty_file(&self) -> &Arc<DirtyFile> {
        &self.dirt.0
    }

    pub(super) fn check(&self) -> io::Result<()> {
        self.dirty_file().class.disk.process.check().map_err(io::Error::other)
    }

    /// Waits for `future`, and fails if it is polled in a forked child.
    async fn here<R>(&self, future: impl Future<Output = io::Result<R>>) -> io::Result<R> {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.check()?;
            future.as_mut().poll(context)
        })
        .await
    }

    fn check_offsets(&self) -> io::Result<()> {
        if !self.appends {
            return Ok(());
        }
        let why =
            "a file that is open with O_APPEND ignores offsets: open it without, or use Write";
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    fn sync_here(&self, metadata: Metadata) -> io::Result<()> {
        self.check()?;
        wait(sync(self.file.as_fd(), self.dirty_file(), metadata, holds_permit_now()))
    }
}

impl<F: AsFd> fmt::Debug for BufferedWriter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedWriter").field("dirty", &self.dirty()).finish_non_exhaustive()
    }
}
