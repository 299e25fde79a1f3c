//! A request that must not wait for others: its owner holds what they wait for.

use core::fmt;

use super::{EnqueueError, IoQueue, ask};
use crate::requests::Ticket;
use crate::{ClassId, Op, Time};

/// Why a request did not go at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The rate, or a limit of its class, is used up: try again at this time.
    Until(Time),
    /// It was not accepted at all.
    Refused(EnqueueError),
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Until(time) => write!(f, "not before {} ns of the clock", time.as_nanos()),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for NotNow {}

/// After this time a policy whose rate needs completions is asked again.
const RETRY_NANOS: u64 = 1_000_000;

impl IoQueue {
    /// Dispatches a request now, before all that waits and with a window that
    /// may be full; only the pace and the limits of its class hold it back.
    ///
    /// For an owner who already has a request in the disk and will not
    /// complete it before this one is done: two such owners would otherwise
    /// wait for each other. The class and the budget are charged as usual.
    ///
    /// # Errors
    /// [`NotNow`]: when to try again, or why it never will go.
    pub fn dispatch_past_window(
        &mut self,
        now: Time,
        class: ClassId,
        op: Op,
        len: u64,
    ) -> Result<Ticket, NotNow> {
        let refused = |error| NotNow::Refused(error);
        self.shared.tree.class(class).map_err(EnqueueError::Class).map_err(refused)?;
        let node = class.node();
        if let Some((_, until)) = self.fair.limited(node, now) {
            return Err(NotNow::Until(until));
        }
        let cost = self.cost(op, len);
        let inserted = self.requests.insert(now, node, op, len, cost);
        let ticket = inserted.ok_or(NotNow::Refused(EnqueueError::Full))?;
        let ask = ask(self.requests.at(ticket.slot()));
        if let Err(open_at) = self.shared.budget.reserve_past_window(now, &ask) {
            self.requests.remove(ticket.slot());
            return Err(NotNow::Until(open_at.unwrap_or_else(|| now.plus_nanos(RETRY_NANOS))));
        }
        self.note_class(class);
        self.classes[class.index()].enqueued(now);
        self.fair.charge(node, cost, len, now);
        Ok(self.dispatch(now, ticket.slot(), false))
    }
}
