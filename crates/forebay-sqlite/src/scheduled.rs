//! A file of a connection whose reads, writes and flushes are scheduled in a class.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use forebay::{BufferedWriter, Class, Op, WriteBackError};

use crate::connection::{Access, Connection, Raise, lock};
use crate::context::Context;

/// The value of [`ScheduledFile::fd`] before the first system call.
const UNKNOWN: RawFd = -1;
/// The most bytes of an abandoned part of a log that are rewritten in one call.
const REPEATED_LEN: usize = 1 << 20;

/// A database, a WAL or a journal that a connection has open.
pub(crate) struct ScheduledFile {
    pub(crate) context: &'static Context,
    pub(crate) connection: Arc<Connection>,
    /// It is a WAL or a journal. Other connections write to a WAL too, so the scheduler looks for
    /// their dirty pages before each flush.
    is_log: bool,
    /// A checkpoint has written to it since the last flush.
    is_checkpointed: AtomicBool,
    /// `PRAGMA mmap_size` is above 0.
    pub(crate) is_mapped: AtomicBool,
    /// SQLite's descriptor, once a system call has shown it.
    fd: AtomicI32,
    writer: RwLock<Option<Writer>>,
    /// The number of the last transaction that wrote to this log, and the end of its writes in bytes.
    written: Mutex<(Option<u64>, u64)>,
}

/// The writer of a file, and the class it has now.
struct Writer {
    writer: BufferedWriter<BorrowedFd<'static>>,
    class: Mutex<Class>,
}

impl Writer {
    fn set_class(&self, class: &Class) -> io::Result<()> {
        let mut now = lock(&self.class);
        if *now != *class {
            self.writer.set_class(class)?;
            *now = class.clone();
        }
        Ok(())
    }
}

impl ScheduledFile {
    pub(crate) fn new(
        context: &'static Context,
        connection: Arc<Connection>,
        is_log: bool,
    ) -> Arc<Self> {
        let (fd, writer) = (AtomicI32::new(UNKNOWN), RwLock::new(None));
        let [is_checkpointed, is_mapped] = [const { AtomicBool::new(false) }; 2];
        let written = Mutex::default();
        let file =
            Self { context, connection, is_log, is_checkpointed, is_mapped, fd, writer, written };
        let file = Arc::new(file);
        file.connection.add_file(&file);
        file
    }

    /// Drops the writer. SQLite closes its descriptor next.
    pub(crate) fn close(&self) {
        let writer = self.writer.write().unwrap_or_else(PoisonError::into_inner).take();
        self.fd.store(UNKNOWN, Relaxed);
        drop(writer);
    }

    /// Reads at an offset of SQLite's descriptor. `None` if the scheduler refused, so that SQLite has to
    /// read unscheduled.
    pub(crate) fn read(
        &self,
        fd: RawFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<usize>> {
        self.is_only(fd);
        let class = self.connection.class(Access::Read);
        // SAFETY: SQLite keeps the descriptor open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        match class.read_at(file, buffer, offset) {
            // For example, the process has no descriptor left, or `/sys` is not mounted.
            Err(error) if error.raw_os_error() != Some(libc::EIO) => {
                self.refused(&error);
                None
            }
            result => Some(result),
        }
    }

    /// Whether `fd` is the first descriptor that this file used. A wrapped VFS may use several files for
    /// one database.
    fn is_only(&self, fd: RawFd) -> bool {
        let seen = self.fd.compare_exchange(UNKNOWN, fd, Relaxed, Relaxed);
        seen.is_ok() || seen == Err(fd)
    }

    /// Writes at an offset of SQLite's descriptor. `None` if the scheduler refused, so that SQLite has to
    /// write unscheduled.
    pub(crate) fn write(&self, fd: RawFd, bytes: &[u8], offset: u64) -> Option<io::Result<usize>> {
        if !self.is_only(fd) {
            self.past(|| {
                "the wrapped VFS uses several files for one: only the first is scheduled".to_owned()
            });
            return None;
        }
        self.is_checkpointed.store(self.connection.checkpoints.load(Relaxed), Relaxed);
        if self.is_log {
            let (mut written, transaction) = (lock(&self.written), self.connection.transaction());
            let before = if written.0 == transaction { written.1 } else { 0 };
            *written = (transaction, before.max(offset + bytes.len() as u64));
        }
        let write = |writer: &Writer| writer.writer.write_all_at(bytes, offset);
        self.done(self.with_writer(write).map(|()| bytes.len()))
    }

    /// Writes back dirty bytes, then calls `flush`, which returns a code of SQLite. `failed` is the code
    /// for a failed write-back.
    pub(crate) fn sync(&self, failed: c_int, flush: impl FnMut() -> c_int) -> c_int {
        // SQLite reports the end of a checkpoint before it flushes the database.
        let checkpoints = &self.connection.checkpoints;
        let before = checkpoints.fetch_or(self.is_checkpointed.swap(false, Relaxed), Relaxed);
        let code = self.sync_now(failed, flush);
        checkpoints.store(before, Relaxed);
        code
    }

    fn sync_now(&self, failed: c_int, mut flush: impl FnMut() -> c_int) -> c_int {
        let fd = self.fd.load(Relaxed);
        if fd == UNKNOWN {
            // No scheduled read or write used this file.
            return flush();
        }
        let mut flushed = None;
        let mut once = || {
            let code = flush();
            flushed = Some(code);
            if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        let result = match self.has_writer() || self.is_log {
            true => self.with_writer(|writer| self.sync_needed(&writer.writer, &mut once)),
            false => self.flush_alone(fd, &mut once),
        };
        let result = self.done(result);
        match (result, flushed) {
            (Some(Err(_)), None | Some(0)) => failed,
            (_, Some(code)) => code,
            (_, None) => flush(),
        }
    }

    /// Writes back and calls `flush`. A transaction that was rolled back may have left bytes in the log that
    /// could not be written back, and that lie after the end of the present transaction. No connection needs
    /// them, but they would make every later commit fail. So they are written again as they are.
    fn sync_needed(
        &self,
        writer: &BufferedWriter<BorrowedFd<'static>>,
        mut flush: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        loop {
            let result = writer.sync_with(&mut flush);
            let failed = result
                .as_ref()
                .err()
                .and_then(|error| error.get_ref()?.downcast_ref::<WriteBackError>());
            let Some(failed) = failed.filter(|it| self.is_unneeded(it) && it.offset() >= done)
            else {
                return result;
            };
            done = failed.offset() + failed.length();
            // SAFETY: SQLite keeps the descriptor open during the call, and `ManuallyDrop` does not close it.
            let file = unsafe { File::from_raw_fd(self.fd.load(Relaxed)) };
            let file = ManuallyDrop::new(file);
            for offset in (failed.offset()..done).step_by(REPEATED_LEN) {
                let mut bytes = vec![0; REPEATED_LEN.min((done - offset) as usize)];
                file.read_exact_at(&mut bytes, offset)?;
                writer.write_all_at(&bytes, offset)?;
            }
        }
    }

    fn is_unneeded(&self, failed: &WriteBackError) -> bool {
        let (transaction, end) = *lock(&self.written);
        transaction.is_some()
            && transaction == self.connection.transaction()
            && failed.offset() >= end
    }

    fn flush_alone(&self, fd: RawFd, flush: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        // SAFETY: SQLite keeps the descriptor open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        let class = self.connection.class(Access::Write);
        let permit = class.admit_for(&file, Op::Flush, 0).wait().map_err(io::Error::other)?;
        let result = flush();
        permit.complete(&result);
        result
    }

    fn has_writer(&self) -> bool {
        self.writer.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Calls `call` with the writer, in the class that the connection has now.
    fn with_writer<R>(&self, call: impl FnOnce(&Writer) -> io::Result<R>) -> io::Result<R> {
        let class = self.connection.class(Access::Write);
        if !self.has_writer() {
            // SAFETY: `close` drops the writer before SQLite closes the descriptor.
            let file = unsafe { BorrowedFd::borrow_raw(self.fd.load(Relaxed)) };
            let writer = class.buffered_writer(file).map_err(io::Error::other)?;
            let writer = Writer { writer, class: Mutex::new(class.clone()) };
            *self.writer.write().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        }
        let writer = self.writer.read().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.set_class(&class)?;
        call(writer)
    }

    /// Returns an error of the disk or of write-back to SQLite. Any other error is the scheduler's, and
    /// becomes `None`: SQLite then continues unscheduled.
    fn done<R>(&self, result: io::Result<R>) -> Option<io::Result<R>> {
        match result {
            Err(error) if !is_of_the_disk(&error) => {
                self.refused(&error);
                None
            }
            result => {
                if result.is_err() {
                    self.connection.begin_transaction();
                }
                Some(result)
            }
        }
    }

    fn refused(&self, error: &io::Error) {
        self.past(|| format!("I/O of SQLite is not scheduled: {error}"));
    }

    /// Counts an unscheduled read or write. The first one logs `why`.
    pub(crate) fn past(&self, why: impl FnOnce() -> String) {
        self.context.unscheduled.add(why);
    }
}

impl Raise for ScheduledFile {
    fn raise(&self, class: &Class) {
        let writer = self.writer.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.as_ref()
            && lock(&writer.class).shares() < class.shares()
        {
            // After an error the writer continues in its present class.
            let _ = writer.set_class(class);
        }
    }
}

fn is_of_the_disk(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
        || error.get_ref().is_some_and(|inner| inner.is::<WriteBackError>())
}
