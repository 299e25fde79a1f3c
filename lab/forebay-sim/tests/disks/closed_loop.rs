//! A load that keeps a fixed number of commands in flight, in virtual time.

use std::collections::HashMap;

use forebay_config::Source;
use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, Completion, SimDisk};
use forebay_sim::spec::DiskSpec;

/// The disk that a disk file describes.
pub(crate) fn disk(text: &str) -> DiskSpec {
    DiskSpec::parse(&Source::new("disk.yaml", text)).expect("a disk file")
}

/// What is asked of the disk, at random aligned offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) op: Op,
    pub(crate) len: u64,
    pub(crate) depth: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadResult {
    pub(crate) iops: u64,
    pub(crate) mean_micros: u64,
}

const COMMANDS: u64 = 20_000;

/// Runs `load` on a fresh disk, for this many commands that their start and end do not matter.
pub(crate) fn run(spec: &DiskSpec, load: Load) -> LoadResult {
    let mut disk = spec.build(1);
    let mut offsets = Rng::new(1, &[]);
    let mut started = HashMap::new();
    let mut submit = |disk: &mut dyn SimDisk, started: &mut HashMap<u64, Time>, now, id| {
        let offset = offsets.below(spec.capacity() / load.len) * load.len;
        disk.submit(now, id, Command { op: load.op, offset, len: load.len });
        started.insert(id, now);
    };
    for id in 0..load.depth {
        submit(&mut *disk, &mut started, Time::ZERO, id);
    }
    let (mut waited, mut id) = (0, load.depth);
    // The first commands find an idle disk, so they do not count.
    let (mut first, mut last) = (Time::ZERO, Time::ZERO);
    for done in 0..COMMANDS {
        let Completion { id: finished, at, .. } = next(&mut *disk);
        last = at;
        if done < COMMANDS / 2 {
            first = at;
        } else {
            waited += at.nanos_since(started[&finished]);
        }
        started.remove(&finished);
        submit(&mut *disk, &mut started, at, id);
        id += 1;
    }
    let counted = COMMANDS / 2;
    LoadResult {
        iops: counted * 1_000_000_000 / last.nanos_since(first),
        mean_micros: waited / counted / 1000,
    }
}

/// The next command to finish, at the moment it does.
pub(crate) fn next(disk: &mut dyn SimDisk) -> Completion {
    loop {
        let now = disk.next_event().expect("something is under way");
        if let Some(finished) = disk.poll_completion(now) {
            return finished;
        }
    }
}
