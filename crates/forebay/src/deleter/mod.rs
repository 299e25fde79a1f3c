//! Deleting files without latency spikes: a part at a time, each in the turn of a class.

mod claims;
mod deletion;
mod directories;
mod directory;
mod entry;
mod entry_name;
mod error;
mod flusher;
mod freeing;
mod item;
mod jobs;
mod lease;
mod left_over;
mod open_file;
mod options;
mod pace;
mod shared;
mod state;
mod steps;
mod trash;
mod urgency;
mod worker;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::deletion::{
    Deleted, DeletedHow, Deletion, DeletionProgress, DeletionState, UnlinkReason,
};
pub use self::error::{DeleteError, DeleteErrorCause, DeleteOperation, TrashFault};
pub use self::options::{DeleterError, DeleterOptions, TRASH_NAME_DEFAULT};

use self::deletion::Target;
use self::shared::{Job, Shared};
use crate::Class;
use crate::metrics::Discards;
use crate::sys::sync::Clock;

/// Deletes files at the pace of a class.
///
/// On a file system that is mounted with `discard`, a deleted file becomes discards: one for each
/// extent, all at once when the file system flushes its log, up to half a minute later. Reads wait
/// behind them for tens of milliseconds. So a deleter moves a file away at once, frees it from
/// its end in steps that each have a permit of the class, and flushes after each, so that the disk
/// gets the discards of that step alone.
///
/// - The file is moved into a *trash directory* on the same file system: `.forebay-trash` alongside
///   it, unless [options](DeleterOptions) say otherwise. When [`Deletion::wait_removed`]
///   returns that is durable. What is in the trash when the process ends, in whatever way, is
///   deleted by another deleter: by one that deletes in the same directory, within a second, or
///   by [`Deleter::empty_trash`].
/// - Each file in a trash has one deleter at a time, of whichever process. Its claim ends with its
///   process. So several may use one trash: each keeps its rate, and no file is freed or counted
///   twice.
/// - A step frees at most what the disk does within its [effective
///   goal](crate::Disk::effective_goal), and what the [rate](DeleterOptions::rate) frees in
///   80 ms, in bytes and in extents. Small files share steps.
/// - Files with other names (hard links), files that anybody has open, and all that are no regular
///   files are only unlinked. So is every file where nothing is discarded, as pacing buys nothing
///   there; [`Deleted::how`] says why.
/// - As the backlog nears a ceiling, or space lacks, rate and shares rise. The shares of the class
///   are changed for that: give it a class of its own.
///
/// Whether a file has other names or is open is looked at after it was moved and before anything is
/// freed, and each step stops if somebody wants to open it. The program keeps its `fcntl` record
/// locks on a file that it has open: the deleter looks in a descriptor table of its own. Only
/// where the system refuses that (Linux before 5.9, some containers) they are lost. One race
/// remains: who found the file before it was moved, and opens it only after the first step, waits
/// until it is deleted or for `/proc/sys/fs/lease-break-time`, and then sees zeros. And who links
/// the file from `/proc/self/fd` in that time keeps a name of an empty file.
///
/// A path is resolved as `unlink(2)` does: links on the way are followed, at its end never.
/// Directories are refused.
///
/// One thread does it all, started when there is something to do, ended when there was nothing for
/// a second. Handles are cheap to clone; dropping all of them stops nothing. In a forked child all
/// is refused.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("table");
/// # std::fs::write(&path, [7; 4096])?;
/// use forebay::{Deleter, DeleterOptions, Scheduler};
///
/// let scheduler = Scheduler::builder().build()?;
/// let class = scheduler.add_class("deletes", 50)?;
/// let deleter = Deleter::new(&class, DeleterOptions::new().rate(512 << 20))?;
///
/// let deletion = deleter.delete(&path);
/// deletion.wait_removed()?; // it does not come back
/// let deleted = deletion.wait()?; // and its blocks are free
/// println!("{:?}: {} bytes in {} steps", deleted.how, deleted.bytes, deleted.steps);
/// # assert!(!path.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Deleter {
    shared: Arc<Shared>,
}

impl Deleter {
    /// A deleter in the turn of `class`, on whichever disk each file is. Nothing is started yet.
    ///
    /// # Errors
    /// Options that are out of range.
    pub fn new(class: &Class, options: DeleterOptions) -> Result<Self, DeleterError> {
        options.check()?;
        Ok(Self { shared: Arc::new(Shared::new(class.clone(), options)) })
    }

    /// Deletes the file at `path`, relative to what is the current directory when its turn comes.
    /// Returns at once; errors are in the [`Deletion`].
    pub fn delete(&self, path: impl AsRef<Path>) -> Deletion {
        let target = Arc::new(Target::new(path.as_ref().to_owned()));
        self.ask(vec![Job::Delete(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// Deletes all of these, in their order: [`Deleter::delete`] for each, with one flush for
    /// many of them.
    pub fn delete_all<P: Into<PathBuf>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Vec<Deletion> {
        let targets: Vec<_> =
            paths.into_iter().map(|path| Arc::new(Target::new(path.into()))).collect();
        self.ask(targets.iter().map(|target| Job::Delete(Arc::clone(target))).collect());
        targets.into_iter().map(Deletion::of).collect()
    }

    /// Deletes what earlier processes left in the trash directory in `dir`: for when a program
    /// starts. It ends when all is gone that was there when it began, except what this deleter
    /// put there, which has its own handles.
    ///
    /// Several that empty one trash share it. It waits for what another deleter has, and takes
    /// that over within a second if the other's process ends. [`Deleted::files`] counts what this
    /// call deleted. That is 0 if there is no trash, or if all of it had another handle or another
    /// deleter. A deleter that is stopped for long (`SIGSTOP`) is waited for as long.
    pub fn empty_trash(&self, dir: impl AsRef<Path>) -> Deletion {
        let target = Arc::new(Target::new(dir.as_ref().to_owned()));
        self.ask(vec![Job::EmptyTrash(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// Resolves once nothing waits any more, and the trash directories that are empty then are
    /// removed: for when a program ends. Otherwise they are after a second without work.
    pub fn drain(&self) -> Deletion {
        let target = Arc::new(Target::new(PathBuf::new()));
        self.ask(vec![Job::Drain(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// The class in whose turn it deletes.
    pub fn class(&self) -> &Class {
        &self.shared.class
    }

    /// What the deleters of the class have deleted, and what waits for them; nothing in a forked
    /// child.
    pub fn snapshot(&self) -> Discards {
        if !self.shared.process.is_here() {
            return Discards::default();
        }
        self.shared.counts().snapshot(self.shared.class.name(), Clock::of_process().now())
    }

    fn ask(&self, jobs: Vec<Job>) {
        match self.shared.process.check() {
            Ok(()) => worker::ask(&self.shared, jobs),
            Err(forked) => jobs.iter().for_each(|job| job.target().end(Err(forked.into()))),
        }
    }
}

impl fmt::Debug for Deleter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deleter")
            .field("class", &self.shared.class)
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
