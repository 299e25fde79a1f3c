//! A file of a connection, and how its bytes are read, written and flushed in a class.

use std::ffi::c_int;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use forebay::{BufferedWriter, Class, Op, WriteBackError};

use crate::connection::{Access, Connection, Raise, lock};
use crate::context::Context;

/// No descriptor is known yet.
const UNKNOWN: RawFd = -1;

/// A database, its WAL or its journal, as a connection has it open.
pub(crate) struct ScheduledFile {
    pub(crate) context: &'static Context,
    pub(crate) connection: Arc<Connection>,
    /// Others write to it too: that is looked for before a flush.
    is_log: bool,
    /// A checkpoint has written to it since the last flush.
    is_checkpointed: AtomicBool,
    /// SQLite's descriptor, once a system call has shown it.
    fd: AtomicI32,
    writer: RwLock<Option<Writer>>,
}

/// Writes back what SQLite writes.
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
        let is_checkpointed = AtomicBool::new(false);
        let file = Arc::new(Self { context, connection, is_log, is_checkpointed, fd, writer });
        file.connection.add_file(&file);
        file
    }

    /// SQLite closes its descriptor next.
    pub(crate) fn close(&self) {
        let writer = self.writer.write().unwrap_or_else(PoisonError::into_inner).take();
        self.fd.store(UNKNOWN, Relaxed);
        drop(writer);
    }

    /// Reads at an offset of SQLite's descriptor. `None` if the scheduler did not do it.
    pub(crate) fn read(
        &self,
        fd: RawFd,
        buffer: &mut [u8],
        offset: u64,
    ) -> Option<io::Result<usize>> {
        self.fd.store(fd, Relaxed);
        let class = self.connection.class(Access::Read);
        // SAFETY: SQLite has it open during the call.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        self.done(class.read_at(file, buffer, offset))
    }

    /// Writes at an offset of SQLite's descriptor. `None` if the scheduler did not do it.
    pub(crate) fn write(&self, fd: RawFd, bytes: &[u8], offset: u64) -> Option<io::Result<usize>> {
        self.fd.store(fd, Relaxed);
        self.is_checkpointed.store(self.connection.checkpoints.load(Relaxed), Relaxed);
        let write = |writer: &Writer| writer.writer.write_all_at(bytes, offset);
        self.done(self.with_writer(write).map(|()| bytes.len()))
    }

    /// Flushes by `flush`, which returns a code of SQLite, after what is dirty has been written back.
    pub(crate) fn sync(&self, failed: c_int, flush: impl FnMut() -> c_int) -> c_int {
        // SQLite says that a checkpoint is done before it flushes the database.
        let checkpoints = &self.connection.checkpoints;
        let before = checkpoints.fetch_or(self.is_checkpointed.swap(false, Relaxed), Relaxed);
        let code = self.sync_now(failed, flush);
        checkpoints.store(before, Relaxed);
        code
    }

    fn sync_now(&self, failed: c_int, mut flush: impl FnMut() -> c_int) -> c_int {
        let fd = self.fd.load(Relaxed);
        if fd == UNKNOWN {
            // Nothing was read or written by it.
            return flush();
        }
        let mut flushed = None;
        let mut once = || {
            let code = flush();
            flushed = Some(code);
            if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        let result = match self.has_writer() || self.is_log {
            true => self.with_writer(|writer| writer.writer.sync_with(&mut once)),
            false => self.flush_alone(fd, &mut once),
        };
        let result = self.done(result);
        match (result, flushed) {
            (Some(Err(_)), None | Some(0)) => failed,
            (_, Some(code)) => code,
            (_, None) => flush(),
        }
    }

    fn flush_alone(&self, fd: RawFd, flush: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        // SAFETY: SQLite has it open during the call.
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

    /// Calls `call` with the writer, in the class of now.
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

    /// An error of the system or of writing back is that of the call. Any other one is the scheduler's,
    /// and SQLite does without it.
    fn done<R>(&self, result: io::Result<R>) -> Option<io::Result<R>> {
        match result {
            Err(error) if !is_of_the_disk(&error) => {
                self.past(|| format!("I/O of SQLite is not scheduled: {error}"));
                None
            }
            result => Some(result),
        }
    }

    /// Counts I/O that goes past the scheduler.
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
            // What is not raised has its turn all the same.
            let _ = writer.set_class(class);
        }
    }
}

fn is_of_the_disk(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
        || error.get_ref().is_some_and(|inner| inner.is::<WriteBackError>())
}
