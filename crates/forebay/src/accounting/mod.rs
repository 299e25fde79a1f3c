//! The traffic of disks against the admitted bytes, and permits that are held for too long.
//!
//! There is one table for the process, because the kernel's counters of the process cover all its
//! schedulers, which may share disks. One thread updates it once a second, and so does each
//! snapshot.
//!
//! Decision: `docs/decisions/0034-unscheduled-io.md`.

mod device;
mod held;
mod kernel;
mod ledger;
mod mapped;
mod mean_held;
mod unit;
mod warning;
mod watch;

pub(crate) use self::watch::{snapshot_of, watch};
