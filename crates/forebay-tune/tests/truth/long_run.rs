//! What a simulated disk does in the long run: a closed loop of its own, on the disk alone.

use std::time::Duration;

use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, SimDisk};
use forebay_sim::spec::DiskSpec;

const SMALL: u64 = 4096;
const LARGE: u64 = 1 << 20;
/// Enough for any disk to be busy: a surface whose dies are 99 % busy needs thousands.
const SMALL_IN_FLIGHT: u64 = 16_384;
const LARGE_IN_FLIGHT: u64 = 256;
/// A slow disk needs fewer, and more would take it minutes.
const SLOW_IN_FLIGHT: u64 = 512;
const SLOW_IOPS: u64 = 50_000;
/// So many requests make a rate.
const COUNTED: u64 = 200_000;
const COUNTED_SLOW: u64 = 6_000;
const COUNTED_LARGE: u64 = 20_000;

/// Small reads and writes per second, and bytes read and written per second, of the disk once it
/// was busy with the same for `before`.
pub(crate) fn figures(spec: &DiskSpec, before: Duration) -> [f64; 4] {
    let of = |op, random| rate(spec, op, random, before);
    [of(Op::Read, true), of(Op::Write, true), of(Op::Read, false), of(Op::Write, false)]
}

fn rate(spec: &DiskSpec, op: Op, random: bool, before: Duration) -> f64 {
    let mut disk = spec.build(99);
    let slow = disk.rates().read_iops.min(disk.rates().write_iops) < SLOW_IOPS;
    let mut load =
        Load { op, random, capacity: spec.capacity(), places: Rng::new(7, &[]), next: 0 };
    let (in_flight, counted) = match (random, slow) {
        (true, true) => (SLOW_IN_FLIGHT, COUNTED_SLOW),
        (true, false) => (SMALL_IN_FLIGHT, COUNTED),
        _ => (LARGE_IN_FLIGHT, if slow { COUNTED_SLOW } else { COUNTED_LARGE }),
    };
    for _ in 0..in_flight {
        load.send(&mut *disk, Time::ZERO);
    }
    // What is in flight at first was sent at once, and is no steady load yet.
    let warm = Time::ZERO.plus_nanos(before.as_nanos() as u64);
    let (mut now, mut since, mut done) = (Time::ZERO, None, 0_u64);
    let mut skipped = 0;
    while done < counted {
        now = now.max(disk.next_event().expect("the disk answers"));
        while disk.poll_completion(now).is_some() {
            skipped += 1;
            match since {
                None if now >= warm && skipped > 2 * in_flight => since = Some(now),
                None => {}
                Some(_) => done += 1,
            }
            load.send(&mut *disk, now);
        }
    }
    let seconds = now.nanos_since(since.expect("counted since then")) as f64 / 1e9;
    done as f64 / seconds * if random { 1.0 } else { LARGE as f64 }
}

struct Load {
    op: Op,
    random: bool,
    capacity: u64,
    places: Rng,
    next: u64,
}

impl Load {
    fn send(&mut self, disk: &mut dyn SimDisk, now: Time) {
        let len = if self.random { SMALL } else { LARGE };
        let slots = self.capacity / len;
        let slot = if self.random { self.places.below(slots) } else { self.next % slots };
        self.next += 1;
        disk.submit(now, self.next, Command { op: self.op, offset: slot * len, len });
    }
}
