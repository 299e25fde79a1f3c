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

/// Largest [`EngineConfig::depth_max`].
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
    /// Most operations in flight, 1 to [`DEPTH_MAX`]; 128 unless set.
    pub depth_max: u32,
    /// Most threads of [`Backend::Threads`] and [`Backend::LinuxAio`], at least 1; 32 unless set. There
    /// are never more than `depth_max`.
    pub threads_max: u32,
    /// How long dropping the engine waits for operations in flight; 1 s unless
    /// set. The memory of those that take longer is not freed.
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
/// Dropping the engine cancels what can be cancelled and waits, up to
/// [`EngineConfig::shutdown_timeout`], for the rest. Operations pushed since the
/// last submission may or may not have been executed then.
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
    /// What `config` chooses, and why that is not io_uring where it decides.
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
    /// `InvalidInput` for a setting out of range, or that the chosen backend does
    /// not know. The reason why there is no
    /// io_uring, or no linux-aio: with [`BackendChoice::IoUring`] and
    /// [`BackendChoice::LinuxAio`] any, with [`BackendChoice::Auto`] one that may
    /// pass, such as a lack of descriptors or of memory, or any where
    /// [`EngineConfig::sqpoll`] needs a ring.
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

    /// What executes the operations.
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

    /// Operations pushed whose completions have not been popped.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Queues an operation for the next [`Engine::submit_and_wait`]. Makes a system call only when
    /// a batch of operations is complete, which is then passed to the kernel. `token` comes back
    /// with the completion; it need not be unique, except for [`Engine::cancel`].
    ///
    /// # Errors
    ///
    /// The operation comes back with the reason it was not accepted.
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
    /// a wake-up, or `timeout` has passed.
    ///
    /// A timeout of zero does not sleep; `None` sets no limit. It may return earlier, for example
    /// after a signal.
    ///
    /// # Errors
    ///
    /// When the kernel takes no submissions (`EAGAIN` when it is out of
    /// memory), or no thread can be started. What was pushed stays queued: the
    /// call can be repeated.
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

    /// Finds what has completed, for [`Engine::pop`]. Takes no wake-up: that is
    /// for the next [`Engine::submit_and_wait`], which it keeps from sleeping.
    pub(crate) fn collect(&mut self) {
        if !self.executor.process().is_here() {
            return;
        }
        match &mut *self.executor {
            Executor::Uring(uring) => uring.collect(),
            // What is refused here is refused at the next submission, which says so.
            Executor::Aio(aio) => drop(aio.collect()),
            Executor::Threads(threads) => {
                threads.collect();
            }
            Executor::Null(null) => null.collect(),
        }
    }

    /// The next completion of those that the last [`Engine::submit_and_wait`]
    /// found: a loop that pops all and pushes for each ends.
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
            // SAFETY: the backend says so; one that does nothing has seen to it.
            unsafe { completed.operation.set_transferred(len) };
        }
        Some(completed)
    }

    /// Tries to cancel the operation with `token`. It still completes: with `ECANCELED`, or as
    /// usual if it was too far advanced, which is the rule after it was sent to a disk. Returns
    /// false if it could not be tried.
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

    /// How often a first attempt without blocking failed. io_uring makes such attempts for reads of
    /// direct files and for writes; for buffered reads the kernel waits without a thread.
    ///
    /// With linux-aio they are all reads and writes. With threads they are reads and writes of
    /// buffered files: direct ones always have a thread. Files of which the kernel knows no such
    /// attempts, and flushes and the like, are never tried and not counted.
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

    /// A handle for other threads to end a sleep of this engine.
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
