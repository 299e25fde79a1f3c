//! A file of an engine, for the system calls of the library.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, OnceLock};

use super::calls::take_errors;
use super::disk_files::DiskFiles;
use super::held_files::{HeldFiles, LeavingFile, SentFile};
use crate::sys::fork::Process;
use crate::sys::lock::Lock;
use crate::sys::panics::panicked;

/// A file of an engine. The first write or call opens it in the library's descriptor table, where
/// it stays until this is dropped. If the table cannot have it, calls use its writer's descriptor
/// as long as the writer exists.
pub(crate) struct HeldFile {
    process: Process,
    /// The number of the file.
    number: u64,
    is_abandoned: AtomicBool,
    writer: Lock<WriterFile>,
    call_ended: Condvar,
    files: DiskFiles,
    /// `None` inside if the table cannot have it.
    sent: OnceLock<Option<SentFile>>,
}

#[derive(Default)]
struct WriterFile {
    /// The writer's descriptor, until the writer is dropped.
    fd: Option<RawFd>,
    /// The number of calls that use it now.
    calls: usize,
}

impl HeldFile {
    /// A file with this number. Its writer keeps it open until [`Self::leave_writer`].
    pub(crate) fn new(file: BorrowedFd<'_>, number: u64, files: DiskFiles) -> Self {
        let writer = Lock::new(WriterFile { fd: Some(file.as_raw_fd()), calls: 0 });
        let (process, is_abandoned) = (Process::current(), AtomicBool::new(false));
        let (call_ended, sent) = (Condvar::new(), OnceLock::new());
        Self { process, number, is_abandoned, writer, call_ended, files, sent }
    }

    /// Opens the file before it is written. Errors of writeback from now on are reported through
    /// the table's description.
    pub(crate) fn open(&self) {
        let _ = self.sent();
    }

    /// The file in the table, if the table can have it.
    fn sent(&self) -> Option<&SentFile> {
        let send = || self.call_here(|file| self.files.get_or_make()?.send(file));
        self.sent.get_or_init(|| send().ok().flatten()).as_ref()
    }

    /// Makes `call` for the file and returns its result. `None` once the file is
    /// [abandoned](Self::abandon). The calling thread waits for a thread of the table, which makes
    /// the call.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<R> + Send + 'static,
    ) -> io::Result<Option<R>> {
        if self.is_abandoned.load(Ordering::Acquire) {
            return Ok(None);
        }
        let Some(sent) = self.sent() else { return self.call_here(call) };
        match sent.call(call) {
            Some(Ok(result)) => result.map(Some),
            Some(Err(call)) => self.call_here(call),
            None => Err(panicked()),
        }
    }

    /// Makes `call` with a description of the library's own. `None` if it cannot have one.
    pub(crate) fn call_own<R: Send + 'static>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> R + Send + 'static,
    ) -> Option<R> {
        self.sent()?.call_own(call)
    }

    /// Takes the errors of writeback that were not yet reported through the library's own
    /// description. Returns whether there were any; `None` if there is no such description.
    pub(crate) fn take_errors(&self) -> Option<bool> {
        let sent = self.sent.get().and_then(Option::as_ref)?;
        sent.call_own(|file| take_errors(file).is_err())
    }

    /// [`Self::call`] with the descriptor of the writer. `None` once the writer was dropped.
    fn call_here<R>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<Option<R>> {
        let mut writer = self.writer.lock();
        let Some(fd) = writer.fd else { return Ok(None) };
        writer.calls += 1;
        drop(writer);
        let _ended = CallHere(self);
        // SAFETY: the writer keeps it open until no call is counted any more.
        call(unsafe { BorrowedFd::borrow_raw(fd) }).map(Some)
    }

    /// Waits for the calls that use the writer's descriptor, which is not used any more. Waiting
    /// parts of `file` are [abandoned](LeavingFile::abandon) a little later, or at once if the
    /// table cannot have the file. A thread has to [help](HeldFiles::abandon_leaving) with that if
    /// a value is returned.
    pub(crate) fn leave_writer(
        &self,
        file: &Arc<impl LeavingFile + 'static>,
        waits: bool,
    ) -> Option<Arc<HeldFiles>> {
        let sent = if waits { self.sent() } else { self.sent.get().and_then(Option::as_ref) };
        let mut writer = self.writer.lock();
        writer.fd = None;
        while writer.calls > 0 {
            writer = writer.wait(&self.call_ended);
        }
        drop(writer);
        let Some(sent) = sent else {
            if waits {
                file.abandon(false);
            }
            return None;
        };
        let leaving: Arc<dyn LeavingFile> = Arc::clone(file) as _;
        sent.leave(self.number, Arc::downgrade(&leaving), waits)
    }

    /// Refuses further calls.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }
}

/// A call that uses the writer's descriptor.
struct CallHere<'a>(&'a HeldFile);

impl Drop for CallHere<'_> {
    fn drop(&mut self) {
        self.0.writer.lock().calls -= 1;
        self.0.call_ended.notify_all();
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if let Some(Some(sent)) = self.sent.get()
            && self.process.is_here()
        {
            sent.close(self.number);
        }
    }
}
