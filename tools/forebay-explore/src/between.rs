//! What few measured loads say of those between them.

use crate::loads::{EXCESS_MAX, Load};

/// Steps of each axis that is filled.
const STEPS: usize = 20;
/// How much less a load counts that is further away: by this power of the distance.
const FALL: f64 = 4.0;
/// How much more a latency is above or below the goal for each step that the nearest load on the
/// other side of the goal is away: search goes no further out than where the goal breaks.
const SURER: f64 = 0.03;

/// Loads in equal steps of both directions, as the halves of a chess board: each between what
/// measured loads around it say, no better than what is less and no worse than what is more.
pub(crate) fn halves(measured: &[Load]) -> [Vec<Load>; 2] {
    let mut halves = [Vec::new(), Vec::new()];
    let part = |step: usize| step as f64 / STEPS as f64;
    for write in 0..=STEPS {
        for read in 1..=STEPS {
            halves[(write + read) % 2].push(between(measured, part(write), part(read)));
        }
    }
    halves
}

fn between(measured: &[Load], write: f64, read: f64) -> Load {
    let (mut sum, mut weights) = (0.0, 0.0);
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    // how far the nearest load is that keeps the goal, and the nearest that breaks it
    let mut nearest = [f64::INFINITY; 2];
    // so near that it is the same load
    let near = 0.1 / STEPS as f64;
    for load in measured {
        let (across, up) = (load.write - write, load.read - read);
        let distance = libm::sqrt(across * across + up * up);
        let weight = libm::pow(near / distance.max(near), FALL);
        sum += weight * load.excess;
        weights += weight;
        if across <= near && up <= near {
            least = least.max(load.excess);
        }
        if across >= -near && up >= -near {
            most = most.min(load.excess);
        }
        let side = &mut nearest[usize::from(!load.safe)];
        *side = side.min(distance);
    }
    let mut excess = sum / weights;
    // where more load was seen to be faster, both bounds say nothing
    if least <= most {
        excess = excess.clamp(least, most);
    }
    let safe = excess <= 0.0;
    if nearest[0].min(nearest[1]) > near {
        let sure = SURER * STEPS as f64 * nearest[usize::from(safe)];
        excess = if safe { excess.min(-sure) } else { excess.max(sure) };
    }
    Load { write, read, safe, excess: excess.clamp(-EXCESS_MAX, EXCESS_MAX) }
}
