//! Files of engines, open where to close them is harmless.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::sys::descriptor_table::{DescriptorTable, Inbox, TableFile};
use crate::sys::lock::Lock;
use crate::sys::workers::{KeptWorker, Workers};

/// Threads of a table at most.
const THREADS_MAX: usize = 32;
/// How long parts of a file wait at most after its writer was dropped. Then the kernel writes back
/// what is dirty still, as it would without the library.
const LEAVING_MAX: Duration = Duration::from_millis(500);
/// How long a deleter waits at most until the library has closed a file.
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
    /// One file is on its way back at a time.
    returning: Lock<()>,
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

/// What is open in the table, by the numbers under which it was sent.
struct OpenFiles {
    inbox: Inbox,
    /// A thread is about to receive what was sent.
    is_receiving: AtomicBool,
    files: Lock<HashMap<u64, Arc<OpenFile>>>,
    /// Those whose writers were dropped, until each is closed.
    leaving: Lock<BTreeMap<LeavingKey, Weak<dyn LeavingFile>>>,
}

struct OpenFile {
    file: TableFile,
    /// It was opened again: errors of writeback are reported through it as well, and what was sent
    /// is told of them too.
    is_own: bool,
}

/// A file that was sent to the table.
pub(super) struct SentFile {
    files: Arc<HeldFiles>,
    number: u64,
    _worker: KeptWorker,
}

impl HeldFiles {
    /// # Errors
    /// Those of [`DescriptorTable::new`].
    pub(super) fn new() -> io::Result<Self> {
        let table = DescriptorTable::new()?;
        let workers = Workers::new(THREADS_MAX, Some(table.threads.clone()));
        let (is_receiving, inbox) = (AtomicBool::new(false), table.inbox);
        let (files, leaving) = (Lock::default(), Lock::default());
        let open = Arc::new(OpenFiles { inbox, is_receiving, files, leaving });
        let (last, returning, ends) = (AtomicU64::new(0), Lock::default(), Lock::default());
        Ok(Self { table, workers, open, last, returning, ends })
    }

    /// Sends an open file to the table, which opens a description of its own where that can be had.
    ///
    /// # Errors
    /// No thread can be had, or too many files are on their way in the whole system.
    pub(super) fn send(self: &Arc<Self>, file: BorrowedFd<'_>) -> io::Result<SentFile> {
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

    /// Abandons what waits for a file that is about to be deleted, of writers that were dropped.
    /// Returns when the file is closed here, or after [`CLOSING_MAX`].
    pub(super) fn close_deleted(&self, number: u64) {
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

    /// What `open` opens in `directory` in a thread of the table, from where it comes to the table of
    /// the process. In the place of a file there is nothing where that is full. Nothing at all where
    /// there are too few descriptors in the table, or no thread.
    pub(super) fn open_in<E: Send + 'static>(
        self: &Arc<Self>,
        directory: BorrowedFd<'_>,
        open: impl FnOnce(BorrowedFd<'_>) -> Vec<Result<OwnedFd, E>> + Send + 'static,
    ) -> Option<Vec<Result<Option<OwnedFd>, E>>> {
        let sent = self.send(directory).ok()?;
        let number = sent.number;
        let _returning = self.returning.lock();
        let opened = self.call(move |files| {
            let directory = files.get(number)?;
            let opened = open(directory.file.borrow()?);
            drop(directory);
            files.close((0, number));
            let send_back = |file: OwnedFd| files.inbox.send_back(&file, number).is_ok();
            Some(opened.into_iter().map(|file| file.map(send_back)).collect::<Vec<_>>())
        });
        let receive = |is_sent: bool| is_sent.then(|| self.table.returned(number)).flatten();
        Some(opened??.into_iter().map(|file| file.map(receive)).collect())
    }

    /// What `call` returns, which a thread of the table makes; nothing if it panics.
    fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&OpenFiles) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, receiver) = channel();
        let open = Arc::clone(&self.open);
        self.workers.run(move || {
            // What the call has captured is gone before it is answered.
            let result = call(&open);
            let _ = sender.send(result);
        });
        receiver.recv().ok()
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
        let mut files = self.files.lock();
        let mut received = 0;
        while let Ok(Some((number, file))) = self.inbox.receive() {
            received += 1;
            if let Some(file) = file {
                let open = match reopened(&file) {
                    Some(file) => OpenFile { file, is_own: true },
                    None => OpenFile { file, is_own: false },
                };
                files.insert(number, Arc::new(open));
            }
        }
        received
    }

    fn get(&self, number: u64) -> Option<Arc<OpenFile>> {
        if let Some(file) = self.files.lock().get(&number) {
            return Some(Arc::clone(file));
        }
        self.receive_all();
        self.files.lock().get(&number).map(Arc::clone)
    }

    fn close(&self, key: LeavingKey) {
        self.receive_all();
        let file = self.files.lock().remove(&key.1);
        drop(file);
        self.leaving.lock().remove(&key);
    }
}

impl SentFile {
    /// What `call` returns for the file, which a thread of the table makes; `call` itself if the table
    /// is too full for the file, and nothing if it panics.
    pub(super) fn call<R: Send + 'static, C>(&self, call: C) -> Option<Result<R, C>>
    where
        C: FnOnce(BorrowedFd<'_>) -> R + Send + 'static,
    {
        let number = self.number;
        self.files.call(move |open| {
            let file = open.get(number);
            match file.as_ref().and_then(|open| open.file.borrow()) {
                Some(file) => Ok(call(file)),
                None => Err(call),
            }
        })
    }

    /// [`Self::call`] with a description that the table has opened itself, if it has.
    pub(super) fn call_own<R: Send + 'static>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> R + Send + 'static,
    ) -> Option<R> {
        let number = self.number;
        let made = self.files.call(move |files| {
            let open = files.get(number).filter(|open| open.is_own)?;
            open.file.borrow().map(call)
        });
        made.flatten()
    }

    /// The writer of `file`, which has this number, was dropped. If something of it waits it is
    /// abandoned in [`LEAVING_MAX`]; returned is whom a thread is to
    /// [help](HeldFiles::abandon_leaving) with that.
    pub(super) fn leave(
        &self,
        number: u64,
        file: Weak<dyn LeavingFile>,
        waits: bool,
    ) -> Option<Arc<HeldFiles>> {
        let key = (number, self.number);
        self.files.open.leaving.lock().insert(key, Weak::clone(&file));
        (waits && self.files.abandon_later(file)).then(|| Arc::clone(&self.files))
    }

    /// Closes the file, which has this number. Nobody waits for that.
    pub(super) fn close(&self, number: u64) {
        let (open, key) = (Arc::clone(&self.files.open), (number, self.number));
        self.files.workers.run(move || open.close(key));
    }
}

/// The same file, opened again: it is told of errors of writeback by itself, so that what is told
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
