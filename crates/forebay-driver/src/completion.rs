//! The way back from the engine: parts that have come back, and those that
//! nobody wants any more.

use forebay_core::{Outcome as DiskOutcome, Ticket, Time};

use crate::command::Command;
use crate::driver::Driver;
use crate::outcome::Outcome;
use crate::request::{OperationId, PartId};

/// A part that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartEnd<'a> {
    /// The number of its queue.
    pub queue: usize,
    /// Its name there, which is void now.
    pub ticket: Ticket,
    /// What the queue counted of it; `None` if it never left the queue.
    pub completion: Option<&'a forebay_core::Completion>,
}

/// What becomes of a part that is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel<'a> {
    /// It has ended: the engine did not have it.
    Ended(PartEnd<'a>),
    /// The engine has it, and is to be asked. It still has to say how it ended.
    Inflight(PartId),
}

impl<C: Command> Driver<C> {
    /// The engine is done with a part, whose command it gives back: with so
    /// many bytes (any number for what transfers none), or an error. It was not
    /// yet at `looked_at`: from that the queue learns how late an idle disk
    /// answers; [`Time::ZERO`] if it is not known. If the part has ended,
    /// `ended` is told; otherwise it goes on, by
    /// [`poll_unsent`](Self::poll_unsent).
    pub fn handle_completion(
        &mut self,
        now: Time,
        looked_at: Time,
        id: PartId,
        result: Result<u64, C::Error>,
        command: C,
        ended: impl FnOnce(PartEnd<'_>),
    ) {
        let part = self.table.part(id).filter(|(_, _, part)| part.command.is_none());
        let Some((_, request, part)) = part else {
            self.report_invariant("the engine completed a part that it does not have");
            return;
        };
        self.inflight = self.inflight.saturating_sub(1);
        if cfg!(forebay_planted = "dropped_completion") && request.cancelled {
            return;
        }
        let outcome = Outcome::of(part, request.cancelled, &command, result);
        let op = command.op();
        part.command = Some(command);
        let outcome = match outcome {
            Outcome::Over(outcome) => outcome,
            Outcome::Again => {
                part.tries += 1;
                self.counters.transient_errors.add(op);
                self.unsent.push_back(id);
                return;
            }
            Outcome::Rest(bytes) => match part.split_done(bytes) {
                Some(done) => {
                    request.multi_part().done.push(done);
                    self.counters.short_transfers.add(op);
                    self.unsent.push_back(id);
                    return;
                }
                None => {
                    let done = part.done + bytes;
                    self.report_invariant("a command cannot be cut where a transfer ended");
                    Ok(done)
                }
            },
        };
        self.end_inflight(now, looked_at, id, outcome, ended);
    }

    /// Asks that a request end early. What the engine does not have has ended
    /// when this returns; `each` is told of every part, and passes to the
    /// engine those that it has. False if there is no such request any more.
    pub fn cancel(&mut self, now: Time, id: OperationId, mut each: impl FnMut(Cancel<'_>)) -> bool {
        let request = self.table.request(id).filter(|request| request.ended.is_none());
        let Some(request) = request else { return false };
        request.cancelled = true;
        let mut number = 0;
        while let Some(part) = self.table.part_of(id, number) {
            self.cancel_part(now, part, &mut each);
            number += 1;
        }
        true
    }

    /// Does nothing if the part has ended before.
    fn cancel_part(&mut self, now: Time, id: PartId, mut each: impl FnMut(Cancel<'_>)) {
        let part = self.table.part(id).filter(|(_, _, part)| !part.is_over);
        let Some((_, request, part)) = part else { return };
        if part.command.is_none() {
            return each(Cancel::Inflight(id));
        }
        let (queue, ticket) = (request.class.queue, part.ticket);
        let outcome = if part.done > 0 { Ok(part.done) } else { Err(C::cancelled()) };
        if self.queues[queue].io.cancel(now, ticket) {
            self.end_part(now, id, outcome);
            each(Cancel::Ended(PartEnd { queue, ticket, completion: None }));
        } else {
            self.unsent.retain(|unsent| *unsent != id);
            self.end_inflight(now, Time::ZERO, id, outcome, |end| each(Cancel::Ended(end)));
        }
    }

    /// A part has ended that was dispatched.
    fn end_inflight(
        &mut self,
        now: Time,
        looked_at: Time,
        id: PartId,
        outcome: Result<u64, C::Error>,
        ended: impl FnOnce(PartEnd<'_>),
    ) {
        let disk_outcome = if outcome.is_ok() { DiskOutcome::Done } else { DiskOutcome::Failed };
        let Some((queue, ticket)) = self.end_part(now, id, outcome) else { return };
        let io = &mut self.queues[queue].io;
        match &io.complete_polled(now, ticket, disk_outcome, looked_at) {
            Ok(completion) => ended(PartEnd { queue, ticket, completion: Some(completion) }),
            Err(_) => self.report_invariant("a part has ended that was not in the disk"),
        }
    }

    /// A part is over, with what it has left of the command. Its queue, and its
    /// ticket there.
    fn end_part(
        &mut self,
        now: Time,
        id: PartId,
        outcome: Result<u64, C::Error>,
    ) -> Option<(usize, Ticket)> {
        let (operation, request, part) = self.table.part(id)?;
        part.is_over = true;
        if request.part_ended(part.at, part.len, outcome) {
            request.ended = Some(now);
            self.ended.push_back(operation);
        }
        Some((request.class.queue, part.ticket))
    }
}
