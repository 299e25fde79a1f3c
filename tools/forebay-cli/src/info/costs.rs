//! What requests cost by size and direction, and what a stream of them then reaches.

use forebay_core::{DiskModel, DiskTime, Op};
use serde::Serialize;

use super::budget::us;
use super::disk::DescribedDisk;

/// The sizes shown, in bytes.
const SIZES: [u64; 8] = [512, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 512 << 10, 1 << 20];

/// One size in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CostRow {
    pub(super) bytes: u64,
    /// Under the model in force.
    pub(super) cost: CostFigures,
    /// Under Seastar's sum; none for a disk without figures.
    pub(super) sum: Option<CostFigures>,
}

/// A cost, and what a stream of such requests reaches that has the disk to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CostFigures {
    pub(super) us: f64,
    pub(super) iops: f64,
    pub(super) bytes_per_second: f64,
}

impl CostFigures {
    /// What requests of `bytes` cost and reach under `model`.
    pub(super) fn of(model: &DiskModel, op: Op, bytes: u64) -> Self {
        let cost = model.cost(op, bytes);
        let iops = DiskTime::UNITS_PER_SECOND as f64 / cost.units() as f64;
        Self { us: us(cost), iops, bytes_per_second: iops * bytes as f64 }
    }
}

/// The rows of one direction.
pub(super) fn rows(disk: &DescribedDisk, op: Op) -> Vec<CostRow> {
    let summed = disk.figures.as_ref().map(|figures| &figures.summed);
    let row = |bytes| CostRow {
        bytes,
        cost: CostFigures::of(&disk.model, op, bytes),
        sum: summed.map(|summed| CostFigures::of(summed, op, bytes)),
    };
    SIZES.into_iter().map(row).collect()
}
