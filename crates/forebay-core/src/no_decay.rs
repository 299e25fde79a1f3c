//! In the place of the fair queue of 2016, where the feature `history` is off.

use crate::Time;
use crate::class_tree::NodeId;

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
}
