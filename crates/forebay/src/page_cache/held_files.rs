//! Files of engines, open where to close them is harmless.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::sys::descriptor_table::{DescriptorTable, Inbox, TableFile};
use crate::sys::fork::Process;
use crate::sys::lock::{Lock, LockGuard};
use crate::sys::workers::{KeptWorker, Workers};

/// Threads of a table at most.
const THREADS_MAX: usize = 32;
/// How long parts of a file wait at most after its writer was dropped. Then the kernel writes back
/// what is dirty still, as it would without the library.
const LEAVING_MAX: Duration = Duration::from_millis(500);
/// How long a discarder waits at most until the library has closed a file.
const CLOSING_MAX: Duration = Duration::from_secs(1);
/// How often it looks.
const CLOSING_LOOK: Duration = Duration::from_millis(1);

/// The files of a disk's writers, and the threads that make the system calls about them. Both have
/// a descriptor table of their own. Permits are not completed there, and no task is woken.
pub(crate) struct HeldFiles {
    table: DescriptorTable,
    workers: Workers,
    open: Arc<OpenFiles>,
    last: AtomicU64,
    /// Files of which something waits although their writers were dropped, and until when; the next
    /// first. As many as were dropped in the last [`LEAVING_MAX`].
    ends: Lock<VecDeque<(Instant, Weak<dyn LeavingFile>)>>,
}

/// A file whose writer was dropped.
pub(crate) trait LeavingFile: Send + Sync {
    /// Cancels the parts that wait. What is dirty is left to the kernel, or to nobody if the file is
    /// deleted.
    fn abandon(&self, is_deleted: bool);
}

/// The [number](crate::direct_file::file_number) of a file, and the one under which it was sent.
type LeavingKey = (u64, u64);

/// The [`HeldFiles`] of a disk, made when they are needed first.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskFiles(Arc<Lock<Option<Arc<HeldFiles>>>>);

/// What is open in the table, by the numbers under which it was sent.
struct OpenFiles {
    inbox: Inbox,
    /// A thread is about to receive what was sent.
    is_receiving: AtomicBool,
    files: Lock<HashMap<u64, Arc<TableFile>>>,
    /// Those whose writers were dropped, until each is closed.
    leaving: Lock<BTreeMap<LeavingKey, Weak<dyn LeavingFile>>>,
}

/// A file of an engine. The first write or call has it opened in the table, where it is until this is
/// dropped. Where the table cannot have it, its writer's descriptor is used as long as the writer is
/// there.
pub(crate) struct HeldFile {
    process: Process,
    /// Of the file.
    number: u64,
    is_abandoned: AtomicBool,
    writer: Lock<WriterFile>,
    call_ended: Condvar,
    files: DiskFiles,
    /// Nothing where the table cannot have it.
    sent: OnceLock<Option<SentFile>>,
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
    _worker: KeptWorker,
}

impl DiskFiles {
    fn get(&self) -> Option<Arc<HeldFiles>> {
        self.0.lock().clone()
    }

    /// # Errors
    /// Those of [`HeldFiles::new`].
    fn get_or_make(&self) -> io::Result<Arc<HeldFiles>> {
        let mut files = self.0.lock();
        if let Some(files) = &*files {
            return Ok(Arc::clone(files));
        }
        let made = Arc::new(HeldFiles::new()?);
        Ok(Arc::clone(files.insert(made)))
    }

    /// Abandons what waits for a file that is about to be deleted, of writers that were dropped.
    /// Returns when the file is closed here, or after [`CLOSING_MAX`].
    pub(crate) fn close_deleted(&self, number: u64) {
        if let Some(files) = self.get() {
            files.close_deleted(number);
        }
    }
}

impl HeldFiles {
    /// # Errors
    /// Those of [`DescriptorTable::new`].
    fn new() -> io::Result<Self> {
        let table = DescriptorTable::new()?;
        let workers = Workers::in_table(THREADS_MAX, table.threads());
        let (is_receiving, inbox) = (AtomicBool::new(false), table.inbox());
        let (files, leaving) = (Lock::default(), Lock::default());
        let open = Arc::new(OpenFiles { inbox, is_receiving, files, leaving });
        Ok(Self { table, workers, open, last: AtomicU64::new(0), ends: Lock::default() })
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
        if !self.open.is_receiving.swap(true, Ordering::AcqRel) {
            let open = Arc::clone(&self.open);
            self.workers.run(move || {
                open.is_receiving.store(false, Ordering::Release);
                open.receive_all();
            });
        }
        Ok(SentFile { files: Arc::clone(self), number, _worker: worker })
    }

    /// Has the parts of a file abandoned in [`LEAVING_MAX`]. Whether a thread is to
    /// [do so](Self::abandon_leaving).
    fn abandon_later(&self, file: Weak<dyn LeavingFile>) -> bool {
        let mut ends = self.ends.lock();
        ends.push_back((Instant::now() + LEAVING_MAX, file));
        ends.len() == 1
    }

    /// Abandons what waits for too long, until nothing does.
    pub(crate) fn abandon_leaving(&self) {
        let lock = || self.ends.lock();
        let mut next = lock().front().cloned();
        while let Some((end, file)) = next {
            thread::sleep(end.saturating_duration_since(Instant::now()));
            if let Some(file) = file.upgrade() {
                file.abandon(false);
            }
            let mut ends = lock();
            ends.pop_front();
            next = ends.front().cloned();
        }
    }

    fn close_deleted(&self, number: u64) {
        let leaving = || -> Vec<_> {
            let leaving = self.open.leaving.lock();
            leaving.range((number, 0)..=(number, u64::MAX)).map(|(_, file)| file.clone()).collect()
        };
        for file in leaving() {
            if let Some(file) = file.upgrade() {
                file.abandon(true);
            }
        }
        let begin = Instant::now();
        while !leaving().is_empty() && begin.elapsed() < CLOSING_MAX {
            thread::sleep(CLOSING_LOOK);
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

    fn close(&self, key: LeavingKey) {
        self.receive_all();
        let file = self.lock().remove(&key.1);
        drop(file);
        self.leaving.lock().remove(&key);
    }

    fn lock(&self) -> LockGuard<'_, HashMap<u64, Arc<TableFile>>> {
        self.files.lock()
    }
}

impl HeldFile {
    /// Of an open file, which has this number and which its writer keeps open until
    /// [`Self::leave_writer`].
    pub(crate) fn new(file: BorrowedFd<'_>, number: u64, files: DiskFiles) -> Self {
        let writer = Lock::new(WriterFile { fd: Some(file.as_raw_fd()), calls: 0 });
        let (process, is_abandoned) = (Process::current(), AtomicBool::new(false));
        let (call_ended, sent) = (Condvar::new(), OnceLock::new());
        Self { process, number, is_abandoned, writer, call_ended, files, sent }
    }

    /// It is about to be written: whatever goes wrong with that from now on is told to the description
    /// that the table has.
    pub(crate) fn open(&self) {
        let _ = self.sent();
    }

    /// The file in the table, if it can be there.
    fn sent(&self) -> Option<&SentFile> {
        let send = || self.call_here(|file| self.files.get_or_make()?.send(file));
        self.sent.get_or_init(|| send().ok().flatten()).as_ref()
    }

    /// What `call` returns for the file; `None` once that is [abandoned](Self::abandon). The calling
    /// thread waits for a thread of the table, which makes the call.
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
        let number = sent.number;
        let made = sent.files.call(move |open| {
            let file = open.get(number);
            match file.as_ref().and_then(|file| file.borrow()) {
                Some(file) => Ok(call(file)),
                None => Err(call),
            }
        });
        match made {
            Some(Ok(result)) => result.map(Some),
            // The table is full.
            Some(Err(call)) => self.call_here(call),
            None => Err(io::Error::other("a call about a file panicked: see the log")),
        }
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

    /// The writer's descriptor is not used any more. It waits for the calls that use it. If something
    /// of `file` waits it is [abandoned](LeavingFile::abandon) in [`LEAVING_MAX`], or at once where the
    /// table cannot have it. Returned is whom a thread is to [help](HeldFiles::abandon_leaving) with
    /// that.
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
        let Some(SentFile { files, number, .. }) = sent else {
            if waits {
                file.abandon(false);
            }
            return None;
        };
        let leaving: Arc<dyn LeavingFile> = Arc::clone(file) as _;
        let leaving = Arc::downgrade(&leaving);
        files.open.leaving.lock().insert((self.number, *number), Weak::clone(&leaving));
        (waits && files.abandon_later(leaving)).then(|| Arc::clone(files))
    }

    /// No further call is made.
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

/// The file is closed. Nobody waits for that.
impl Drop for HeldFile {
    fn drop(&mut self) {
        if let Some(Some(sent)) = self.sent.get()
            && self.process.is_here()
        {
            let (open, key) = (Arc::clone(&sent.files.open), (self.number, sent.number));
            sent.files.workers.run(move || open.close(key));
        }
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
