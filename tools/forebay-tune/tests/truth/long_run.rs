//! What a simulated disk does in the long run: a closed loop of its own, on the disk alone.

use forebay_core::{Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, SimDisk};
use forebay_sim::spec::DiskSpec;

const SMALL: u64 = 4096;
/// Enough for any disk to be busy: a surface whose dies are 99 % busy needs thousands.
const SMALL_IN_FLIGHT: u64 = 16_384;
const LARGE_IN_FLIGHT: u64 = 256;
/// Where they wait for seconds a slow disk needs fewer. One with a head serves what has waited for
/// long first, wherever it is: that it does best with fewer is tried.
const SLOW_IN_FLIGHT: u64 = 512;
/// Eight of them need eight times as many.
const HEAD_IN_FLIGHT: [u64; 11] = [32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024];
const SLOW_IOPS: u64 = 50_000;
/// This many requests make a rate: where the time of each is exponentially distributed, to 0.2 %.
const COUNTED: u64 = 200_000;
/// And on disks with a head, of which eleven loads are tried.
const COUNTED_HEAD: u64 = 40_000;

/// Small reads and writes per second, and bytes read and written per second by requests of this
/// many bytes, of a busy disk.
pub(crate) fn figures(spec: &DiskSpec, [reads, writes]: [u32; 2]) -> [f64; 4] {
    [
        rate(spec, Op::Read, None),
        rate(spec, Op::Write, None),
        rate(spec, Op::Read, Some(reads)),
        rate(spec, Op::Write, Some(writes)),
    ]
}

/// Small requests per second, or bytes per second of a stream of requests of this many bytes.
fn rate(spec: &DiskSpec, op: Op, stream: Option<u32>) -> f64 {
    let disk = spec.build(99);
    let slow = disk.rates().read_iops.min(disk.rates().write_iops) < SLOW_IOPS;
    let counted = |in_flight, requests| counted(spec, op, stream, in_flight, requests);
    let per_second = match (stream, slow) {
        (None, true) if disk.seeks() => {
            let tried = HEAD_IN_FLIGHT.map(|in_flight| counted(in_flight, COUNTED_HEAD));
            tried.into_iter().fold(0.0, f64::max)
        }
        (None, true) => counted(SLOW_IN_FLIGHT, COUNTED),
        (None, false) => counted(SMALL_IN_FLIGHT, COUNTED),
        (Some(_), _) => counted(LARGE_IN_FLIGHT, COUNTED),
    };
    per_second * stream.map_or(1.0, f64::from)
}

/// Requests per second, of this many that follow what was in flight at first: that was sent at
/// once, and is no steady load yet. Those done at one moment belong together.
fn counted(spec: &DiskSpec, op: Op, stream: Option<u32>, in_flight: u64, counted: u64) -> f64 {
    let mut disk = spec.build(99);
    let len = stream.map_or(SMALL, u64::from);
    let slots = spec.capacity() / len;
    let mut load =
        Load { op, random: stream.is_none(), len, slots, places: Rng::new(7, &[]), next: 0 };
    for _ in 0..in_flight {
        load.send(&mut *disk, Time::ZERO);
    }
    let (mut now, mut since, mut done) = (Time::ZERO, Time::ZERO, 0);
    let mut skipped = 0;
    while done < counted {
        now = now.max(disk.next_event().expect("the disk answers"));
        let mut at_once = 0;
        while disk.poll_completion(now).is_some() {
            at_once += 1;
            load.send(&mut *disk, now);
        }
        if skipped < 2 * in_flight {
            (skipped, since) = (skipped + at_once, now);
        } else {
            done += at_once;
        }
    }
    done as f64 / (now.nanos_since(since) as f64 / 1e9)
}

struct Load {
    op: Op,
    random: bool,
    len: u64,
    slots: u64,
    places: Rng,
    next: u64,
}

impl Load {
    fn send(&mut self, disk: &mut dyn SimDisk, now: Time) {
        let (len, slots) = (self.len, self.slots);
        let slot = if self.random { self.places.below(slots) } else { self.next % slots };
        self.next += 1;
        disk.submit(now, self.next, Command { op: self.op, offset: slot * len, len });
    }
}
