//! Writing to an array of NVMe disks (2025).

pub(crate) mod appends;
pub(crate) mod placement;
pub(crate) mod traced_array;

/// What it was published in.
pub(crate) const SOURCE: &str = "ScyllaDB, The Deceptively Simple Act of Writing to Disk (2025)";
/// The article and the search that it tells of, whose figures with 8 and with 64 shards stand here.
pub(crate) const WITH_ISSUE: &str = "ScyllaDB, The Deceptively Simple Act of Writing to Disk (2025), and scylladb/scylladb issue \
     25532";
