//! The queue of one shard, and the requests that must be in it.

use std::collections::BTreeMap;

use forebay_core::{Blocked, ClassId, IoQueue, Outcome, Ticket, Time};

/// The most void tickets that are kept to be tried again.
const STALE_MAX: usize = 16;

/// The state of a request, which decides the verbs for its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Queued,
    InDisk,
    Parked,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) ticket: Ticket,
    pub(super) stage: Stage,
    pub(super) class: ClassId,
    pub(super) cost: u64,
    /// Whether it was dispatched before.
    pub(super) went: bool,
}

pub(super) struct Shard {
    pub(super) queue: IoQueue,
    /// The requests of the queue, by [`Ticket::index`].
    live: BTreeMap<usize, Request>,
    stale: Vec<Ticket>,
    /// The numbers of requests that were dispatched, and that have ended since.
    dispatched: u64,
    ended: u64,
    /// The number that were given up, and were completed or forgotten since.
    overdue_ended: u64,
}

impl Shard {
    pub(super) fn new(queue: IoQueue) -> Self {
        let (live, stale) = (BTreeMap::new(), Vec::new());
        Self { queue, live, stale, dispatched: 0, ended: 0, overdue_ended: 0 }
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.live.values()
    }

    pub(super) fn has(&self, stage: Stage) -> bool {
        self.requests().any(|request| request.stage == stage)
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// Adds a ticket that the queue has returned. If the table was full, it replaces a request that was
    /// given up and is forgotten.
    pub(super) fn made(&mut self, request: Request, full: bool) {
        if let Some(before) = self.live.insert(request.ticket.index(), request) {
            assert!(full && before.stage == Stage::InDisk, "the place of {before:?} was taken");
            self.ended += 1;
            self.overdue_ended += 1;
            self.keep_stale(before.ticket);
        }
        self.dispatched += u64::from(request.stage == Stage::InDisk);
    }

    pub(super) fn pick(&self, pick: usize, stage: Stage) -> Option<Ticket> {
        let tickets = || self.requests().filter(|request| request.stage == stage);
        let count = tickets().count();
        tickets().nth(pick.checked_rem(count)?).map(|request| request.ticket)
    }

    pub(super) fn stale(&self, pick: usize) -> Option<Ticket> {
        self.stale.get(pick.checked_rem(self.stale.len())?).copied()
    }

    /// Dispatches one request, if possible.
    pub(super) fn poll_once(&mut self, now: Time) -> bool {
        let Some(ticket) = self.queue.poll_dispatch(now) else { return false };
        let request = self.live.get_mut(&ticket.index()).unwrap();
        assert_eq!((request.ticket, request.stage), (ticket, Stage::Queued));
        request.stage = Stage::InDisk;
        self.dispatched += u64::from(!request.went);
        request.went = true;
        true
    }

    /// Runs a whole turn, until nothing more is dispatched.
    pub(super) fn poll(&mut self, now: Time) {
        while self.poll_once(now) {}
        let blocked = self.queue.blocked().unwrap();
        assert_eq!(blocked == Blocked::Empty, !self.has(Stage::Queued), "{blocked:?}");
        let timeout = self.queue.poll_timeout(now);
        assert!(timeout.is_none_or(|at| at >= now));
        assert!(timeout.is_some() || !self.has(Stage::Queued), "{blocked:?} for ever");
        self.check_wakes();
    }

    /// Checks that each shard to wake is returned once.
    pub(super) fn check_wakes(&mut self) {
        let mut wakes = Vec::new();
        while let Some(shard) = self.queue.poll_wake() {
            assert!(!wakes.contains(&shard), "{shard:?} is woken twice");
            wakes.push(shard);
        }
    }

    pub(super) fn complete(&mut self, now: Time, ticket: Ticket, outcome: Outcome, looked: Time) {
        let done = self.queue.complete_polled(now, ticket, outcome, looked).unwrap();
        self.overdue_ended += u64::from(done.overdue);
        self.end(ticket);
    }

    pub(super) fn cancel(&mut self, now: Time, ticket: Ticket) {
        assert!(self.queue.cancel(now, ticket));
        self.end(ticket);
    }

    pub(super) fn park(&mut self, now: Time, ticket: Ticket) {
        // a request that was given up has no room to return
        let given_up = self.overdue() > 0;
        let done = self.queue.park(now, ticket);
        assert!(done.is_ok() || given_up);
        if done.is_ok() {
            self.live.get_mut(&ticket.index()).unwrap().stage = Stage::Parked;
        }
    }

    pub(super) fn resume(&mut self, now: Time, ticket: Ticket) {
        let goes = self.queue.resume(now, ticket).unwrap();
        let stage = if goes { Stage::InDisk } else { Stage::Queued };
        self.live.get_mut(&ticket.index()).unwrap().stage = stage;
    }

    /// Checks that every verb rejects a void ticket.
    pub(super) fn check_void(&mut self, now: Time, ticket: Ticket) {
        assert!(self.queue.complete(now, ticket, Outcome::Done).is_err());
        assert!(!self.queue.cancel(now, ticket));
        assert!(self.queue.park(now, ticket).is_err());
        assert!(self.queue.resume(now, ticket).is_err());
    }

    /// The number of requests that were given up and have not completed.
    pub(super) fn overdue(&self) -> u64 {
        self.queue.counters().overdue - self.overdue_ended
    }

    /// Checks that the counters of the queue match its requests.
    pub(super) fn check(&self) {
        assert_eq!(self.queue.len(), self.live.len());
        let count = |wanted: &dyn Fn(&Request) -> bool| {
            self.requests().filter(|&request| wanted(request)).count() as u64
        };
        let totals = self.queue.counters();
        let in_disk = count(&|request| request.stage == Stage::InDisk);
        assert_eq!(u64::from(totals.in_disk), in_disk);
        assert_eq!(totals.dispatched, self.dispatched);
        assert_eq!(totals.completed, self.ended);
        assert_eq!(totals.dispatched - totals.completed, count(&|request| request.went));
        for (index, counters) in self.queue.classes().iter().enumerate() {
            let of = |stage: Stage| {
                count(&|request| request.class.index() == index && request.stage == stage)
            };
            assert_eq!(u64::from(counters.in_disk), of(Stage::InDisk), "class {index}");
            let waiting = of(Stage::Queued) + of(Stage::Parked);
            assert_eq!(u64::from(counters.queued), waiting, "class {index}");
        }
    }

    fn end(&mut self, ticket: Ticket) {
        let request = self.live.remove(&ticket.index()).unwrap();
        self.ended += u64::from(request.went);
        self.keep_stale(ticket);
    }

    fn keep_stale(&mut self, ticket: Ticket) {
        self.stale.push(ticket);
        if self.stale.len() > STALE_MAX {
            self.stale.remove(0);
        }
    }
}
