//! Batches of requests whose grants are not complete or not collected.

use forebay_core::Ticket;

use crate::sys::waker::KeptWaker;

/// A batch that is not fully granted, or whose task has not seen the grant yet.
pub(super) struct Batch {
    /// The tickets, in the order of the requests.
    pub(super) tickets: Box<[Ticket]>,
    /// The number of these tickets that are in the queue.
    pub(super) queued: usize,
    /// Whether the disk time of each request is charged.
    pub(super) paid: bool,
    /// The task or thread to wake when no ticket is in the queue any more.
    pub(super) waker: Option<KeptWaker>,
}
