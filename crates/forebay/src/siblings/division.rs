//! The part of a disk that this process may use next to others.
//!
//! Each process computes its own part, from the demands of all. It gets its fair share, and a part
//! of what others leave unused of theirs (max-min fairness). A process may get more than its part,
//! because the disk serves its requests faster than their costs say. It then reduces its part until
//! it gets its share.

use forebay_core::Time;

use super::slot::{Demand, Slot};

/// A process that has not written its slot for this long, in nanoseconds (250 ms), is stopped or
/// dead. This is five exchanges, so a thread that is late for some of them still counts. With a
/// longer time the part of a dead process lies unused for longer.
const SILENT_NANOS: u64 = 250_000_000;
/// The factor by which all parts together exceed the disk's figures. With a smaller factor it takes
/// longer to find out that the disk does more than its figures. With a larger one, only their trim
/// slows the processes that are ahead.
const HEADROOM: f64 = 1.05;
/// How fast a process that is ahead reduces its part: the power of the odds by which it is ahead,
/// per exchange. A larger power oscillates, because an exchange sees the average of the last ones.
/// A smaller one takes longer.
const TRIM_POWER: f64 = 0.06;
/// The least fraction to which a part is trimmed. If the process still gets more, that is by its
/// few requests alone.
const TRIM_MIN: f64 = 1.0 / 16.0;
/// The unit of parts: one is a million.
const WHOLE: f64 = 1e6;

/// The known state of the other processes.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    observed: Vec<Observed>,
    own: [Own; 2],
}

#[derive(Clone, Copy, Debug)]
struct Observed {
    number: usize,
    sequence: u64,
    changed_at: Time,
}

/// The state of one direction of this process.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// Its last shares.
    weight: u32,
    trim: f64,
}

impl Default for Own {
    fn default() -> Self {
        Self { weight: 100, trim: 1.0 }
    }
}

impl Siblings {
    /// The factors by which this process reduces its fair part, in millionths, by direction.
    pub(crate) fn trims(&self) -> [u32; 2] {
        self.own.map(|own| (own.trim * WHOLE) as u32)
    }

    /// The parts of this process at `now`, in millionths, by direction. `None` while nobody else
    /// uses the disk. `own` are its demands, `slots` those of the others, and `has_owner` tells
    /// whether the process of a slot lives.
    pub(crate) fn look(
        &mut self,
        now: Time,
        own: [Demand; 2],
        slots: &[(usize, Slot)],
        has_owner: impl Fn(usize) -> bool,
    ) -> [Option<u32>; 2] {
        let observe = |(number, slot): &(usize, Slot)| {
            let before = self.observed.iter().find(|observed| observed.number == *number);
            let same = before.filter(|before| before.sequence == slot.sequence);
            let changed_at = same.map_or(now, |same| same.changed_at);
            Observed { number: *number, sequence: slot.sequence, changed_at }
        };
        self.observed = slots.iter().map(observe).collect();
        let is_alive = |observed: &Observed| {
            now.nanos_since(observed.changed_at) < SILENT_NANOS && has_owner(observed.number)
        };
        let alive = self.observed.iter().zip(slots).filter(|(observed, _)| is_alive(observed));
        let others: Vec<[Demand; 2]> = alive.map(|(_, (_, slot))| slot.demands).collect();
        std::array::from_fn(|direction| {
            let others: Vec<Demand> = others.iter().map(|demands| demands[direction]).collect();
            self.own[direction].part(own[direction], &others)
        })
    }
}

impl Own {
    fn part(&mut self, own: Demand, others: &[Demand]) -> Option<u32> {
        if own.weight > 0 {
            self.weight = own.weight;
        }
        let others: Vec<Demand> = others.iter().filter(|other| other.weight > 0).copied().collect();
        if others.is_empty() {
            self.trim = 1.0;
            return None;
        }
        let total = others.iter().chain([&own]).map(|demand| f64::from(demand.used)).sum::<f64>();
        let used = |demand: &Demand| f64::from(demand.used) / total.max(1.0);
        let due = due(self.weight.into(), &others, used);
        let trims =
            others.iter().filter(|other| other.wants).map(|other| f64::from(other.trim) / WHOLE);
        self.trim = match trims.reduce(f64::max) {
            Some(largest) if own.wants => {
                let trim = self.trim * (odds(due) / odds(used(&own))).powf(TRIM_POWER);
                // The process that is furthest behind is not trimmed.
                (trim / trim.max(largest)).clamp(TRIM_MIN, 1.0)
            }
            _ => 1.0,
        };
        let rate = (total / WHOLE).max(1.0) * HEADROOM;
        Some((due * self.trim * rate * WHOLE).max(1.0) as u32)
    }
}

/// The odds of a part against the rest. A large part that is slightly ahead, and a small one that
/// is far behind, then count the same.
fn odds(part: f64) -> f64 {
    let part = part.clamp(1e-6, 1.0 - 1e-6);
    part / (1.0 - part)
}

/// The fraction of the disk due to a process of this weight next to `others`. Those that do not
/// want more get what they use, and the rest is divided by weight.
fn due(weight: f64, others: &[Demand], used: impl Fn(&Demand) -> f64) -> f64 {
    let (mut left, mut weights) = (1.0, weight);
    weights += others.iter().map(|other| f64::from(other.weight)).sum::<f64>();
    let mut content: Vec<&Demand> = others.iter().filter(|other| !other.wants).collect();
    loop {
        let fits = |other: &&Demand| used(other) <= left * f64::from(other.weight) / weights;
        let Some(at) = content.iter().position(fits) else { return left * weight / weights };
        let other = content.swap_remove(at);
        left -= used(other);
        weights -= f64::from(other.weight);
    }
}
