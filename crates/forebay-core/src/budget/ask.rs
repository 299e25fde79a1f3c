//! What a request asks of the budget.

use crate::{DiskTime, Op};

/// A request, as the budget sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) cost: DiskTime,
    /// What the pace counts: less where it is known that the disk does not seek.
    pub(crate) paced: DiskTime,
    /// Nothing of its class waited on its shard when it came.
    pub(crate) fresh: bool,
    #[cfg(feature = "history")]
    pub(super) op: Op,
    #[cfg(feature = "history")]
    pub(super) len: u64,
}

impl Demand {
    /// For a request that costs `cost`; what it is counts for some policies.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    #[inline(always)]
    pub(crate) const fn new(cost: DiskTime, op: Op, len: u64, fresh: bool) -> Self {
        Self {
            cost,
            paced: cost,
            fresh,
            #[cfg(feature = "history")]
            op,
            #[cfg(feature = "history")]
            len,
        }
    }
}
