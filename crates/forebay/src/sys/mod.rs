//! Interfaces to the system: time, processes, NUMA nodes, locks and threads.

pub(crate) mod clock;
pub(crate) mod descriptor_table;
pub(crate) mod fork;
pub(crate) mod library_thread;
pub(crate) mod lock;
pub(crate) mod numa;
pub(crate) mod panics;
pub(crate) mod record_lock;
pub(crate) mod signals;
pub(crate) mod sync;
pub(crate) mod ticker;
pub(crate) mod waker;
pub(crate) mod workers;
