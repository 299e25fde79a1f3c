//! What the disks did against what was admitted, and permits that are held for too long.
//!
//! The table is one for the process, for what the kernel counts of it is of all its schedulers, and
//! these may share disks. It is looked at once a second by one thread, and by who makes a snapshot.
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
