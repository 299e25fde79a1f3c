//! The submitting threads, by number and by NUMA node.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::numa;

/// A thread that submits requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submitter {
    /// The thread's number among all submitting threads.
    pub(crate) number: u64,
    /// The NUMA node on which the thread ran at its first request.
    pub(super) node: usize,
    /// The thread's number among those of the node.
    pub(super) number_on_node: u64,
}

/// The calling thread.
pub(crate) fn submitter() -> Submitter {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static NEXT_ON_NODE: LazyLock<Box<[AtomicU64]>> =
        LazyLock::new(|| (0..numa::count()).map(|_| AtomicU64::new(0)).collect());
    thread_local! {
        static THIS: Cell<Option<Submitter>> = const { Cell::new(None) };
    }
    THIS.get().unwrap_or_else(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let node = numa::node_of_this_thread();
        let next = NEXT_ON_NODE.get(node);
        let number_on_node = next.map_or(number, |next| next.fetch_add(1, Ordering::Relaxed));
        let this = Submitter { number, node, number_on_node };
        THIS.set(Some(this));
        this
    })
}
