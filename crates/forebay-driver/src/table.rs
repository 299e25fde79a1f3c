//! The table of requests and parts.

use crate::class::QueueClass;
use crate::command::{Command, Rest};
use crate::request::{Completion, MultiPart, OperationId, Part, PartId, Piece, Request};
use crate::slots::Slots;

/// All requests of a driver. The first part of each, which is the only one of
/// most, is with it.
#[derive(Debug)]
pub(crate) struct Table<C: Command> {
    requests: Slots<(Request<C>, Part<C>)>,
    others: Slots<(OperationId, Part<C>)>,
}

impl<C: Command> Table<C> {
    pub(crate) const fn new() -> Self {
        Self { requests: Slots::new(), others: Slots::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (OperationId, QueueClass)> {
        self.requests.iter().map(|(slot, (request, _))| (OperationId(slot), request.class))
    }

    /// The parts of a request.
    pub(crate) fn parts(&self, id: OperationId) -> impl Iterator<Item = &Part<C>> {
        let present = self.requests.get(id.0);
        let others = present.and_then(|(request, _)| request.multi_part.as_ref());
        let others = others.into_iter().flat_map(|multi_part| &multi_part.parts);
        let others = others.filter_map(|slot| self.others.get(*slot).map(|(_, part)| part));
        present.map(|(_, first)| first).into_iter().chain(others)
    }

    /// A request with its first part.
    #[inline(always)]
    pub(crate) fn insert(&mut self, request: Request<C>, part: Part<C>) -> (OperationId, PartId) {
        let slot = self.requests.insert((request, part));
        (OperationId(slot), PartId::new(slot, true))
    }

    /// One more part of a request that is there.
    pub(crate) fn add(&mut self, id: OperationId, part: Part<C>) -> PartId {
        let slot = self.others.insert((id, part));
        if let Some(request) = self.request(id) {
            request.multi_part().parts.push(slot);
        }
        PartId::new(slot, false)
    }

    pub(crate) fn request(&mut self, id: OperationId) -> Option<&mut Request<C>> {
        self.requests.get_mut(id.0).map(|(request, _)| request)
    }

    /// A part, with its request and the name of that.
    pub(crate) fn part(
        &mut self,
        id: PartId,
    ) -> Option<(OperationId, &mut Request<C>, &mut Part<C>)> {
        if id.is_first() {
            let (request, part) = self.requests.get_mut(id.slot())?;
            return Some((OperationId(id.slot()), request, part));
        }
        let (of, part) = self.others.get_mut(id.slot())?;
        let (request, _) = self.requests.get_mut(of.0)?;
        Some((*of, request, part))
    }

    /// The part of a request with this number, if it has this many.
    pub(crate) fn part_of(&self, id: OperationId, number: usize) -> Option<PartId> {
        let (request, _) = self.requests.get(id.0)?;
        match number.checked_sub(1) {
            None => Some(PartId::new(id.0, true)),
            Some(number) => {
                let slot = request.multi_part.as_ref()?.parts.get(number)?;
                Some(PartId::new(*slot, false))
            }
        }
    }

    /// Takes a request all of whose parts have ended.
    pub(crate) fn complete(&mut self, id: OperationId) -> Option<Completion<C>> {
        let (request, first) = self.requests.get_mut(id.0)?;
        let command = match request.multi_part.take() {
            None => first.command.take()?,
            Some(multi_part) => join(*multi_part, first, &mut self.others)?,
        };
        let completion = request.complete(id, command);
        self.requests.free(id.0);
        completion
    }
}

/// Makes one command of what all parts have left and have done before.
fn join<C: Command>(
    multi_part: MultiPart<C>,
    first: &mut Part<C>,
    others: &mut Slots<(OperationId, Part<C>)>,
) -> Option<C> {
    let MultiPart { parts, done: mut pieces } = multi_part;
    pieces.extend(first.take_piece());
    for slot in parts {
        pieces.extend(others.remove(slot).and_then(|(_, mut part)| part.take_piece()));
    }
    pieces.sort_by_key(|(at, _)| *at);
    let append = |mut front: Rest<C>, piece| {
        front.command.unsplit(piece);
        front
    };
    let whole = pieces.into_iter().map(|(_, piece): Piece<C>| piece).reduce(append)?;
    Some(whole.command)
}
