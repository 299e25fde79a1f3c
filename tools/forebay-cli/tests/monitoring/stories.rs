//! What can be wrong, and which alerts say so. What a simulation has not, pages of memory, deletes
//! and permits, is in [`crate::provoked`].

use std::time::Duration;

use forebay::metrics::Snapshot;
use forebay_core::{Control, LatencyTarget, Op};
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
            config.scheduler.latency_target = target.ok().map(LatencyTarget::in_disk);
        },
        ..HEALTHY
    },
    Story {
        name: "the model is 20 % too high",
        fires: &["ForebayDiskSlowerThanItsFigures"],
        says: Some(("model-too-fast", "too high")),
        figures_percent: 120,
        ..HEALTHY
    },
    Story {
        name: "a ceiling is half of what the disk does",
        fires: &["ForebayDiskFasterThanItsFigures"],
        // where a disk takes long to answer, nothing tells this from one that is full
        says: None,
        figures_percent: 50,
        config: |config| config.scheduler.control = Control::Rates,
        ..HEALTHY
    },
    Story {
        name: "a disk that gets slow",
        fires: &["ForebayDiskGotSlow", "ForebayDiskSlowerThanItsFigures"],
        says: Some(("disk-got-slow", "The disk became slow")),
        faults: "faults:\n- {kind: slow, from: TROUBLE, percent: 50}\n",
        ..HEALTHY
    },
    Story {
        name: "a disk that takes longer than the latency target",
        fires: &[
            "ForebayDiskGotSlow",
            "ForebayDiskSlowerThanItsFigures",
            "ForebayLatencyTargetMissed",
        ],
        says: None,
        faults: "faults:\n- {kind: slow, from: TROUBLE, percent: 5}\n",
        config: |config| {
            let target = LatencyTarget::new(Op::Read, 950, TARGET);
            config.scheduler.latency_target = target.ok().map(LatencyTarget::in_disk);
        },
        ..HEALTHY
    },
    Story {
        name: "a stalled shard",
        fires: &["ForebayShardStalled"],
        says: Some(("shard-stalled", "has been stalled for")),
        config: |config| {
            let length = Duration::from_secs(10_000);
            // within some seconds
            let one_in = config.disk.rates().read_iops / 10;
            config.stalls = Some(Stalls { one_in, length, shards: vec![1] });
        },
        ..HEALTHY
    },
    Story {
        name: "a thread that turns late",
        fires: &["ForebayThreadTurnsLate"],
        says: Some(("turns-late", "polled late")),
        config: |config| {
            let [shortest, longest] = [20, 60].map(Duration::from_millis);
            config.long_turns = Some(LongTurns { one_in: 2, shortest, longest, shards: vec![1] });
        },
        ..HEALTHY
    },
    Story {
        name: "a class starved by its limit",
        fires: &["ForebayClassHeldByItsLimit"],
        says: Some(("starved-by-limit", "is starved by its limit")),
        jobs: Some(
            "- {name: query, type: randread, shards: all, shard_info: {parallelism: ALL}}\n\
             - {name: bulk, type: randwrite, shards: all, shard_info: {parallelism: ALL, \
                bandwidth: 100kB}}\n",
        ),
        ..HEALTHY
    },
    Story {
        name: "misaligned writes",
        fires: &["ForebayMisalignedWrites"],
        says: Some(("misaligned-writes", "of the writes are not aligned to the blocks")),
        jobs: Some(
            "- {name: log, type: randwrite, shards: all, shard_info: {parallelism: ALL, \
                reqsize: 1kB}}\n",
        ),
        ..HEALTHY
    },
    Story {
        name: "a disk whose requests come back too late",
        fires: &["ForebayRequestsOverdue"],
        says: Some(("overdue", "the window no longer counts them")),
        faults: "faults:\n- {kind: hang, from: TROUBLE, length: 64MB}\n",
        ..HEALTHY
    },
    Story {
        name: "a disk that stands still",
        fires: &["ForebayDiskStalled", "ForebayRequestsOverdue"],
        // TROUBLE is 120 s here, and the runs that are told in words are shorter
        says: None,
        faults: "faults:\n- {kind: hang, from: TROUBLE, to: 126s}\n",
        ..HEALTHY
    },
    Story {
        name: "a disk that fails",
        fires: &["ForebayDiskErrors"],
        says: Some(("errors", "failed")),
        faults: "faults:\n- {kind: error, length: 64MB}\n",
        ..HEALTHY
    },
    Story {
        name: "a bug",
        fires: &["ForebayBug"],
        says: None,
        counted: |snapshot: &mut Snapshot, second| {
            snapshot.bugs = u64::from(second > TROUBLE_SECONDS);
        },
        ..HEALTHY
    },
];

/// What a read of the healthy run stays within.
const TARGET: Duration = Duration::from_millis(20);
