//! Execution of disk operations, by io_uring, or if that is forbidden by linux-aio or threads.
//!
//! An [`Engine`] belongs to one thread. It takes operations, each with a token of the caller's
//! choice, executes them as they come, and returns them when they are completed. It owns an
//! operation's buffers and descriptor as long as the kernel uses them, whatever the caller drops.
//!
//! ```
//! use forebay::engine::{Engine, EngineConfig, Operation};
//! use forebay::{AlignedBuf, DirectFile};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("data");
//! let file = DirectFile::options().read(true).write(true).create(true).open(path)?;
//! let mut engine = Engine::new(&EngineConfig::default())?;
//! if let Some(reason) = engine.fallback_reason() {
//!     eprintln!("I/O is done by {}: {reason}", engine.backend().name());
//! }
//!
//! let buffer = AlignedBuf::new(4096, 4096)?;
//! engine.push(1, Operation::write(file, 0, buffer)).map_err(|(error, _)| error)?;
//! let written = loop {
//!     engine.submit_and_wait(None)?;
//!     if let Some(completed) = engine.pop() {
//!         break completed;
//!     }
//! };
//! assert_eq!((written.token, written.result?), (1, 4096));
//! # Ok(())
//! # }
//! ```
//!
//! Decision: `docs/decisions/0038-io-backends.md`.

mod aio;
mod blocking;
mod nonblocking;
mod null;
mod operation;
mod segment;
mod threads;
mod unavailable;
mod uring;
mod waker;

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

pub use self::operation::{Completion, Operation, PushError, Retries, SEGMENTS_MAX};
pub use self::waker::EngineWaker;
pub use crate::buffer::{ReadBuf, WriteBuf};

use crate::sys::fork::OfProcess;

use self::aio::Aio;
use self::null::Null;
use self::threads::Threads;
use self::unavailable::Unavailable;
use self::uring::Uring;
use self::waker::WakeDescriptor;

/// The largest value of [`EngineConfig::depth_max`].
pub const DEPTH_MAX: u32 = 16_384;

/// Which backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "internals",
    expect(clippy::manual_non_exhaustive, reason = "the hidden one is for benchmarks and tests")
)]
pub enum BackendChoice {
    /// io_uring. If the kernel or a seccomp filter refuses it (`EPERM`, `EACCES`, `ENOSYS`,
    /// `EINVAL`), linux-aio. If that is refused in the same way, or `fs.aio-max-nr` is used up,
    /// threads. Temporary errors, such as a lack of descriptors, are returned.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// linux-aio or an error.
    LinuxAio,
    /// Threads.
    Threads,
    /// Operations are not executed: see [`Backend::Null`].
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    Null,
}

/// The mechanism that executes an engine's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The kernel, through an io_uring of the engine's own.
    IoUring,
    /// The kernel, through a context of linux-aio of the engine's own, for reads and writes of
    /// direct files that do not block; threads for everything else.
    LinuxAio,
    /// A bounded pool of threads that make blocking calls.
    Threads,
    /// None: every operation succeeds when it is submitted. It transfers nothing, but reports that
    /// it transferred everything. This is for benchmarks of the code around the engine, needs the
    /// feature `internals`, and is not a stable interface.
    #[doc(hidden)]
    Null,
}

impl Backend {
    /// Its name in metrics, in results and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::LinuxAio => "linux-aio",
            Self::Threads => "threads",
            Self::Null => "null",
        }
    }
}

/// Settings of an [`Engine`].
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Which backend to use; [`BackendChoice::Auto`] unless set.
    pub backend: BackendChoice,
    /// The most operations in flight, 1 to [`DEPTH_MAX`]; 128 unless set.
    pub depth_max: u32,
    /// The most threads of [`Backend::Threads`] and [`Backend::LinuxAio`], at least 1; 32 unless
    /// set. There are never more than `depth_max`.
    pub threads_max: u32,
    /// The time for which dropping the engine waits for operations in flight; 1 s unless set. The
    /// memory of operations that take longer is not freed.
    pub shutdown_timeout: Duration,
    /// Uses a kernel thread that takes pushed operations without a system call
    /// (`IORING_SETUP_SQPOLL`), and sleeps after it found none for this time, in steps of a
    /// millisecond; `None` unless set. Such a thread keeps a processor busy, so it is for machines
    /// with a spare processor for each engine. It works only with io_uring: with another backend it
    /// is an error.
    pub sqpoll: Option<Duration>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            backend: BackendChoice::Auto,
            depth_max: 128,
            threads_max: 32,
            shutdown_timeout: Duration::from_secs(1),
            sqpoll: None,
        }
    }
}

/// Executes operations for the thread that made it.
///
/// Operations run concurrently and complete in any order. An operation that depends on another one
/// has to wait for its completion.
///
/// Dropping the engine cancels operations if possible, and waits for the others for at most
/// [`EngineConfig::shutdown_timeout`]. Operations that were pushed after the last submission may or
/// may not have been executed.
pub struct Engine {
    executor: OfProcess<Executor>,
    depth_max: usize,
    in_flight: usize,
    fallback_reason: Option<String>,
    /// The kernel takes submissions to a ring from one thread only.
    bound_to_thread: PhantomData<*const ()>,
}

enum Executor {
    Uring(Box<Uring>),
    Aio(Box<Aio>),
    Threads(Threads),
    #[cfg_attr(not(feature = "internals"), expect(dead_code, reason = "nobody can choose it"))]
    Null(Null),
}

impl Executor {
    /// Makes the executor for `config`. With [`BackendChoice::Auto`] it also returns why that is
    /// not io_uring.
    fn new(config: &EngineConfig) -> io::Result<(Self, Option<String>)> {
        let EngineConfig { depth_max, shutdown_timeout, sqpoll, .. } = *config;
        let threads_max = config.threads_max.min(depth_max);
        let uring =
            || Uring::new(depth_max, shutdown_timeout, sqpoll).map(Box::new).map(Self::Uring);
        let aio =
            || Aio::new(depth_max, threads_max, shutdown_timeout).map(Box::new).map(Self::Aio);
        let threads =
            || Threads::new(threads_max, shutdown_timeout, blocking::execute).map(Self::Threads);
        let executor = match config.backend {
            BackendChoice::Auto => {
                let no_ring = match uring() {
                    Err(Unavailable { error, is_refusal: true }) if sqpoll.is_none() => error,
                    ring => return Ok((ring.map_err(|none| none.error)?, None)),
                };
                return match aio() {
                    Err(Unavailable { error, is_refusal: true }) => {
                        Ok((threads()?, Some(format!("{no_ring}; {error}"))))
                    }
                    aio => Ok((aio.map_err(|none| none.error)?, Some(no_ring.to_string()))),
                };
            }
            BackendChoice::IoUring => uring().map_err(|none| none.error)?,
            BackendChoice::LinuxAio => aio().map_err(|none| none.error)?,
            BackendChoice::Threads => threads()?,
            #[cfg(feature = "internals")]
            BackendChoice::Null => Self::Null(Null::new(depth_max)?),
        };
        Ok((executor, None))
    }
}

impl Engine {
    /// Makes an engine for the calling thread.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a setting that is out of range, or that the chosen backend does not
    /// support. Otherwise the reason why io_uring or linux-aio is not available.
    /// [`BackendChoice::IoUring`] and [`BackendChoice::LinuxAio`] return any such reason.
    /// [`BackendChoice::Auto`] returns only temporary ones, such as a lack of descriptors or
    /// memory, and with [`EngineConfig::sqpoll`] any reason why there is no ring.
    pub fn new(config: &EngineConfig) -> io::Result<Self> {
        let EngineConfig { depth_max, threads_max, .. } = *config;
        if !(1..=DEPTH_MAX).contains(&depth_max) {
            return Err(invalid(format!("depth_max is {depth_max}: choose 1 to {DEPTH_MAX}")));
        }
        if threads_max == 0 {
            return Err(invalid("threads_max is 0: choose at least 1".into()));
        }
        if config.sqpoll.is_some()
            && !matches!(config.backend, BackendChoice::Auto | BackendChoice::IoUring)
        {
            return Err(invalid("sqpoll is set: choose io_uring, or leave sqpoll out".into()));
        }
        let (executor, fallback_reason) = Executor::new(config)?;
        Ok(Self {
            executor: OfProcess::new(executor),
            depth_max: depth_max as usize,
            in_flight: 0,
            fallback_reason,
            bound_to_thread: PhantomData,
        })
    }

    /// The backend that executes the operations.
    pub fn backend(&self) -> Backend {
        match *self.executor {
            Executor::Uring(_) => Backend::IoUring,
            Executor::Aio(_) => Backend::LinuxAio,
            Executor::Threads(_) => Backend::Threads,
            Executor::Null(_) => Backend::Null,
        }
    }

    /// Why [`BackendChoice::Auto`] does not use io_uring, and the remedy. `None` if it does, and
    /// for every other choice.
    pub fn fallback_reason(&self) -> Option<&str> {
        self.fallback_reason.as_deref()
    }

    /// The number of pushed operations whose completions have not been popped.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues an operation for the next [`Engine::submit_and_wait`]. It makes a system call only if
    /// a batch of operations is complete, which is then passed to the kernel. `token` is returned
    /// with the completion. It need not be unique, except for [`Engine::cancel`].
    ///
    /// # Errors
    ///
    /// The operation is returned with the reason why it was not accepted.
    pub fn push(&mut self, token: u64, operation: Operation) -> Result<(), (PushError, Operation)> {
        if let Err(forked) = self.executor.process().check() {
            return Err((forked.into(), operation));
        }
        if let Err(error) = operation.check() {
            return Err((error, operation));
        }
        if self.in_flight == self.depth_max {
            return Err((PushError::Full, operation));
        }
        match &mut *self.executor {
            Executor::Uring(uring) => {
                uring.push(token, operation).map_err(|operation| (PushError::Full, operation))?;
            }
            Executor::Aio(aio) => aio.push(token, operation),
            Executor::Threads(threads) => threads.push(token, operation),
            Executor::Null(null) => null.push(token, operation),
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Passes all pushed operations to the kernel, then sleeps until there is a completion to pop,
    /// a wake-up comes, or `timeout` has passed.
    ///
    /// With a timeout of zero it does not sleep; `None` sets no limit. It may return earlier, for
    /// example after a signal.
    ///
    /// # Errors
    ///
    /// The kernel accepts no submissions (`EAGAIN` if it is out of memory), or no thread can be
    /// started. The pushed operations stay queued, so the call can be repeated.
    pub fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.executor.process().check()?;
        match &mut *self.executor {
            Executor::Uring(uring) => uring.submit_and_wait(timeout),
            Executor::Aio(aio) => aio.submit_and_wait(timeout),
            Executor::Threads(threads) => threads.submit_and_wait(timeout),
            Executor::Null(null) => {
                null.submit_and_wait(timeout);
                Ok(())
            }
        }
    }

    /// Collects completions for [`Engine::pop`]. It does not consume a wake-up, which the next
    /// [`Engine::submit_and_wait`] does without a sleep.
    pub(crate) fn collect(&mut self) {
        if !self.executor.process().is_here() {
            return;
        }
        match &mut *self.executor {
            Executor::Uring(uring) => uring.collect(),
            // An error here recurs at the next submission, which returns it.
            Executor::Aio(aio) => drop(aio.collect()),
            Executor::Threads(threads) => {
                threads.collect();
            }
            Executor::Null(null) => null.collect(),
        }
    }

    /// The next of the completions that the last [`Engine::submit_and_wait`] found. So a loop that
    /// pops all completions, and pushes an operation for each, ends.
    pub fn pop(&mut self) -> Option<Completion> {
        self.executor.process().check().ok()?;
        let mut completed = match &mut *self.executor {
            Executor::Uring(uring) => uring.pop(),
            Executor::Aio(aio) => aio.pop(),
            Executor::Threads(threads) => threads.pop(),
            Executor::Null(null) => null.pop(),
        }?;
        self.in_flight -= 1;
        if let Ok(len) = completed.result {
            // SAFETY: the backend reports that it transferred `len` bytes. The null backend has
            // initialised them.
            unsafe { completed.operation.set_transferred(len) };
        }
        Some(completed)
    }

    /// Tries to cancel the operation with `token`. The operation still completes: with `ECANCELED`,
    /// or as usual if it was too far advanced, which is the rule once it is in the disk. Returns
    /// false if the cancellation could not be tried.
    pub fn cancel(&mut self, token: u64) -> bool {
        if !self.executor.process().is_here() {
            return false;
        }
        match &mut *self.executor {
            Executor::Uring(uring) => uring.cancel(token),
            Executor::Aio(aio) => aio.cancel(token),
            Executor::Threads(threads) => threads.cancel(token),
            Executor::Null(_) => false,
        }
    }

    /// The number of failed first attempts without blocking. io_uring makes such attempts for reads
    /// of direct files and for writes. For buffered reads the kernel waits without a thread.
    ///
    /// linux-aio makes them for all reads and writes. The backend of threads makes them for
    /// buffered files, because requests of direct files always have a thread. Flushes and the like
    /// are never tried, nor are files for which the kernel does not support such attempts. These
    /// are not counted.
    pub fn retries(&self) -> Retries {
        match &*self.executor {
            Executor::Uring(uring) => uring.retries,
            Executor::Aio(aio) => aio.retries(),
            Executor::Threads(threads) => threads.retries,
            Executor::Null(_) => Retries::default(),
        }
    }

    /// Makes the engine's descriptor ([`AsFd`]) readable as soon as there is something to do: a
    /// present or later completion or wake-up. It applies until the next
    /// [`Engine::submit_and_wait`]. Pushed operations have to be submitted before.
    pub fn watch(&mut self) {
        if !self.executor.process().is_here() {
            return;
        }
        match &mut *self.executor {
            Executor::Uring(uring) => uring.watch(),
            Executor::Aio(aio) => aio.watch(),
            Executor::Threads(threads) => threads.watch(),
            Executor::Null(null) => null.watch(),
        }
    }

    /// A handle with which other threads can end a sleep of this engine.
    pub fn waker(&self) -> EngineWaker {
        EngineWaker::new(Arc::clone(self.descriptor()))
    }

    fn descriptor(&self) -> &Arc<WakeDescriptor> {
        match &*self.executor {
            Executor::Uring(uring) => &uring.descriptor,
            Executor::Aio(aio) => &aio.descriptor,
            Executor::Threads(threads) => threads.descriptor(),
            Executor::Null(null) => &null.descriptor,
        }
    }
}

/// The descriptor to sleep on in an event loop: see [`Engine::watch`].
impl AsFd for Engine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor().watched()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("backend", &self.backend())
            .field("in_flight", &self.in_flight)
            .field("depth_max", &self.depth_max)
            .finish_non_exhaustive()
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
