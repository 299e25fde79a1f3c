//! Where the figures that findings quote come from.

/// The article on blocks of 1 KiB, RAID chunks and requests that do not block.
pub(crate) const WRITING_2025: &str =
    "ScyllaDB, The Deceptively Simple Act of Writing to Disk, 2025";
/// What XFS got with either size of block, in the thread that led to the article, and what the
/// article adds for older disks.
pub(crate) const FORMATTING_2025: &str = "scylladb/scylladb issue 25532, and ScyllaDB, The \
    Deceptively Simple Act of Writing to Disk, 2025";
/// The talk on discards.
pub(crate) const DISCARDS_2024: &str =
    "P. Wrobel, Taming Discard Latency Spikes, P99 CONF 2024, on an i3.2xlarge";
/// The article on reads, writes and their mix.
pub(crate) const MIXED_2022: &str =
    "ScyllaDB, A New I/O Scheduler Algorithm for Mixed Read/Write Workloads, 2022";
/// The article on operations and bytes in the disk.
pub(crate) const LATENCIES_2018: &str =
    "ScyllaDB, The Scylla I/O Scheduler: Better Latencies Under Any Circumstance, 2018";
/// What the kernel's schedulers cost.
pub(crate) const KERNEL_SCHEDULERS_2024: &str = "Ren et al., ICPE 2024";
/// What a volume with burst credits was taken for.
pub(crate) const CREDITS_2022: &str = "scylladb/seastar issue 1030, 2022";
/// What the kernel's limits do to latency.
pub(crate) const LIMITS_MEASURED: &str = "measured with fio on Linux 6.18";
