//! Files of engines, open where to close them is harmless.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::sys::descriptor_table::{DescriptorTable, Inbox, TableFile};
use crate::sys::fork::Process;
use crate::sys::lock::{Lock, LockGuard};
use crate::sys::workers::{KeptWorker, Workers};

/// How long a file stays open at most after its writer was dropped. Then the kernel writes back what
/// is dirty still, as it would without the library.
const LEAVING_MAX: Duration = Duration::from_millis(500);

/// The files of a disk's writers, and the threads that make the system calls about them. Both have
/// a descriptor table of their own. Permits are not completed there, and no task is woken.
pub(crate) struct HeldFiles {
    table: DescriptorTable,
    workers: Workers,
    open: Arc<OpenFiles>,
    last: AtomicU64,
    /// Those whose writers are gone, and when each is closed; the next first.
    leaving: Lock<VecDeque<(Instant, Weak<HeldFile>)>>,
}

/// What is open in the table, by the numbers under which it was sent.
struct OpenFiles {
    inbox: Inbox,
    files: Lock<HashMap<u64, Arc<TableFile>>>,
}

/// A file of an engine: open in the table until it is [closed](Self::close) or dropped. Where the
/// table cannot have it, its writer's descriptor is used as long as the writer is there.
pub(crate) struct HeldFile {
    process: Process,
    writer: Lock<WriterFile>,
    call_ended: Condvar,
    sent: Option<SentFile>,
}

#[derive(Default)]
struct WriterFile {
    /// The writer's descriptor, until the writer is dropped.
    fd: Option<RawFd>,
    /// Calls that use it now.
    calls: usize,
}

struct SentFile {
    files: Arc<HeldFiles>,
    number: u64,
    is_closed: AtomicBool,
    _worker: KeptWorker,
}

impl HeldFiles {
    /// With up to `threads_max` threads.
    ///
    /// # Errors
    /// Those of [`DescriptorTable::new`].
    pub(crate) fn new(threads_max: usize) -> io::Result<Self> {
        let table = DescriptorTable::new()?;
        let workers = Workers::in_table(threads_max, table.threads());
        let open = Arc::new(OpenFiles { inbox: table.inbox(), files: Lock::default() });
        let (last, leaving) = (AtomicU64::new(0), Lock::default());
        Ok(Self { table, workers, open, last, leaving })
    }

    /// Sends an open file to the table, which opens a description of its own where that can be had.
    ///
    /// # Errors
    /// No thread can be had, or too many files are on their way in the whole system.
    fn send(self: &Arc<Self>, file: BorrowedFd<'_>) -> io::Result<SentFile> {
        let worker = self.workers.keep_one()?;
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        while let Err(error) = self.table.send(file, number) {
            let is_full = error.kind() == io::ErrorKind::WouldBlock
                || error.raw_os_error() == Some(libc::ETOOMANYREFS);
            if !is_full || self.call(OpenFiles::receive_all).unwrap_or(0) == 0 {
                return Err(error);
            }
        }
        // Opened now, it is told of errors from now on. Nobody waits for that.
        let open = Arc::clone(&self.open);
        self.workers.run(move || {
            open.receive_all();
        });
        let is_closed = AtomicBool::new(false);
        Ok(SentFile { files: Arc::clone(self), number, is_closed, _worker: worker })
    }

    /// Has a file closed in [`LEAVING_MAX`], whatever waits for it. Whether a thread is to
    /// [do so](Self::close_leaving).
    pub(crate) fn close_later(&self, file: &Arc<HeldFile>) -> bool {
        let mut leaving = self.leaving.lock();
        leaving.push_back((Instant::now() + LEAVING_MAX, Arc::downgrade(file)));
        leaving.len() == 1
    }

    /// Closes the files that are leaving when it is time, until there are none.
    pub(crate) fn close_leaving(&self) {
        let lock = || self.leaving.lock();
        let mut next = lock().front().cloned();
        while let Some((time, file)) = next {
            thread::sleep(time.saturating_duration_since(Instant::now()));
            if let Some(file) = file.upgrade() {
                file.close();
            }
            let mut leaving = lock();
            leaving.pop_front();
            next = leaving.front().cloned();
        }
    }

    /// What `call` returns, which a thread of the table makes; nothing if it panics.
    fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&OpenFiles) -> R + Send + 'static,
    ) -> Option<R> {
        let (tell, told) = channel();
        let open = Arc::clone(&self.open);
        self.workers.run(move || {
            // What the call has captured is gone before it is answered.
            let result = call(&open);
            let _ = tell.send(result);
        });
        told.recv().ok()
    }
}

impl std::fmt::Debug for HeldFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldFiles").field("last", &self.last).finish_non_exhaustive()
    }
}

impl OpenFiles {
    /// Takes what was sent so far, and returns how many files that were.
    fn receive_all(&self) -> usize {
        let mut files = self.lock();
        let mut received = 0;
        while let Ok(Some((number, file))) = self.inbox.receive() {
            received += 1;
            if let Some(file) = file {
                files.insert(number, Arc::new(reopened(&file).unwrap_or(file)));
            }
        }
        received
    }

    fn get(&self, number: u64) -> Option<Arc<TableFile>> {
        if let Some(file) = self.lock().get(&number) {
            return Some(Arc::clone(file));
        }
        self.receive_all();
        self.lock().get(&number).map(Arc::clone)
    }

    fn close(&self, number: u64) {
        self.receive_all();
        let file = self.lock().remove(&number);
        drop(file);
    }

    fn lock(&self) -> LockGuard<'_, HashMap<u64, Arc<TableFile>>> {
        self.files.lock()
    }
}

impl HeldFile {
    /// Of an open file, which its writer keeps open until [`Self::leave_writer`]. There is no table
    /// where the system refuses one.
    pub(crate) fn new(file: BorrowedFd<'_>, files: io::Result<Arc<HeldFiles>>) -> Self {
        let writer = Lock::new(WriterFile { fd: Some(file.as_raw_fd()), calls: 0 });
        let sent = files.and_then(|files| files.send(file)).ok();
        Self { process: Process::current(), writer, call_ended: Condvar::new(), sent }
    }

    /// What `call` returns for the file; `None` once that is closed. The calling thread waits for a
    /// thread of the table, which makes the call.
    ///
    /// # Errors
    /// Those of the call.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<R> + Send + 'static,
    ) -> io::Result<Option<R>> {
        let Some(sent) = &self.sent else { return self.call_here(call) };
        if sent.is_closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        let number = sent.number;
        let made = sent.files.call(move |open| {
            let file = open.get(number);
            match file.as_ref().and_then(|file| file.borrow()) {
                Some(file) => Ok(call(file)),
                None => Err(call),
            }
        });
        let result = match made {
            Some(Ok(result)) => result.map(Some),
            // The table is full.
            Some(Err(call)) => self.call_here(call),
            None => Err(io::Error::other("a call about a file panicked: see the log")),
        };
        // It may have been closed meanwhile.
        if sent.is_closed.load(Ordering::Acquire) { Ok(result.ok().flatten()) } else { result }
    }

    /// [`Self::call`] with the descriptor of the writer; `None` once the writer was dropped.
    fn call_here<R>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<R>,
    ) -> io::Result<Option<R>> {
        let mut writer = self.writer.lock();
        let Some(fd) = writer.fd else { return Ok(None) };
        writer.calls += 1;
        drop(writer);
        let _ended = CallHere(self);
        // SAFETY: the writer has it open until no call is counted any more.
        call(unsafe { BorrowedFd::borrow_raw(fd) }).map(Some)
    }

    /// The writer's descriptor is not used any more. It waits for the calls that use it.
    pub(crate) fn leave_writer(&self) {
        let mut writer = self.writer.lock();
        writer.fd = None;
        while writer.calls > 0 {
            writer = writer.wait(&self.call_ended);
        }
    }

    /// Closes the file once the calls that are being made have ended. It does not wait.
    fn close(&self) {
        let Some(sent) = &self.sent else { return };
        if self.process.is_here() && !sent.is_closed.swap(true, Ordering::AcqRel) {
            let (open, number) = (Arc::clone(&sent.files.open), sent.number);
            sent.files.workers.run(move || open.close(number));
        }
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
        self.close();
    }
}

/// The same file, opened anew: it is told of errors of writeback by itself, so that what is told
/// here is kept from nobody. Read-only, so that the file can be executed meanwhile. `None` where it
/// may not be opened, and where that would break a lease of the engine.
fn reopened(file: &TableFile) -> Option<TableFile> {
    let fd = file.borrow()?;
    // SAFETY: the call touches no memory, and the descriptor is open.
    let lease = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETLEASE) };
    if lease != libc::F_UNLCK {
        return None;
    }
    // `/proc/self` would be the table of the process.
    let path = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    Some(TableFile::of_this_thread(opened))
}
