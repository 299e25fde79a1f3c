//! Files of engines that are open in a descriptor table of the library, where closing them is
//! harmless.

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

/// The most threads of a table.
const THREADS_MAX: usize = 32;
/// The longest time for which parts of a file wait after its writer was dropped. Then the kernel
/// writes back the dirty bytes, as it would without the library.
const LEAVING_MAX: Duration = Duration::from_millis(500);
/// The longest time for which a deleter waits until the library has closed a file.
const CLOSING_MAX: Duration = Duration::from_secs(1);
/// The time between two checks for that.
const CLOSING_LOOK: Duration = Duration::from_millis(1);

/// The files of a disk's writers, and the threads that make system calls about them. Both have a
/// descriptor table of their own. These threads complete no permits and wake no tasks.
pub(crate) struct HeldFiles {
    table: DescriptorTable,
    workers: Workers,
    open: Arc<OpenFiles>,
    last: AtomicU64,
    /// Held while files are sent back to the process, by one caller at a time.
    returning: Lock<()>,
    /// Files with waiting parts whose writers were dropped, and the end of their time, the earliest
    /// first. It has as many as were dropped within [`LEAVING_MAX`].
    ends: Lock<VecDeque<(Instant, Weak<dyn LeavingFile>)>>,
}

/// A file whose writer was dropped.
pub(crate) trait LeavingFile: Send + Sync {
    /// Cancels the waiting parts. Dirty bytes are left to the kernel, or dropped if the file is
    /// deleted.
    fn abandon(&self, is_deleted: bool);
}

/// The [number](crate::direct_file::file_number) of a file, and the number with which it was sent.
type LeavingKey = (u64, u64);

/// The files that are open in the table, by the numbers with which they were sent.
struct OpenFiles {
    inbox: Inbox,
    /// Whether a thread is about to receive files.
    is_receiving: AtomicBool,
    files: Lock<HashMap<u64, Arc<OpenFile>>>,
    /// The files whose writers were dropped, until they are closed.
    leaving: Lock<BTreeMap<LeavingKey, Weak<dyn LeavingFile>>>,
}

struct OpenFile {
    file: TableFile,
    /// The file was opened again. Errors of writeback are reported through this description, and
    /// independently through the one that was sent.
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

    /// Sends an open file to the table, which opens a description of its own if possible.
    ///
    /// # Errors
    /// No thread is available, or too many files are being sent in the whole system.
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
        // Opened now, the description gets errors from now on. Nobody waits for that.
        if !self.open.is_receiving.swap(true, Ordering::AcqRel) {
            let open = Arc::clone(&self.open);
            self.workers.run(move || {
                open.is_receiving.store(false, Ordering::Release);
                open.receive_all();
            });
        }
        Ok(SentFile { files: Arc::clone(self), number, _worker: worker })
    }

    /// Schedules the end of a file's waiting parts after [`LEAVING_MAX`]. Returns whether a thread
    /// has to [do it](Self::abandon_leaving).
    fn abandon_later(&self, file: Weak<dyn LeavingFile>) -> bool {
        let mut ends = self.ends.lock();
        ends.push_back((Instant::now() + LEAVING_MAX, file));
        ends.len() == 1
    }

    /// Abandons files whose time has passed, until there are none.
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

    /// Abandons the waiting parts of a file that is about to be deleted and whose writers were
    /// dropped. Returns when the library has closed the file, or after [`CLOSING_MAX`].
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

    /// The files that `open` opens in `directory` on a thread of the table, which sends them to the
    /// table of the process. A file is `None` if that table is full. The result is `None` if there
    /// are too few descriptors in the library's table, or no thread.
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

    /// Makes `call` on a thread of the table, and returns its result. `None` if it panics.
    fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&OpenFiles) -> R + Send + 'static,
    ) -> Option<R> {
        let (sender, receiver) = channel();
        let open = Arc::clone(&self.open);
        self.workers.run(move || {
            // The values that the call has captured are dropped before the answer.
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
    /// Receives all sent files. Returns their number.
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
    /// Makes `call` for the file on a thread of the table. Returns `call` itself if the table has
    /// no room for the file, and `None` if it panics.
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

    /// [`Self::call`] with the description that the table has opened itself, if there is one.
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

    /// Notes that the writer of `file`, which has this number, was dropped. If parts of it wait,
    /// they are abandoned after [`LEAVING_MAX`]. A thread has to [help](HeldFiles::abandon_leaving)
    /// with that if a value is returned.
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

    /// Closes the file with this number. Nobody waits for that.
    pub(super) fn close(&self, number: u64) {
        let (open, key) = (Arc::clone(&self.files.open), (number, self.number));
        self.files.workers.run(move || open.close(key));
    }
}

/// Opens the same file again. This description gets errors of writeback independently, so that
/// reading them here hides them from nobody. It is read-only, so that the file can be executed
/// meanwhile. `None` if it may not be opened, or if that would break a lease of the engine.
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
