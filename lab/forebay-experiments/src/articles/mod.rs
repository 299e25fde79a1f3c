//! What the experiments of one article have in common.

pub(crate) mod y2016;
pub(crate) mod y2018;
pub(crate) mod y2022;
pub(crate) mod y2024;
pub(crate) mod y2025;
