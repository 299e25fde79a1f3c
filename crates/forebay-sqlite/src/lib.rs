//! A VFS for SQLite that schedules reads, commits, checkpoints and backups by priority class.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scheduler = forebay::Scheduler::from_file("/etc/forebay/forebay.yaml".as_ref())?;
//! forebay_sqlite::register(&scheduler)?;
//! // Databases that this process opens from now on use forebay, whatever language opens them.
//! # Ok(())
//! # }
//! ```
//!
//! It wraps the default VFS. SQLite opens, locks and closes its files as before, and the wrapped VFS
//! does the I/O on its own descriptors. Its system calls `read`, `pread`, `write` and `pwrite` are
//! replaced (`xSetSystemCall`) by functions that ask the scheduler first. With the feature
//! `extension` this crate is a loadable extension, which uses the SQLite of its host.
//!
//! `docs/sqlite.md` lists the class of each kind of I/O, and the measurements.

mod classes;
mod connection;
mod context;
#[cfg(feature = "extension")]
mod extension;
mod file;
mod scheduled;
mod system_calls;
mod unscheduled;
mod vfs;

pub use self::classes::{CLASSES, Classes};
pub use self::unscheduled::Counters;
pub use self::vfs::{Options, RegisterError, Vfs, register, register_with};
