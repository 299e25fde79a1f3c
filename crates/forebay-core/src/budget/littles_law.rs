//! Operations and bytes in the disk, each at most what the disk serves within
//! the goal (ScyllaDB, 2018).

use super::demand::Demand;
use super::room::Room;
use crate::sync::Padded;
use crate::{DiskModel, DiskTime};

/// Both limits in disk time: an operation takes `1 / IOPS` of the one, its
/// bytes take `bytes / bandwidth` of the other, per direction; each may hold
/// one goal.
#[derive(Debug)]
pub(super) struct LittlesLaw {
    model: DiskModel,
    operations: Padded<Room>,
    bytes: Padded<Room>,
}

impl LittlesLaw {
    pub(super) fn new(model: &DiskModel, sole: bool) -> Self {
        Self {
            model: model.clone(),
            operations: Padded(Room::new(sole)),
            bytes: Padded(Room::new(sole)),
        }
    }

    pub(super) fn enter(&self, goal: DiskTime, demand: &Demand) -> Option<()> {
        let (operation, bytes) = self.parts(demand);
        self.operations.0.enter(goal.units(), operation)?;
        if self.bytes.0.enter(goal.units(), bytes).is_none() {
            self.operations.0.leave(operation);
            return None;
        }
        Some(())
    }

    /// Enters whatever is there.
    pub(super) fn enter_anyway(&self, demand: &Demand) {
        let (operation, bytes) = self.parts(demand);
        self.operations.0.enter_anyway(operation);
        self.bytes.0.enter_anyway(bytes);
    }

    pub(super) fn leave(&self, demand: &Demand) {
        let (operation, bytes) = self.parts(demand);
        self.operations.0.leave(operation);
        self.bytes.0.leave(bytes);
    }

    pub(super) fn open_after_mark(&self, goal: DiskTime) -> bool {
        let open = |room: &Padded<Room>| room.0.open_after_mark(goal.units());
        open(&self.operations) && open(&self.bytes)
    }

    pub(super) fn part_free(&self, goal: DiskTime) -> DiskTime {
        let free = |room: &Padded<Room>| room.0.part_free(goal.units(), 0, goal);
        free(&self.operations).min(free(&self.bytes))
    }

    fn parts(&self, demand: &Demand) -> (u64, u64) {
        let operation = self.model.cost(demand.op, 0);
        (operation.units(), self.model.bytes_cost(demand.op, demand.len).units())
    }
}
