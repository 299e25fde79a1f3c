//! What can be wrong, and which alerts say so.

use std::time::Duration;

use forebay::metrics::Snapshot;
use forebay_core::{LatencyTarget, Op};
use forebay_sim::simulation::{LongTurns, Stalls};

use crate::story::{HEALTHY, Story, TROUBLE_SECONDS};

pub(crate) const STORIES: &[Story] = &[
    HEALTHY,
    Story {
        name: "healthy with half of the load that the disk could carry",
        jobs: Some(
            "- {name: query, type: randread, shards: all, shard_info: {parallelism: 5, rps: 25}}\n",
        ),
        ..HEALTHY
    },
    Story {
        name: "healthy with a latency target",
        config: |config| {
            let target = LatencyTarget::new(Op::Read, 950, TARGET);
            config.scheduler.latency_target = target.ok();
        },
        ..HEALTHY
    },
    Story {
        name: "the model is 20 % too high",
        fires: &["ForebayDiskSlowerThanItsFigures"],
        figures_percent: 120,
        ..HEALTHY
    },
    Story {
        name: "the model is half of what the disk does",
        fires: &["ForebayDiskFasterThanItsFigures"],
        figures_percent: 50,
        ..HEALTHY
    },
    Story {
        name: "a disk that gets slow",
        fires: &["ForebayDiskGotSlow", "ForebayDiskSlowerThanItsFigures"],
        faults: "faults:\n- {kind: slow, from: 120s, percent: 50}\n",
        ..HEALTHY
    },
    Story {
        name: "a disk that takes longer than the latency target",
        fires: &[
            "ForebayDiskGotSlow",
            "ForebayDiskSlowerThanItsFigures",
            "ForebayLatencyTargetMissed",
        ],
        faults: "faults:\n- {kind: slow, from: 120s, percent: 5}\n",
        config: |config| {
            let target = LatencyTarget::new(Op::Read, 950, TARGET);
            config.scheduler.latency_target = target.ok();
        },
        ..HEALTHY
    },
    Story {
        name: "a stalled shard",
        fires: &["ForebayShardStalled"],
        config: |config| {
            let length = Duration::from_secs(10_000);
            config.stalls = Some(Stalls { one_in: 20_000, length, shards: vec![1] });
        },
        ..HEALTHY
    },
    Story {
        name: "a thread that turns late",
        fires: &["ForebayThreadTurnsLate"],
        config: |config| {
            let [shortest, longest] = [20, 60].map(Duration::from_millis);
            config.long_turns = Some(LongTurns { one_in: 2, shortest, longest, shards: vec![1] });
        },
        ..HEALTHY
    },
    Story {
        name: "a class starved by its limit",
        fires: &["ForebayClassHeldByItsLimit"],
        jobs: Some(
            "- {name: query, type: randread, shards: all, shard_info: {parallelism: 4}}\n\
             - {name: bulk, type: randwrite, shards: all, shard_info: {parallelism: 4, \
                bandwidth: 100kB}}\n",
        ),
        ..HEALTHY
    },
    Story {
        name: "misaligned writes",
        fires: &["ForebayMisalignedWrites"],
        jobs: Some(
            "- {name: log, type: randwrite, shards: all, shard_info: {parallelism: 4, \
                reqsize: 1kB}}\n",
        ),
        ..HEALTHY
    },
    Story {
        name: "writeback that passes no class",
        fires: &["ForebayIoPassesNoClass"],
        counted: |snapshot, second| {
            let written = &mut snapshot.disks[0].traffic.written;
            let escaped = 5_000_000 * second.saturating_sub(TROUBLE_SECONDS);
            written.done += escaped;
            written.unscheduled = escaped;
            written.of_this_process = escaped;
        },
        ..HEALTHY
    },
    Story {
        name: "deletes that fall behind",
        fires: &["ForebayDeletesFallBehind"],
        counted: |snapshot, second| {
            snapshot.discards[0].backlog_files = 1;
            snapshot.discards[0].oldest_nanos = 10 * second * 1_000_000_000;
        },
        ..HEALTHY
    },
    Story {
        name: "a permit that is held while its holder waits",
        fires: &["ForebayPermitsHeldLong"],
        counted: |snapshot, second| {
            let held = second.saturating_sub(TROUBLE_SECONDS);
            snapshot.disks[0].classes[0].held_long = u32::from(held > 0);
            snapshot.disks[0].classes[0].held_long_nanos = held * 1_000_000_000;
        },
        ..HEALTHY
    },
    Story {
        name: "a disk whose requests come back too late",
        fires: &["ForebayRequestsOverdue"],
        counted: |snapshot, second| {
            snapshot.disks[0].classes[0].counters.overdue = after_trouble(second);
        },
        ..HEALTHY
    },
    Story {
        name: "a disk that fails",
        fires: &["ForebayDiskErrors"],
        counted: |snapshot, second| {
            snapshot.disks[0].classes[0].counters.errors = after_trouble(second);
        },
        ..HEALTHY
    },
    Story {
        name: "a machine without io_uring",
        fires: &["ForebayThreadsInsteadOfIoUring"],
        counted: |snapshot, _| {
            let engines = &mut snapshot.disks[0].engines;
            std::mem::swap(&mut engines.io_uring, &mut engines.threads);
        },
        ..HEALTHY
    },
    Story {
        name: "a bug",
        fires: &["ForebayBug"],
        counted: |snapshot: &mut Snapshot, second| {
            snapshot.bugs = u64::from(second > TROUBLE_SECONDS);
        },
        ..HEALTHY
    },
];

/// What a read of the healthy run stays within.
const TARGET: Duration = Duration::from_millis(20);

fn after_trouble(second: u64) -> u64 {
    second.saturating_sub(TROUBLE_SECONDS)
}
