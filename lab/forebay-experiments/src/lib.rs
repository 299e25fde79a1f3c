//! The published experiments, repeated under virtual time.
//!
//! Each has a folder, named by the year of its article and its topic. The folder holds a description,
//! loads, disks and published figures as files, the analysis, and a snapshot of the report. A new
//! experiment needs such a folder and a place in [`all`]. `forebay reproduce` draws the charts.
#![forbid(unsafe_code)]

mod articles;
mod experiment;
mod figure;
mod known;
mod report;
mod scenario;

pub use experiment::{ARRAYS, ArraySetting, Experiment, Scale, Seed, Setting};
pub use figure::{Figure, NullModel, PublishedRange, State};
pub use report::Report;

#[path = "2025-allocation/mod.rs"]
mod allocation_2025;
#[path = "2016-bursts/mod.rs"]
mod bursts_2016;
#[path = "2024-bursts/mod.rs"]
mod bursts_2024;
#[path = "2025-capacity/mod.rs"]
mod capacity_2025;
#[path = "2025-chunk-border/mod.rs"]
mod chunk_border_2025;
#[path = "2022-compaction/mod.rs"]
mod compaction_2022;
#[path = "2018-deep-writes/mod.rs"]
mod deep_writes_2018;
#[path = "design-cost/mod.rs"]
mod design_cost;
#[path = "design-settling/mod.rs"]
mod design_settling;
#[path = "design-shards/mod.rs"]
mod design_shards;
#[path = "design-target/mod.rs"]
mod design_target;
#[path = "design-window/mod.rs"]
mod design_window;
#[path = "2024-discard-off/mod.rs"]
mod discard_off_2024;
#[path = "2024-extent-size/mod.rs"]
mod extent_size_2024;
#[path = "2024-file-size/mod.rs"]
mod file_size_2024;
#[path = "2022-gc-stall/mod.rs"]
mod gc_stall_2022;
#[path = "2025-growth/mod.rs"]
mod growth_2025;
#[path = "2022-half-duplex/mod.rs"]
mod half_duplex_2022;
#[path = "2022-hard-disk/mod.rs"]
mod hard_disk_2022;
#[path = "2024-high-extents/mod.rs"]
mod high_extents_2024;
#[path = "2022-ingestion/mod.rs"]
mod ingestion_2022;
#[path = "2016-io-queues/mod.rs"]
mod io_queues_2016;
#[path = "2018-knee/mod.rs"]
mod knee_2018;
#[path = "2018-knee-by-size/mod.rs"]
mod knee_by_size_2018;
#[path = "2022-latency/mod.rs"]
mod latency_2022;
#[path = "2018-littles-law/mod.rs"]
mod littles_law_2018;
#[path = "2024-low-extents/mod.rs"]
mod low_extents_2024;
#[path = "2025-older-disks/mod.rs"]
mod older_disks_2025;
#[path = "2024-paced/mod.rs"]
mod paced_2024;
#[path = "2025-parallelism/mod.rs"]
mod parallelism_2025;
#[path = "2022-queries/mod.rs"]
mod queries_2022;
#[path = "2025-raid0-collisions/mod.rs"]
mod raid0_collisions_2025;
#[path = "2025-raid0-placement/mod.rs"]
mod raid0_placement_2025;
#[path = "2022-second-disk/mod.rs"]
mod second_disk_2022;
#[path = "2016-shares/mod.rs"]
mod shares_2016;
#[path = "2022-stages/mod.rs"]
mod stages_2022;
#[path = "2024-sync-period/mod.rs"]
mod sync_period_2024;
#[path = "2024-trim-job/mod.rs"]
mod trim_job_2024;
#[path = "2016-write-load/mod.rs"]
mod write_load_2016;

/// All of them, in the order of publication.
pub fn all() -> Vec<Experiment> {
    vec![
        io_queues_2016::EXPERIMENT,
        shares_2016::EXPERIMENT,
        write_load_2016::EXPERIMENT,
        bursts_2016::EXPERIMENT,
        littles_law_2018::EXPERIMENT,
        knee_2018::EXPERIMENT,
        knee_by_size_2018::EXPERIMENT,
        deep_writes_2018::EXPERIMENT,
        stages_2022::EXPERIMENT,
        half_duplex_2022::EXPERIMENT,
        second_disk_2022::EXPERIMENT,
        hard_disk_2022::EXPERIMENT,
        gc_stall_2022::EXPERIMENT,
        ingestion_2022::EXPERIMENT,
        queries_2022::EXPERIMENT,
        latency_2022::EXPERIMENT,
        compaction_2022::EXPERIMENT,
        discard_off_2024::EXPERIMENT,
        low_extents_2024::EXPERIMENT,
        high_extents_2024::EXPERIMENT,
        trim_job_2024::EXPERIMENT,
        bursts_2024::EXPERIMENT,
        sync_period_2024::EXPERIMENT,
        file_size_2024::EXPERIMENT,
        extent_size_2024::EXPERIMENT,
        paced_2024::EXPERIMENT,
        capacity_2025::EXPERIMENT,
        allocation_2025::EXPERIMENT,
        parallelism_2025::EXPERIMENT,
        growth_2025::EXPERIMENT,
        raid0_collisions_2025::EXPERIMENT,
        raid0_placement_2025::EXPERIMENT,
        chunk_border_2025::EXPERIMENT,
        older_disks_2025::EXPERIMENT,
        design_cost::EXPERIMENT,
        design_window::EXPERIMENT,
        design_target::EXPERIMENT,
        design_shards::EXPERIMENT,
        design_settling::EXPERIMENT,
    ]
}

/// The experiment that has this name, or did once.
pub fn find(name: &str) -> Option<Experiment> {
    let is_called = |experiment: &Experiment| {
        [experiment.name, experiment.alias].iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    all().into_iter().find(is_called)
}

#[cfg(test)]
mod tests;
