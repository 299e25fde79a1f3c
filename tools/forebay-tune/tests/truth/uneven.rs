//! A disk whose speed changes all the time, around a mean that is known.

use std::time::Duration;

use forebay_core::{DiskRates, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, Completion, SimDisk};

/// The speed is another one in each of these times.
const STEP_NANOS: u64 = 800_000_000;
/// No measurement of the tests takes longer than this many of them.
const STEPS: usize = 4000;
const ONE: u64 = 1_000_000;
/// Every second step begins with a stop of 20 to 60 ms.
const STOP_MIN: u64 = 20_000_000;
const STOP_MORE: u64 = 40_000_000;

/// A disk on a clock of its own.
pub(crate) struct Uneven {
    disk: Box<dyn SimDisk>,
    /// From the first on, without gaps.
    parts: Vec<Part>,
}

/// A time in which the clock of the disk runs at one speed.
#[derive(Clone, Copy)]
struct Part {
    began: u64,
    inside: u64,
    /// In millionths.
    speed: u64,
}

impl Uneven {
    /// `disk` at speeds that differ by `deviation`, a part of one, and with stops, by `seed`; and
    /// the mean speed in the long run.
    pub(crate) fn new(disk: Box<dyn SimDisk>, deviation: f64, seed: u64) -> (Self, f64) {
        let mut chance = Rng::new(seed, &[17]);
        let mut parts = Vec::new();
        let (mut began, mut inside) = (0, 0);
        let mut add = |nanos: u64, speed: u64| {
            parts.push(Part { began, inside, speed });
            began += nanos;
            inside += nanos * speed / ONE;
        };
        for _ in 0..STEPS {
            let sum: u64 = (0..12).map(|_| chance.below(ONE)).sum();
            let off = deviation * (sum as f64 / ONE as f64 - 6.0);
            let stop = if chance.below(2) == 0 { 0 } else { STOP_MIN + chance.below(STOP_MORE) };
            add(stop, 0);
            add(STEP_NANOS - stop, ((1.0 + off).clamp(0.3, 1.7) * ONE as f64) as u64);
        }
        add(0, ONE);
        let stopped = (STOP_MIN + STOP_MORE / 2) as f64 / 2.0 / STEP_NANOS as f64;
        (Self { disk, parts }, 1.0 - stopped)
    }

    fn inside(&self, now: Time) -> Time {
        let at = self.parts.partition_point(|part| part.began <= now.as_nanos());
        let Part { began, inside, speed } = self.parts[at.max(1) - 1];
        Time::from_nanos(inside + scaled(now.as_nanos() - began, speed, ONE))
    }

    /// The first moment at which the clock inside shows `inside`.
    fn outside(&self, inside: Time) -> Time {
        let at = self.parts.partition_point(|part| part.inside < inside.as_nanos());
        let Part { began, inside: from, speed } = self.parts[at.max(1) - 1];
        Time::from_nanos(began + scaled(inside.as_nanos() - from, ONE, speed.max(1)) + 1)
    }
}

fn scaled(nanos: u64, by: u64, of: u64) -> u64 {
    (u128::from(nanos) * u128::from(by) / u128::from(of)) as u64
}

impl SimDisk for Uneven {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.disk.submit(self.inside(now), id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        let done = self.disk.poll_completion(self.inside(now))?;
        Some(Completion { at: now, ..done })
    }

    fn next_event(&self) -> Option<Time> {
        self.disk.next_event().map(|at| self.outside(at))
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn seeks(&self) -> bool {
        self.disk.seeks()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}
