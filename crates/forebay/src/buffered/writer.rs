//! Writing through the page cache, in the turn of a class.

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

/// In a longer file, [`BufferedWriter::sync_with`] does not look for what others have made dirty.
const LOOKED_AT_MAX: u64 = 64 << 20;

/// Writes to a file through the page cache, and has what is dirty written back in the turn of a
/// [`Class`].
///
/// A write is done when the page cache has it, as ever. As soon as 128 KiB to 1 MiB of the file
/// without a gap are dirty (as much as costs a quarter of the effective goal), a permit for a write
/// of that is asked for, and a thread of the library writes this part back and holds the permit
/// until the disk has it: by itself (`sync_file_range`), or, where that left its pages dirty or the
/// file's pages cannot be seen, by flushing the file (`fdatasync`, with a permit of its own: overlays,
/// old kernels). Several parts go at the same time. What makes no part stays in memory until half of
/// the bound is dirty, [`write_back`](Self::write_back) or a flush is asked for, or the writer is
/// dropped; or until the kernel writes it, 30 s later.
/// [`set_write_back_after`](Self::set_write_back_after) leaves more in memory.
///
/// So the disk gets the writes when it is their class's turn, and not when the kernel finds that
/// there are too many; and reads do not wait behind gigabytes of them. The order in which parts get
/// there is open, as it is with the kernel: only a flush promises anything. A killed process loses
/// nothing that a write has returned for.
///
/// # Bounds
/// At most 16 MiB of a file are dirty ([`with_dirty_max`](Self::with_dirty_max)), 64 MiB of a
/// class's files on a disk, and 128 MiB of all on a disk; beyond the last each class has 1 MiB. A
/// write beyond that waits in turn, and its future pends; everything dirty is written back meanwhile.
/// A thread that holds a permit does not wait: what it writes is counted beyond the bounds.
/// A bound below two pages acts as one of two. The bounds count the pages that were written; the kernel
/// counts a large page that is dirty in part as a whole, so it may name far more for small writes
/// here and there into a file that was read before.
///
/// # Errors of writeback
/// Bytes that could not be written back stay failed until a writer of the file has written them again
/// and they were written back without an error. Until then every flush fails: by each writer of the
/// file in the scheduler, also those that are made later, by [`Write::flush`](std::io::Write::flush),
/// and by [`Class::sync_data`] and [`Class::sync_all`]. It does not matter who was told before: of
/// threads that share a writer none takes a failed flush for a good one. The inner error is a
/// [`WriteBackError`](crate::WriteBackError), which names the first failed range. The next write says
/// so too, once.
///
/// The kernel reports errors for a file, not for a range. So all bytes that were on their way to the
/// disk at that time become failed, and after a failed flush all that was written since the last good
/// one. What is beyond the end of the file when it is flushed counts no more: a log that may only be
/// appended to can be truncated. Of more than 1024 ranges near ones become one. A failed file that
/// nobody has open is remembered among the last 1024 on its disk.
///
/// The engine's own flushes are told what the kernel tells, once for each open file description
/// (parts are written back through a description of the library's).
///
/// A part that got no permit is told by the next write and the next flush, once each.
///
/// # Locks and leases
/// The library opens and closes no descriptor of the file in the program's descriptor table, so the
/// program keeps its `fcntl` record locks. The library opens the file in a table of its own, unless
/// that is refused or would break a lease of this descriptor; then errors of writeback are reported
/// to one of the two only. Parts that still wait for a permit 0.5 s after the writer was dropped are
/// left to the kernel and [counted](crate::PageCacheCounters::left_to_kernel), and the file is closed
/// there. A [`Deleter`](crate::Deleter) that deletes the file cancels them at once. Where the
/// system refuses a second table (Linux before 5.9, some containers), they are left to the kernel when
/// the writer is dropped, which waits for parts that are being written.
///
/// # Which files
/// Files and block devices that are open for writing. The writer takes the descriptor, or borrows
/// it from an engine that keeps it (`&File`); what the engine writes by itself meanwhile passes no
/// class until the writer flushes. With `O_APPEND` there is [`Write`](std::io::Write) alone. Where a write is at the
/// disk when it returns (`O_DIRECT`, `O_SYNC`, a FUSE file system without a cache for writes) the
/// permit comes before it.
///
/// A thread that holds a permit gets on here too. In a waker that a thread of the library runs, a
/// write that has to wait and a flush fail with [`Deadlock`](io::ErrorKind::Deadlock): they would
/// wait for that thread. In a forked child everything is refused with
/// [`Forked`](crate::Forked).
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
    /// Dropped before the file, whose descriptor it uses.
    dirt: HandedOver,
    pub(super) file: F,
    /// Where the next bytes of [`Write`](std::io::Write) go, unless the file is open with
    /// `O_APPEND`: then they go to its end, and this follows them.
    pub(super) position: u64,
    pub(super) appends: bool,
}

/// What is handed over when the writer is dropped.
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
    /// A writer to an open file, which writes it back in this class, on the disk that it is on.
    ///
    /// # Errors
    /// `InvalidInput` for what is neither a file nor a block device or is open for reading only;
    /// those of `open(2)` and [`Scheduler::disk_of_file`], and where no thread can be had.
    pub fn buffered_writer<F: AsFd>(&self, file: F) -> io::Result<BufferedWriter<F>> {
        self.disk.process.check().map_err(io::Error::other)?;
        let flags = checked(&file)?;
        // It is asked for, and never moved.
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
    /// Sets how many bytes of the file may be dirty; 16 MiB unless set. Parts that are
    /// longer than half of that are written back in shorter ones.
    #[must_use]
    pub fn with_dirty_max(self, bytes: u64) -> Self {
        self.dirty_file().dirt.set_dirty_max(bytes);
        self
    }

    /// Writes bytes from the beginning of `buffer` at `offset`, and returns how many: up to the end
    /// of a part, so mostly less than 1 MiB. Waits while too much is dirty.
    ///
    /// # Errors
    /// Those of `pwrite(2)`, and what went wrong with what was written before; `InvalidInput` with
    /// `O_APPEND`.
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

    /// [`Self::write_at`] for a task: pends while too much is dirty. The write itself is done by
    /// the poll that finds room: it takes as long as the memory does, or the disk where a page is
    /// written in part that has to be read first.
    ///
    /// Cancel safety: dropped before it is ready, it has written nothing.
    ///
    /// # Errors
    /// As for [`Self::write_at`].
    pub async fn write_at_async(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.check_offsets()?;
        self.here(self.write_in_task(buffer, Some(offset))).await
    }

    /// Hands over what is dirty, to be written back in the class's turn, and does not wait for it.
    ///
    /// # Errors
    /// In a forked child.
    pub fn write_back(&self) -> io::Result<()> {
        self.check()?;
        self.dirt.hand_over();
        Ok(())
    }

    /// Makes what was written durable, with what is needed to read it back (`fdatasync`): the dirt
    /// first, in parts of the class, also what others have made dirty in the file where that is
    /// seen; then the flush, with a permit.
    ///
    /// # Errors
    /// [`WriteBackError`](crate::WriteBackError) while bytes that were written before are failed, with
    /// the kind of the system's error; those of `fdatasync(2)` and
    /// [`Class::admit`].
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

    /// [`Self::sync_data`] by an engine that flushes itself: `flush` is called in this thread, with the
    /// permit for it, once the dirt is on the disk. Of a file of more than
    /// 64 MiB, what others have made dirty is left to `flush`: to look for it takes too long.
    ///
    /// # Errors
    /// Those of `flush`, and as for [`Self::sync_data`]: then `flush` may not have been called.
    pub fn sync_with(&self, flush: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.check()?;
        let looks = file_len(&self.file)? <= LOOKED_AT_MAX;
        sync_with(self.file.as_fd(), self.dirty_file(), looks, flush)
    }

    /// From now on it is `class` that asks for permits, also for the parts that wait for theirs: for an
    /// engine in which somebody of a class with more shares waits for what this file's writer holds.
    /// What is dirty counts for the first class.
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

    /// From now on nothing is written back while at most this many bytes are dirty, nor when the writer
    /// is dropped; 0 unless set, and half of what may be dirty at most. More than that is written back
    /// from the beginning of the file on. Flushes and [`Self::write_back`] still write back all, and so
    /// does a write that waits for room.
    ///
    /// This is for files that are often deleted before anybody flushes them, such as the log of an engine
    /// that does not flush each commit: what was not written back then costs the disk nothing. What
    /// stays dirty is the kernel's to write back, 30 s later by default, and without a permit.
    pub fn set_write_back_after(&self, bytes: u64) {
        self.dirty_file().dirt.set_write_back_after(bytes);
    }

    /// [`Self::sync_data`] for a task.
    ///
    /// Cancel safety: what is dirty is written back all the same. What fails is failed, and every
    /// later flush reports it.
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

    /// Bytes of the file that were written here and are not on the disk yet; zero in a forked
    /// child.
    pub fn dirty(&self) -> u64 {
        self.dirty_file().dirt.dirty()
    }

    /// The descriptor. Its position is not the writer's, which never moves it; a write with
    /// `O_APPEND` does, as any such write.
    pub const fn get_ref(&self) -> &F {
        &self.file
    }

    /// The descriptor. Its position is where it was: an engine that goes on where the writer ended
    /// asks for [`stream_position`](std::io::Seek::stream_position) first. What is dirty is handed
    /// over.
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

    /// What `future` resolves to, unless it is polled in a forked child.
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
