//! What carries commands out in a run: the simulated disk, and what a kernel makes of its answers.

use forebay_core::Time;
use forebay_driver::{Command as _, Dispatch, PartId};
use forebay_load::Rng;
use slab::Slab;

use crate::config::TransferFaults;
use crate::disk::{SimDisk, Status};
use crate::load_command::{CommandError, LoadCommand};

/// Transfers are cut short at multiples of this, but for one in this many.
const BLOCK: u64 = 512;
const RAGGED_ONE_IN: u64 = 8;

/// The engine of all shards.
pub(super) struct Engine {
    pub(super) disk: Box<dyn SimDisk>,
    /// What the disk has, by the numbers that it knows.
    commands: Slab<Sent>,
    faults: TransferFaults,
    rng: Rng,
}

/// A command that the engine has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The position of its shard.
    pub(super) shard: usize,
    pub(super) dispatch: Dispatch,
    pub(super) command: LoadCommand,
    is_cancelled: bool,
}

/// A command that the engine is done with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    pub(super) sent: Sent,
    pub(super) result: Result<u64, CommandError>,
}

impl Engine {
    pub(super) fn new(disk: Box<dyn SimDisk>, faults: TransferFaults, rng: Rng) -> Self {
        Self { disk, commands: Slab::new(), faults, rng }
    }

    pub(super) fn push(
        &mut self,
        now: Time,
        shard: usize,
        dispatch: Dispatch,
        command: LoadCommand,
    ) {
        let sent = Sent { shard, dispatch, command, is_cancelled: false };
        let id = self.commands.insert(sent);
        self.disk.submit(now, id as u64, command.io);
    }

    /// Asks that a command end early: some do, when the disk has done with them.
    pub(super) fn cancel(&mut self, shard: usize, part: PartId) {
        let is_it = |sent: &&mut Sent| (sent.shard, sent.dispatch.part) == (shard, part);
        let sent = self.commands.iter_mut().map(|(_, sent)| sent).find(is_it);
        sent.into_iter().for_each(|sent| sent.is_cancelled = true);
    }

    /// What the disk has finished by `now`; the number of a command that it does not have is an
    /// error.
    pub(super) fn pop(&mut self, now: Time) -> Option<Result<Returned, u64>> {
        let finished = self.disk.poll_completion(now)?;
        let Some(sent) = self.commands.try_remove(finished.id as usize) else {
            return Some(Err(finished.id));
        };
        Some(Ok(Returned { sent, result: self.result(&sent, finished.status) }))
    }

    fn result(&mut self, sent: &Sent, status: Status) -> Result<u64, CommandError> {
        if status == Status::Failed {
            return Err(CommandError::Failed);
        }
        let TransferFaults { short_one_in, again_one_in, cancelled_one_in } = self.faults;
        if sent.is_cancelled && self.happens(cancelled_one_in) {
            return Err(CommandError::Cancelled);
        }
        let len = sent.command.io.len;
        if !sent.command.transfers() {
            return Ok(len);
        }
        if self.happens(again_one_in) {
            return Err(CommandError::Again);
        }
        if self.happens(short_one_in) {
            let ragged = self.happens(RAGGED_ONE_IN);
            let bytes = self.rng.below(len + 1);
            return Ok(if ragged { bytes } else { bytes / BLOCK * BLOCK });
        }
        Ok(len)
    }

    /// Whether what happens one time in this many does now; never if that is 0.
    fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.rng.below(one_in) == 0
    }
}
