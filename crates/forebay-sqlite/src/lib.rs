//! A VFS of SQLite whose reads, commits, checkpoints and backups take turns by priority class.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scheduler = forebay::Scheduler::from_file("/etc/forebay/forebay.yaml".as_ref())?;
//! forebay_sqlite::register(&scheduler)?;
//! // databases that are opened from now on use forebay, in any language
//! # Ok(())
//! # }
//! ```
//!
//! It wraps the VFS that was the default. SQLite opens, locks and closes its files as ever, and the
//! wrapped VFS does the I/O, on its own descriptors: its `read`, `pread`, `write` and `pwrite` are
//! replaced by ours (`xSetSystemCall`), which ask the scheduler first. With the feature `extension`
//! this crate is an extension that can be loaded, and has no SQLite but that of its host.
//!
//! `docs/sqlite.md` says which class what is in, and what was measured.

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
