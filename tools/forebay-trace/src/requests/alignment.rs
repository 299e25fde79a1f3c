//! How offsets of requests are aligned.

use serde::Serialize;

/// The powers of two that are told apart: from 512 bytes to 1 MiB and more.
const LEAST: u32 = 9;
const MOST: u32 = 20;

/// How many requests begin at multiples of which power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    counts: [u64; (MOST - LEAST + 1) as usize],
}

/// The requests whose offset is a multiple of a power of two, and of no greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AlignedRequests {
    /// The power of two, in bytes; the last one stands for all that are greater.
    pub bytes: u64,
    /// How many requests.
    pub requests: u64,
}

impl Alignment {
    pub(super) fn add(&mut self, offset: u64) {
        let power = offset.trailing_zeros().clamp(LEAST, MOST);
        if let Some(count) = self.counts.get_mut((power - LEAST) as usize) {
            *count += 1;
        }
    }

    /// From the least power to the greatest.
    pub(super) fn histogram(&self) -> Vec<AlignedRequests> {
        let powers = self.counts.iter().zip(LEAST..);
        powers.map(|(&requests, power)| AlignedRequests { bytes: 1 << power, requests }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_counted_by_their_greatest_power_of_two() {
        let mut alignment = Alignment::default();
        for offset in [0, 512, 1024, 3 << 10, 4096, 12 << 10, 64 << 10, 1 << 20, 3 << 30] {
            alignment.add(offset);
        }
        let histogram = alignment.histogram();
        let found: Vec<_> = histogram.iter().filter(|part| part.requests > 0).collect();
        let found: Vec<_> = found.iter().map(|part| (part.bytes >> 9, part.requests)).collect();
        assert_eq!(found, [(1, 1), (2, 2), (8, 2), (128, 1), (2048, 3)]);
        assert_eq!((histogram.len(), histogram[0].bytes, histogram[11].bytes), (12, 512, 1 << 20));
    }
}
