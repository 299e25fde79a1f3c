//! I/O threads, which execute the requests of all other threads.

mod coordinators;
mod inbox;
mod reply;
mod submitter;
mod worker;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use forebay_core::{GroupFull, Op};

pub(crate) use self::inbox::Inbox;
pub use self::inbox::REQUESTS_MAX;
pub use self::reply::Timing;
pub(crate) use self::reply::{Completion, Message, Reply, Submission};
pub(crate) use self::submitter::{Submitter, submitter};

use self::coordinators::Coordinators;
use self::worker::Worker;
use crate::disk_groups::DiskGroups;
use crate::engine::EngineConfig;
use crate::events::Event;
use crate::messages;
use crate::permit::DiskGroup;
use crate::reactor::{Reactor, ShardError};
use crate::sys::fork::OfProcess;
use crate::sys::library_thread;
use crate::sys::lock::Lock;
use crate::sys::numa;
use crate::sys::panics::contain;
use crate::sys::signals;

/// The time for which the end of a thread is awaited after its engine has given up on the disk.
const END_GRACE: Duration = Duration::from_secs(1);

/// The time between two attempts to restart an I/O thread that panicked.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The configuration of a disk's I/O threads, which execute requests that do not go through
/// [shards](crate::shard::Shard).
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoThreadsConfig {
    /// The number of I/O threads per I/O group.
    pub(crate) io_queues: usize,
    pub(crate) engine: EngineConfig,
}

impl Default for IoThreadsConfig {
    fn default() -> Self {
        // Requests that hang stay in the engine, and must not fill it soon.
        let engine = EngineConfig { depth_max: 1024, threads_max: 64, ..EngineConfig::default() };
        Self { io_queues: 1, engine }
    }
}

/// The I/O threads of one I/O group. Each is started by its first file.
#[derive(Debug)]
pub(crate) struct IoThreads {
    engine: EngineConfig,
    coordinators: Coordinators,
    threads: Box<[OnceLock<OfProcess<IoThread>>]>,
    starting: Lock<()>,
}

#[derive(Debug)]
struct IoThread {
    inbox: Arc<Inbox<Message>>,
    thread: JoinHandle<()>,
    /// Disconnected when the thread ends.
    running: Lock<Receiver<()>>,
    shutdown_timeout: Duration,
    /// An I/O group of its disk.
    group: Arc<DiskGroup>,
}

impl IoThreads {
    /// The I/O threads for the NUMA nodes for which `serves` is true.
    pub(crate) fn new(config: &IoThreadsConfig, serves: impl Fn(usize) -> bool) -> Self {
        let coordinators = Coordinators::new(numa::nodes(), serves, config.io_queues.max(1));
        let threads = (0..coordinators.count()).map(|_| OnceLock::new()).collect();
        Self { engine: config.engine, coordinators, threads, starting: Lock::default() }
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// The inbox for the requests of a thread, which never changes.
    pub(crate) fn inbox(
        &self,
        groups: &DiskGroups,
        disk: &str,
        submitter: Submitter,
    ) -> Result<&Arc<Inbox<Message>>, ShardError> {
        let number = self.coordinators.of(submitter);
        let place = &self.threads[number];
        if let Some(thread) = place.get() {
            return Ok(&thread.inbox);
        }
        let _starting = self.starting.lock();
        if let Some(thread) = place.get() {
            return Ok(&thread.inbox);
        }
        let thread =
            IoThread::start(groups, disk, number, &self.engine, self.coordinators.cpus(number))?;
        Ok(&place.get_or_init(|| OfProcess::new(thread)).inbox)
    }
}

impl IoThread {
    fn start(
        groups: &DiskGroups,
        disk: &str,
        number: usize,
        engine: &EngineConfig,
        cpus: Vec<usize>,
    ) -> Result<Self, ShardError> {
        let (started, ready) = channel();
        let (running, hung_up) = channel();
        let group = Arc::clone(groups.of(Op::Read));
        let (groups, engine, shutdown_timeout) = (groups.clone(), *engine, engine.shutdown_timeout);
        let builder = thread::Builder::new().name(format!("forebay-disk-{number}"));
        let thread = signals::blocked(|| {
            builder.spawn(move || {
                // The thread allocates memory on this node from now on.
                coordinators::pin(&cpus);
                run(&groups, &engine, &started, running);
            })
        })?;
        let full = |full| ShardError::NoShard { disk: disk.to_owned(), full };
        let ended = |_| io::Error::other("the I/O thread ended at its start");
        let inbox = ready.recv().map_err(ended)??.map_err(full)?;
        Ok(Self { inbox, thread, running: Lock::new(hung_up), shutdown_timeout, group })
    }
}

impl Drop for IoThread {
    /// Ends the thread. Nobody waits for its requests any more: waiting ones are dropped, and those
    /// in the disk are cancelled if possible. If the disk hangs, the wait ends after the engine has
    /// given up.
    fn drop(&mut self) {
        self.inbox.close();
        // The last handle can be dropped by a task that the I/O thread itself wakes.
        if thread::current().id() != self.thread.thread().id() {
            let running = self.running.get_mut();
            let ended = running.recv_timeout(self.shutdown_timeout.saturating_add(END_GRACE));
            if ended == Err(RecvTimeoutError::Timeout) {
                self.group.report(Event::Hang { disk: self.group.name.clone() });
            }
        }
    }
}

type Started = io::Result<Result<Arc<Inbox<Message>>, GroupFull>>;

/// The body of an I/O thread. `_running` is dropped last.
fn run(
    groups: &DiskGroups,
    config: &EngineConfig,
    started: &Sender<Started>,
    _running: Sender<()>,
) {
    let reactor = match Reactor::new(groups.clone(), config) {
        Ok(Ok(reactor)) => reactor,
        Ok(Err(full)) => {
            // The thread that starts this one waits for the message.
            let _ = started.send(Ok(Err(full)));
            return;
        }
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let inbox = Arc::new(Inbox::new(reactor.engine().waker()));
    let _ = started.send(Ok(Ok(Arc::clone(&inbox))));
    library_thread::begin();
    let mut reactor = Some(reactor);
    while let Some(present) = reactor {
        let mut worker = Worker::new(present, Arc::clone(&inbox));
        if contain(|| worker.work()).is_some() {
            return;
        }
        worker.fail_all();
        messages::warn(String::from(
            "an I/O thread panicked and was restarted; its requests ended with errors",
        ));
        reactor = restart(groups, config, &inbox);
    }
}

/// Makes a new reactor after a panic. `None` if the thread is to end.
fn restart(
    groups: &DiskGroups,
    config: &EngineConfig,
    inbox: &Arc<Inbox<Message>>,
) -> Option<Reactor> {
    loop {
        if let Ok(Ok(reactor)) = Reactor::new(groups.clone(), config) {
            let is_request = |message: &&Message| matches!(message, Message::Request(_));
            let goes_on = inbox.restart(reactor.engine().waker(), is_request);
            return goes_on.then_some(reactor);
        }
        if !inbox.return_all() {
            return None;
        }
        thread::sleep(TRY_AGAIN_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    use forebay_core::{DiskModel, GroupConfig, Policy, Time};
    use forebay_driver::QueueClass;

    use super::reply::{Completion, Promise, Submission};
    use super::*;
    use crate::engine::Operation;
    use crate::permit::DiskGroup;
    use crate::{AlignedBuf, DirectFile};

    fn answer(reply: &Reply) -> Completion {
        let begin = Instant::now();
        loop {
            if let Poll::Ready(answer) = reply.poll(&Context::from_waker(Waker::noop())) {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no answer");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_io_thread_that_panics_fails_its_requests_and_is_restarted() {
        let config = GroupConfig::new(DiskModel::unmeasured(), Policy::Unlimited);
        let group = Arc::new(DiskGroup::new("disk", config, 0, crate::events::Hook::default()));
        let id = group.io.add_class(None, 100).unwrap();
        let class = QueueClass { queue: 0, id, holder: false };
        let threads = IoThreads::new(&IoThreadsConfig::default(), |_| true);
        let inbox = threads.inbox(&DiskGroups::new(group, None), "disk", submitter()).unwrap();
        let reply = |operation| {
            Reply::new(Submission { class, since: Time::ZERO, submitter: 0, operation })
        };
        for _ in 0..3 {
            let (reader, _writer) = io::pipe().unwrap();
            let pipe = DirectFile::from_fd(OwnedFd::from(reader)).unwrap();
            let buffer = AlignedBuf::new(4096, 4096).unwrap();
            let hangs = reply(Operation::read(pipe, 0, buffer));
            hangs.send(inbox).unwrap();
            // More requests are answered than were counted, so the thread panics.
            for _ in 0..2 {
                let uncounted = reply(Operation::unlink("/nothing/there", 0).unwrap());
                inbox.send(Message::Request(Promise::new(uncounted)));
            }
            let error = answer(&hangs).result.unwrap_err();
            assert!(error.to_string().contains("panicked and was restarted"), "{error}");
            let next = reply(Operation::unlink("/nothing/there", 0).unwrap());
            next.send(inbox).unwrap();
            let error = answer(&next).result.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
