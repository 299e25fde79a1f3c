//! Rates of a disk that has no formula for them: a short run in virtual time.

use forebay_core::{Op, Time};
use forebay_load::Rng;

use super::servers::SMALL;
use super::{Command, SimDisk};

/// Enough for two digits.
const COMMANDS: u64 = 4000;

/// How many small reads per second at random places an idle `disk` does with
/// `depth` in flight.
pub(crate) fn small_commands_per_second(disk: &mut dyn SimDisk, capacity: u64, depth: u64) -> u64 {
    let mut places = Rng::new(1, &[]);
    let mut read = |disk: &mut dyn SimDisk, now, id| {
        let offset = places.below(capacity / SMALL) * SMALL;
        disk.submit(now, id, Command { op: Op::Read, offset, len: SMALL });
    };
    for id in 0..depth.max(1) {
        read(disk, Time::ZERO, id);
    }
    let mut id = depth.max(1);
    let mut done = 0;
    let mut now = Time::ZERO;
    while done < COMMANDS {
        let Some(event) = disk.next_event() else { break };
        now = event;
        while disk.poll_completion(now).is_some() {
            read(disk, now, id);
            id += 1;
            done += 1;
        }
    }
    (done * 1_000_000_000 / now.as_nanos().max(1)).max(1)
}
