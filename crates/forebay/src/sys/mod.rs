//! What the rest takes from the system: time, processes, NUMA nodes, locks and threads.

pub(crate) mod clock;
pub(crate) mod fork;
pub(crate) mod numa;
pub(crate) mod panics;
pub(crate) mod sync;
pub(crate) mod ticker;
pub(crate) mod workers;
