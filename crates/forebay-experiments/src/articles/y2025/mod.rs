//! Writing to an array of NVMe disks (2025).

pub(crate) mod placement;
pub(crate) mod traced_array;

/// What it was published in.
pub(crate) const SOURCE: &str = "ScyllaDB, The Deceptively Simple Act of Writing to Disk (2025)";
