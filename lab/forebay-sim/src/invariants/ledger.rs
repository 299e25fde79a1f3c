//! Every ticket of one queue, from its enqueueing to its completion.

use std::collections::BTreeMap;

use forebay_core::{Completion, IoQueue, Ticket, Time};

use super::violation::Wrong;

/// The tickets of one queue.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By the index of the tickets.
    entries: Vec<Option<Entry>>,
    /// Requests that wait, by class.
    queued: Vec<u32>,
    /// Requests that wait.
    pub(super) waiting: usize,
    held: usize,
    /// What the budget counts, in the order of dispatch: their ticket's index, and when it was.
    in_disk: BTreeMap<u64, (usize, Time)>,
    /// Disk time of these.
    in_disk_cost: u64,
    dispatches: u64,
    overdue: u64,
    given_up: Vec<GivenUp>,
}

/// A request that the queue no longer waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp {
    pub(super) class: usize,
    pub(super) cost: u64,
    pub(super) dispatched_at: Time,
    /// When the disk had finished it, if its owner had not said so yet.
    pub(super) finished: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    ticket: Ticket,
    class: usize,
    cost: u64,
    state: State,
    finished: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    /// With the number of its dispatch.
    InDisk(u64),
    Overdue,
}

impl Ledger {
    pub(super) fn new(classes: usize) -> Self {
        Self { queued: vec![0; classes], ..Self::default() }
    }

    /// What the queue has given up since this was last asked.
    pub(super) fn take_given_up(&mut self) -> Vec<GivenUp> {
        core::mem::take(&mut self.given_up)
    }

    /// Requests of a class that wait.
    pub(super) fn queued(&self, class: usize) -> u32 {
        self.queued[class]
    }

    /// When the oldest request in the disk that is not given up was dispatched.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.in_disk.first_key_value().map(|(_, (_, at))| *at)
    }

    pub(super) fn enqueued(
        &mut self,
        ticket: Ticket,
        class: usize,
        cost: u64,
    ) -> Result<(), Wrong> {
        let index = ticket.index();
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        if self.entries[index].is_some() {
            return wrong(class, format!("{ticket:?} is handed out and still in use"));
        }
        self.entries[index] =
            Some(Entry { ticket, class, cost, state: State::Queued, finished: None });
        self.queued[class] += 1;
        self.waiting += 1;
        self.held += 1;
        Ok(())
    }

    /// A request that waits goes at this price, which where it is may lower.
    pub(super) fn priced(
        &mut self,
        ticket: Ticket,
        price: u64,
        may_be_less: bool,
    ) -> Result<(), Wrong> {
        let entry = self.entries.get_mut(ticket.index()).and_then(Option::as_mut);
        let Some(entry) = entry else { return Ok(()) };
        if price != entry.cost && !(may_be_less && price < entry.cost) {
            let what = format!("{ticket:?} costs {}, and goes for {price}", entry.cost);
            return wrong(entry.class, what);
        }
        entry.cost = price;
        Ok(())
    }

    /// The class of the request, and its cost.
    pub(super) fn dispatched(&mut self, now: Time, ticket: Ticket) -> Result<(usize, u64), Wrong> {
        let entry = self.entries.get_mut(ticket.index()).and_then(Option::as_mut);
        let Some(entry) = entry.filter(|entry| entry.ticket == ticket) else {
            return Err((None, format!("{ticket:?} is dispatched and was never queued")));
        };
        if entry.state != State::Queued {
            return wrong(entry.class, format!("{ticket:?} is dispatched twice"));
        }
        self.dispatches += 1;
        entry.state = State::InDisk(self.dispatches);
        self.in_disk.insert(self.dispatches, (ticket.index(), now));
        self.in_disk_cost += entry.cost;
        self.queued[entry.class] -= 1;
        self.waiting -= 1;
        Ok((entry.class, entry.cost))
    }

    /// The disk has finished the request whose ticket has this index.
    pub(super) fn finished(&mut self, now: Time, index: usize) {
        if let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut) {
            entry.finished = Some(now);
        }
    }

    /// The owner goes on with what the disk had finished.
    pub(super) fn resumed(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut) {
            entry.finished = None;
        }
    }

    /// The request was taken back before it went; its class.
    pub(super) fn cancelled(&mut self, ticket: Ticket) -> Result<usize, Wrong> {
        let entry = self.entries.get_mut(ticket.index()).and_then(Option::take);
        let Some(entry) =
            entry.filter(|entry| (entry.ticket, entry.state) == (ticket, State::Queued))
        else {
            return Err((None, format!("{ticket:?} is taken back and does not wait")));
        };
        self.queued[entry.class] -= 1;
        self.waiting -= 1;
        self.held -= 1;
        Ok(entry.class)
    }

    pub(super) fn completed(
        &mut self,
        ticket: Ticket,
        completion: Option<Completion>,
    ) -> Result<(), Wrong> {
        let entry = self.entries.get_mut(ticket.index()).and_then(Option::take);
        let Some(entry) = entry.filter(|entry| entry.ticket == ticket) else {
            return Err((None, format!("{ticket:?} is completed and not in the disk")));
        };
        let Some(completion) = completion else {
            return wrong(entry.class, format!("{ticket:?} is in the disk, and the queue lost it"));
        };
        self.held -= 1;
        if let State::InDisk(dispatch) = entry.state {
            self.in_disk.remove(&dispatch);
            self.in_disk_cost -= entry.cost;
        }
        if completion.overdue != (entry.state == State::Overdue) {
            let what =
                format!("{ticket:?} was {:?}, and its completion says otherwise", entry.state);
            return wrong(entry.class, what);
        }
        Ok(())
    }

    /// The queue has given up this many since the run began; the oldest first.
    pub(super) fn gave_up(&mut self, overdue: u64) -> Result<(), Wrong> {
        for _ in self.overdue..overdue {
            let Some((_, (index, dispatched_at))) = self.in_disk.pop_first() else {
                return Err((None, "the queue gave up a request that is not in the disk".into()));
            };
            if let Some(entry) = &mut self.entries[index] {
                entry.state = State::Overdue;
                self.in_disk_cost -= entry.cost;
                let Entry { class, cost, finished, .. } = *entry;
                self.given_up.push(GivenUp { class, cost, dispatched_at, finished });
            }
        }
        self.overdue = overdue;
        Ok(())
    }

    /// Compares with the queue; the disk time that the budget should count.
    pub(super) fn after_step(&mut self, queue: &IoQueue) -> Result<u64, Wrong> {
        self.gave_up(queue.counters().overdue)?;
        if queue.len() != self.held {
            let what = format!("the queue holds {} requests of {}", queue.len(), self.held);
            return Err((None, what));
        }
        Ok(self.in_disk_cost)
    }
}

fn wrong<T>(class: usize, what: String) -> Result<T, Wrong> {
    Err((Some(class), what))
}
