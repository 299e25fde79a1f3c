//! In the place of the fair queue of 2016, where the feature `history` is off.

use crate::class_tree::NodeId;
use crate::{DiskTime, Time};

/// There is none.
#[derive(Debug)]
pub(crate) enum Decay {}

impl Decay {
    pub(crate) fn least(&self, _: impl Iterator<Item = NodeId>, _: Time) -> Option<NodeId> {
        match *self {}
    }

    pub(crate) fn charge(&mut self, _: NodeId, _: Time, _: u64, _: u32) {
        match *self {}
    }

    pub(crate) fn shard_tag(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn set_waits(&mut self, _: bool, _: u64) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn charge_shard(&mut self, _: DiskTime) -> u64 {
        match *self {}
    }
}
