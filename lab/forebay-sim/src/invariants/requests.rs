//! Every request of one shard, from its submission to its end: where its parts are, and what the
//! disk has done of it.

use forebay_core::Op;
use forebay_driver::OperationId;

use super::violation::Wrong;
use crate::disk::Command;
use crate::load_command::CommandError;

/// The requests of one shard.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// By their indices.
    entries: Vec<Option<Entry>>,
    len: usize,
    /// Parts that have come back from the engine and are to go there again.
    unsent: usize,
    /// Requests none of whose parts is anywhere.
    without_parts: Vec<OperationId>,
    /// What the driver has said of itself.
    bugs: u64,
}

#[derive(Debug)]
struct Entry {
    id: OperationId,
    io: Command,
    /// Its parts: in the queue, in the engine, and between two stays there.
    waiting: usize,
    inflight: usize,
    unsent: usize,
    /// What the disk has done: where in the request, and bytes.
    done: Vec<(u64, u64)>,
    /// Whether all of what transfers nothing has succeeded so far.
    ok: bool,
    cancelled: bool,
}

impl Entry {
    fn has_parts(&self) -> bool {
        self.waiting + self.inflight + self.unsent > 0
    }

    fn transfers(&self) -> bool {
        matches!(self.io.op, Op::Read | Op::Write)
    }

    /// Notes what the disk has done, no byte of it twice.
    fn add(&mut self, at: u64, bytes: u64) -> Result<(), Wrong> {
        let overlaps = |&(other, len): &(u64, u64)| at < other + len && other < at + bytes;
        if self.done.iter().any(overlaps) {
            return wrong(format!("{:?} is done twice at {at}", self.io));
        }
        self.done.push((at, bytes));
        Ok(())
    }

    /// Bytes done from the beginning on without a gap.
    fn prefix(&mut self) -> u64 {
        self.done.sort_unstable();
        self.done.iter().fold(0, |end, &(at, bytes)| if at == end { end + bytes } else { end })
    }
}

impl Requests {
    /// The driver has taken a request, in this many parts.
    pub(crate) fn submitted(
        &mut self,
        id: OperationId,
        io: Command,
        parts: usize,
    ) -> Result<(), Wrong> {
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, || None);
        }
        let entry = Entry {
            id,
            io,
            waiting: parts,
            inflight: 0,
            unsent: 0,
            done: Vec::new(),
            ok: true,
            cancelled: false,
        };
        if self.entries[id.index()].replace(entry).is_some() {
            return wrong(format!("{id:?} has the place of one that has not ended"));
        }
        self.len += 1;
        Ok(())
    }

    /// A part has gone to the engine: for the first time, or again.
    pub(crate) fn sent(&mut self, id: OperationId, again: bool) -> Result<(), Wrong> {
        let entry = self.entry(id)?;
        let from = if again { &mut entry.unsent } else { &mut entry.waiting };
        let Some(left) = from.checked_sub(1) else {
            return wrong(format!("{id:?} has no part that could go to the engine"));
        };
        *from = left;
        entry.inflight += 1;
        self.unsent -= usize::from(again);
        Ok(())
    }

    /// The driver was told what the engine has done of a part, which has ended with that or goes
    /// on.
    pub(crate) fn returned(
        &mut self,
        id: OperationId,
        io: Command,
        result: Result<u64, CommandError>,
        has_ended: bool,
    ) -> Result<(), Wrong> {
        let entry = self.entry(id)?;
        entry.inflight -= 1;
        entry.ok &= result.is_ok();
        let added = match result {
            Ok(bytes) if bytes > 0 => entry.add(io.offset - entry.io.offset, bytes),
            _ => Ok(()),
        };
        if !has_ended {
            entry.unsent += 1;
            self.unsent += 1;
        }
        self.look_for_parts(id);
        added
    }

    /// A request was to be cancelled: of its parts, this many had waited in the queue, and this
    /// many had been about to go to the engine again.
    pub(crate) fn cancelled(
        &mut self,
        id: OperationId,
        is_there: bool,
        waited: usize,
        unsent: usize,
    ) -> Result<(), Wrong> {
        let Ok(entry) = self.entry(id) else {
            let what = format!("{id:?} has ended, and the driver cancels it");
            return if is_there { wrong(what) } else { Ok(()) };
        };
        if !is_there {
            return wrong(format!("{id:?} has not ended, and the driver does not find it"));
        }
        if entry.waiting != waited || entry.unsent != unsent {
            return wrong(format!("{entry:?} is cancelled, and not all of its parts are"));
        }
        (entry.waiting, entry.unsent) = (0, 0);
        entry.cancelled = true;
        entry.ok &= waited + unsent == 0;
        self.unsent -= unsent;
        self.look_for_parts(id);
        Ok(())
    }

    /// A request has ended.
    pub(crate) fn ended(
        &mut self,
        id: OperationId,
        result: Result<u64, CommandError>,
    ) -> Result<(), Wrong> {
        self.entry(id)?;
        let Some(mut entry) = self.entries[id.index()].take() else { return Ok(()) };
        self.len -= 1;
        if entry.has_parts() {
            return wrong(format!("{entry:?} has ended before its parts"));
        }
        let done = entry.prefix();
        let is_right = match result {
            Err(CommandError::Cancelled) if !entry.cancelled => false,
            Ok(bytes) if entry.transfers() => bytes == done,
            Err(_) if entry.transfers() => done == 0,
            result => result.is_ok() == entry.ok,
        };
        if is_right {
            return Ok(());
        }
        wrong(format!("{entry:?} has ended with {result:?}, where {done} bytes are done"))
    }

    /// The shard has had its turn, in which all that could be was sent if it `has_sent`; its
    /// driver says that it has this many requests, and has met with this many impossible things.
    pub(super) fn after_turn(
        &mut self,
        has_sent: bool,
        len: usize,
        bugs: u64,
    ) -> Result<(), Wrong> {
        if bugs > std::mem::replace(&mut self.bugs, bugs) {
            return wrong(format!("the driver has met with {bugs} impossible things"));
        }
        if len != self.len {
            return wrong(format!("the driver has {len} requests of {}", self.len));
        }
        if has_sent && self.unsent > 0 {
            return wrong(format!("{} parts came back, and do not go on", self.unsent));
        }
        let mut lost = std::mem::take(&mut self.without_parts);
        match lost.drain(..).find(|&id| self.entry(id).is_ok_and(|entry| !entry.has_parts())) {
            Some(id) => wrong(format!("{id:?} has not ended, and none of its parts is anywhere")),
            None => Ok(()),
        }
    }

    fn look_for_parts(&mut self, id: OperationId) {
        if self.entry(id).is_ok_and(|entry| !entry.has_parts()) {
            self.without_parts.push(id);
        }
    }

    fn entry(&mut self, id: OperationId) -> Result<&mut Entry, Wrong> {
        let entry = self.entries.get_mut(id.index()).and_then(Option::as_mut);
        let unknown = || (None, format!("{id:?} was never submitted, or has ended"));
        entry.filter(|entry| entry.id == id).ok_or_else(unknown)
    }
}

fn wrong<T>(what: String) -> Result<T, Wrong> {
    Err((None, what))
}
