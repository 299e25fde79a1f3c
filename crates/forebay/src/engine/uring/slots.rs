//! The operations that the kernel has.

use super::attempt::Attempt;
use crate::engine::operation::Operation;
use crate::engine::segment::Segment;

/// A reusable place for one operation.
#[derive(Debug, Default)]
pub(super) struct Slot {
    token: u64,
    pub(super) operation: Option<Operation>,
    /// The kernel reads these while it has the operation.
    pub(super) segments: Vec<Segment>,
    /// How the kernel was asked to execute it.
    pub(super) attempt: Attempt,
    /// Whether the kernel was asked to cancel it.
    pub(super) is_cancelled: bool,
    generation: u32,
}

/// The id of one use of one slot. So a late cancellation cannot hit the next operation in the same
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u64);

impl SlotId {
    const fn new(index: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    const fn index(self) -> usize {
        (self.0 & u32::MAX as u64) as usize
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A fixed number of slots. Taking and freeing a slot allocates nothing.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn new(count: u32) -> Self {
        Self {
            slots: (0..count).map(|_| Slot::default()).collect(),
            free: (0..count).rev().collect(),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.slots.len()
    }

    pub(super) const fn occupied(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts an operation into a free slot, or returns it if there is none.
    pub(super) fn insert(&mut self, token: u64, operation: Operation) -> Result<SlotId, Operation> {
        let Some(index) = self.free.pop() else {
            return Err(operation);
        };
        let slot = &mut self.slots[index as usize];
        slot.token = token;
        slot.attempt = Attempt::first(&operation);
        slot.is_cancelled = false;
        slot.operation = Some(operation);
        Ok(SlotId::new(index, slot.generation))
    }

    /// The slot, if it is in the use that `id` names.
    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index()).filter(|slot| slot.generation == id.generation())
    }

    /// Frees a slot and returns its token and operation, if it is in the use that `id` names.
    pub(super) fn take(&mut self, id: SlotId) -> Option<(u64, Operation)> {
        let slot = self.get_mut(id)?;
        let operation = slot.operation.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        let token = slot.token;
        self.free.push(id.index() as u32);
        Some((token, operation))
    }

    /// The ids of the operations with `token`, or of all operations.
    pub(super) fn find(&self, token: Option<u64>) -> impl Iterator<Item = SlotId> {
        let wanted = move |slot: &Slot| {
            slot.operation.is_some() && token.is_none_or(|token| token == slot.token)
        };
        (0u32..)
            .zip(&self.slots)
            .filter(move |(_, slot)| wanted(slot))
            .map(|(index, slot)| SlotId::new(index, slot.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> Operation {
        Operation::unlink("nothing", 0).unwrap()
    }

    #[test]
    fn slots_are_bounded_and_used_again() {
        let mut slots = Slots::new(2);
        let first = slots.insert(1, operation()).unwrap();
        let second = slots.insert(2, operation()).unwrap();
        assert!(slots.insert(3, operation()).is_err());
        assert_eq!(slots.occupied(), 2);
        assert_eq!(slots.take(first).unwrap().0, 1);
        let third = slots.insert(3, operation()).unwrap();
        assert_eq!(third.index(), first.index());
        assert_ne!(third, first, "a new use has a new name");
        assert!(slots.take(first).is_none(), "the old one is void");
        assert_eq!(slots.find(Some(2)).collect::<Vec<_>>(), [second]);
        assert_eq!(slots.find(None).count(), 2);
    }
}
