//! The classes by what a file is used for.

use forebay::{Class, ClassError, Scheduler};

/// The classes of a VFS, with the shares that they have unless the scheduler has them already.
pub const CLASSES: [(&str, u32); 5] =
    [("queries", 1000), ("commits", 200), ("checkpoint", 100), ("vacuum", 50), ("backup", 50)];

/// The class of each kind of I/O of a connection that is in no class of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Classes {
    /// Reads, of the database and of its log.
    pub queries: Class,
    /// Writes to a WAL or a journal; in rollback mode those to the database too.
    pub commits: Class,
    /// What moves pages from the WAL to the database.
    pub checkpoint: Class,
    /// What overwrites the whole database.
    pub vacuum: Class,
}

impl Classes {
    /// Those of the scheduler, and the ones of [`CLASSES`] that it does not have yet.
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
