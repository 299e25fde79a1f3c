//! A batch of requests that waits.

use forebay_core::Ticket;

use crate::sys::waker::KeptWaker;

/// A batch that is not granted as a whole, or whose task has not noticed that.
pub(super) struct Batch {
    /// In the order of the requests.
    pub(super) tickets: Box<[Ticket]>,
    /// How many of them are in the queue.
    pub(super) queued: usize,
    /// Each has had its turn.
    pub(super) paid: bool,
    /// Whom to wake when none is in the queue any more.
    pub(super) waker: Option<KeptWaker>,
}
