//! I/O threads, to which requests are sent from any thread.

mod desk;
mod lane;
mod mailbox;
mod slot;

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use forebay_core::{GroupFull, Op};

pub(crate) use self::mailbox::Mailbox;
pub use self::mailbox::REQUESTS_MAX;
pub use self::slot::Timing;
pub(crate) use self::slot::{Answer, Kept, Message, Slot};

use self::desk::Desk;
use crate::disk::DiskGroup;
use crate::engine::EngineConfig;
use crate::events::Event;
use crate::messages;
use crate::shard::{Operations, ShardError};
use crate::streams::Streams;
use crate::sys::fork::OfProcess;
use crate::sys::panics::contain;

/// Longer than an engine takes to end once it gives up on the disk.
const END_GRACE: Duration = Duration::from_secs(1);

/// An I/O thread that broke down and cannot begin anew tries again so often.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How a disk's requests are executed where its files are not used through
/// [shards](crate::shard::Shard).
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoThreadsConfig {
    /// I/O threads per I/O group.
    pub(crate) io_queues: usize,
    pub(crate) engine: EngineConfig,
}

impl Default for IoThreadsConfig {
    fn default() -> Self {
        // Requests that hang stay with the engine, and shall not fill it soon.
        let engine = EngineConfig { depth_max: 1024, threads_max: 64, ..EngineConfig::default() };
        Self { io_queues: 1, engine }
    }
}

/// The I/O threads of one I/O group. Each starts with the first file that it
/// is for.
#[derive(Debug)]
pub(crate) struct IoThreads {
    engine: EngineConfig,
    threads: Box<[OnceLock<OfProcess<IoThread>>]>,
    starting: Mutex<()>,
}

#[derive(Debug)]
struct IoThread {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<()>,
    /// Hangs up when the thread ends.
    running: Mutex<Receiver<()>>,
    drop_wait_max: Duration,
    /// An I/O group of its disk.
    group: Arc<DiskGroup>,
}

impl IoThreads {
    pub(crate) fn new(config: &IoThreadsConfig) -> Self {
        let threads = (0..config.io_queues.max(1)).map(|_| OnceLock::new()).collect();
        Self { engine: config.engine, threads, starting: Mutex::new(()) }
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// The mailbox for the requests of a thread, the same one each time.
    pub(crate) fn mailbox(
        &self,
        streams: &Streams,
        disk: &str,
        submitter: u64,
    ) -> Result<&Arc<Mailbox>, ShardError> {
        let number = (submitter % self.threads.len() as u64) as usize;
        let place = &self.threads[number];
        if let Some(thread) = place.get() {
            return Ok(&thread.mailbox);
        }
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = place.get() {
            return Ok(&thread.mailbox);
        }
        let thread = IoThread::start(streams, disk, number, &self.engine)?;
        Ok(&place.get_or_init(|| OfProcess::new(thread)).mailbox)
    }
}

impl IoThread {
    fn start(
        streams: &Streams,
        disk: &str,
        number: usize,
        engine: &EngineConfig,
    ) -> Result<Self, ShardError> {
        let (started, ready) = channel();
        let (running, hung_up) = channel();
        let group = Arc::clone(streams.of(Op::Read));
        let (streams, engine, drop_wait_max) = (streams.clone(), *engine, engine.drop_wait_max);
        let thread = thread::Builder::new()
            .name(format!("forebay-disk-{number}"))
            .spawn(move || run(&streams, &engine, &started, running))?;
        let full = |full| ShardError::NoShard { disk: disk.to_owned(), full };
        let ended = |_| io::Error::other("the I/O thread ended at its start");
        let mailbox = ready.recv().map_err(ended)??.map_err(full)?;
        Ok(Self { mailbox, thread, running: Mutex::new(hung_up), drop_wait_max, group })
    }
}

impl Drop for IoThread {
    /// Nobody waits for a request any more: what waits is dropped, what the
    /// disk has is cancelled if it can be. A disk that hangs keeps the thread
    /// no longer than its engine waits.
    fn drop(&mut self) {
        self.mailbox.close();
        // The last handle can go with a task that the thread itself wakes.
        if thread::current().id() != self.thread.thread().id() {
            let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
            let ended = running.recv_timeout(self.drop_wait_max.saturating_add(END_GRACE));
            if ended == Err(RecvTimeoutError::Timeout) {
                self.group.tell(Event::Hang { disk: self.group.name.clone() });
            }
        }
    }
}

type Started = io::Result<Result<Arc<Mailbox>, GroupFull>>;

/// An I/O thread's life. `_running` is dropped last of all.
fn run(streams: &Streams, config: &EngineConfig, started: &Sender<Started>, _running: Sender<()>) {
    let operations = match Operations::new(streams.clone(), config) {
        Ok(Ok(operations)) => operations,
        Ok(Err(full)) => {
            // Whoever started the thread waits for this.
            let _ = started.send(Ok(Err(full)));
            return;
        }
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let mailbox = Arc::new(Mailbox::new(operations.engine().waker()));
    let _ = started.send(Ok(Ok(Arc::clone(&mailbox))));
    IS_IO_THREAD.set(true);
    let mut operations = Some(operations);
    while let Some(present) = operations {
        let mut desk = Desk::new(present, Arc::clone(&mailbox));
        if contain(|| desk.work()).is_some() {
            return;
        }
        desk.break_down();
        messages::warn(String::from(
            "an I/O thread broke down by a panic: what it had to do ended with errors, and it \
             begins anew",
        ));
        operations = begin_anew(streams, config, &mailbox);
    }
}

/// After a breakdown; `None` when the thread is to end.
fn begin_anew(
    streams: &Streams,
    config: &EngineConfig,
    mailbox: &Arc<Mailbox>,
) -> Option<Operations> {
    loop {
        if let Ok(Ok(operations)) = Operations::new(streams.clone(), config) {
            let goes_on = mailbox.begin_anew(operations.engine().waker());
            return goes_on.then_some(operations);
        }
        if !mailbox.return_all() {
            return None;
        }
        thread::sleep(TRY_AGAIN_AFTER);
    }
}

thread_local! {
    static IS_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether others wait for the calling thread to do their I/O: it must not
/// wait for any.
pub(crate) fn is_io_thread() -> bool {
    IS_IO_THREAD.get()
}

/// The calling thread's number among those that submit.
pub(crate) fn submitter() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<Option<u64>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        NUMBER.set(Some(number));
        number
    })
}
