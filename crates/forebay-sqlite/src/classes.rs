//! The classes by kind of I/O.

use forebay::{Class, ClassError, Scheduler};

/// The names and shares of the classes that a VFS uses. A class that the scheduler already has keeps
/// its shares.
pub const CLASSES: [(&str, u32); 5] =
    [("queries", 1000), ("commits", 200), ("checkpoint", 100), ("vacuum", 50), ("backup", 50)];

/// The class of each kind of I/O, for connections without a class of their own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Classes {
    /// Reads of the database and of its WAL or journal.
    pub queries: Class,
    /// Writes to a WAL or a journal; in rollback mode those to the database too.
    pub commits: Class,
    /// Checkpoints, which copy pages from the WAL to the database.
    pub checkpoint: Class,
    /// `VACUUM`, which overwrites the whole database.
    pub vacuum: Class,
}

impl Classes {
    /// Looks up [`CLASSES`] in the scheduler, and adds those that it lacks.
    ///
    /// # Errors
    /// Those of [`Scheduler::add_class`].
    pub(crate) fn of(scheduler: &Scheduler) -> Result<Self, ClassError> {
        let mut all = Vec::new();
        for (name, shares) in CLASSES {
            all.push(match scheduler.class(name) {
                Some(class) => class,
                None => scheduler.add_class(name, shares)?,
            });
        }
        let [queries, commits, checkpoint, vacuum] = [0, 1, 2, 3].map(|n| all[n].clone());
        Ok(Self { queries, commits, checkpoint, vacuum })
    }
}
