//! Deletion of files without latency spikes: in steps, each scheduled in a class.

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

/// Deletes files in small steps, scheduled in a class.
///
/// On a file system that is mounted with `discard`, a deleted file becomes discards: one for each
/// extent, all at once when the file system flushes its log, up to half a minute later. Reads wait
/// behind them for tens of milliseconds. So a deleter moves a file to a trash at once, and frees it
/// from its end in steps. Each step has a permit of the class and ends with a flush, so that the
/// disk gets only the discards of that step.
///
/// - The file is moved into a *trash directory* on the same file system: `.forebay-trash` alongside
///   it, unless [options](DeleterOptions) say otherwise. When [`Deletion::wait_removed`] returns,
///   the move is durable. Files that are in the trash when the process ends, in any way, are
///   deleted by another deleter: by one that deletes in the same directory, within a second, or by
///   [`Deleter::empty_trash`].
/// - Each file in a trash has one deleter at a time, of whichever process. Its claim ends with its
///   process. So several may use one trash: each keeps its rate, and no file is freed or counted
///   twice.
/// - A step frees at most what the disk does within its [effective
///   goal](crate::Disk::effective_goal), and what the [rate](DeleterOptions::rate) frees in
///   80 ms, in bytes and in extents. Small files share steps.
/// - Files with other names (hard links), open files, and everything but regular files are only
///   unlinked. So is every file whose deletion sends no discards, because pacing is useless there.
///   [`Deleted::how`] has the reason.
/// - As the backlog nears a maximum, or free space becomes scarce, rate and shares rise. The
///   deleter changes the shares of the class for that, so give it a class of its own.
///
/// The deleter checks for other names and open descriptors after the move and before anything is
/// freed, and each step stops if a program opens the file. The program keeps its `fcntl` record
/// locks on a file that it has open, because the deleter uses a descriptor table of its own. The
/// locks are lost only if the system refuses such a table (Linux before 5.9, some containers). One
/// race remains: a program may have looked up the file before it was moved, and open it after the
/// first step. Then it waits until the file is deleted or for `/proc/sys/fs/lease-break-time`, and
/// then reads zeros. A program that links the file from `/proc/self/fd` in that time gets a name of
/// an empty file.
///
/// Paths are resolved as by `unlink(2)`: links in directories are followed, but not a link at the
/// end. Directories are refused.
///
/// One thread does all the work. It is started when there is work, and ends after a second without
/// work. Handles are cheap to clone. Dropping all of them does not stop the deletions. In a forked
/// child all calls fail.
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
    /// Makes a deleter in `class`, for files on all disks. It does not start a thread yet.
    ///
    /// # Errors
    /// Options that are out of range.
    pub fn new(class: &Class, options: DeleterOptions) -> Result<Self, DeleterError> {
        options.check()?;
        Ok(Self { shared: Arc::new(Shared::new(class.clone(), options)) })
    }

    /// Deletes the file at `path`. A relative path is resolved when the deletion begins. Returns at
    /// once; errors are in the [`Deletion`].
    pub fn delete(&self, path: impl AsRef<Path>) -> Deletion {
        let target = Arc::new(Target::new(path.as_ref().to_owned()));
        self.ask(vec![Job::Delete(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// Deletes all of these in order: [`Deleter::delete`] for each, with one flush for many of
    /// them.
    pub fn delete_all<P: Into<PathBuf>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Vec<Deletion> {
        let targets: Vec<_> =
            paths.into_iter().map(|path| Arc::new(Target::new(path.into()))).collect();
        self.ask(targets.iter().map(|target| Job::Delete(Arc::clone(target))).collect());
        targets.into_iter().map(Deletion::of).collect()
    }

    /// Deletes files that earlier processes left in the trash of the directory `dir`.
    ///
    /// Call it when a program starts. It ends when all files are gone that were there when it
    /// began, except those of this deleter, which have their own handles. Several deleters that
    /// empty one trash share its files. It waits for the files of another deleter, and takes them
    /// over within a second if the other's process ends. [`Deleted::files`] counts the files that
    /// this call deleted. It is 0 if there is no trash, or if all its files had another handle or
    /// another deleter. It also waits for a deleter whose process is stopped (`SIGSTOP`).
    pub fn empty_trash(&self, dir: impl AsRef<Path>) -> Deletion {
        let target = Arc::new(Target::new(dir.as_ref().to_owned()));
        self.ask(vec![Job::EmptyTrash(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// Resolves after all deletions have ended and the empty trash directories are removed. Await
    /// it when a program ends. Otherwise trash directories are removed after a second without work.
    pub fn drain(&self) -> Deletion {
        let target = Arc::new(Target::new(PathBuf::new()));
        self.ask(vec![Job::Drain(Arc::clone(&target))]);
        Deletion::of(target)
    }

    /// The class in which it deletes.
    pub fn class(&self) -> &Class {
        &self.shared.class
    }

    /// The counters of the class's deleters, and their backlog. All zero in a forked child.
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
