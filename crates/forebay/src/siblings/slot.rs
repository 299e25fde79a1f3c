//! The slot of a process in a segment.

/// The bytes of a slot.
pub(super) const SLOT_LEN: usize = 64;
/// The bytes of the content, which a checksum follows.
const PAYLOAD_LEN: usize = 40;
/// The most shares of a process: those that all classes of a scheduler may have together.
const WEIGHT_MAX: u32 = 1 << 26;
/// The highest usage in millionths. No disk does more than sixteen times its figures.
const USED_MAX: u32 = 16_000_000;

/// The unit of usage and trims: one is a million.
const WHOLE: u32 = 1_000_000;

/// The demand of a process for a disk, or for one direction of a duplex disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// The shares of the classes that had requests within the last second; 0 for none.
    pub(crate) weight: u32,
    /// The disk time that the process used per time, in millionths.
    pub(crate) used: u32,
    /// Whether requests waited for the disk, so that the process could use more.
    pub(crate) wants: bool,
    /// The factor by which the process reduces its fair part, in millionths.
    pub(crate) trim: u32,
}

/// The content of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// A number that rises with each write. If it does not rise, the process is stopped or dead.
    pub(crate) sequence: u64,
    /// The demand for all of the disk. On a duplex disk the first is for reads, and the second for
    /// the rest.
    pub(crate) demands: [Demand; 2],
}

impl Slot {
    pub(super) fn to_bytes(self) -> [u8; SLOT_LEN] {
        let mut bytes = [0; SLOT_LEN];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        for (demand, to) in self.demands.iter().zip(bytes[8..PAYLOAD_LEN].chunks_exact_mut(16)) {
            let words = [demand.weight, demand.used, demand.wants.into(), demand.trim];
            for (word, to) in words.iter().zip(to.chunks_exact_mut(4)) {
                to.copy_from_slice(&word.to_le_bytes());
            }
        }
        let sum = checksum(&bytes[..PAYLOAD_LEN]);
        bytes[PAYLOAD_LEN..PAYLOAD_LEN + 8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The content of these bytes, with each number within its bounds. `None` if they are half
    /// written or not a slot.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (payload, sum) = bytes.get(..PAYLOAD_LEN + 8)?.split_at(PAYLOAD_LEN);
        let (sequence, demands) = payload.split_at(8);
        if sum != checksum(payload).to_le_bytes() {
            return None;
        }
        let word =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let demand = |bytes: &[u8]| {
            let number = |at, max: u32| word(&bytes[at..at + 4]).min(max.into()) as u32;
            let (weight, used) = (number(0, WEIGHT_MAX), number(4, USED_MAX));
            Demand { weight, used, wants: number(8, 1) == 1, trim: number(12, WHOLE) }
        };
        Some(Self {
            sequence: word(sequence),
            demands: [demand(&demands[..16]), demand(&demands[16..])],
        })
    }
}

/// FNV-1a with a start value of this format.
fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0x666f_7265_6261_7901, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_read_back_within_its_bounds_and_other_bytes_are_none() {
        let demand = Demand { weight: u32::MAX, used: u32::MAX, wants: true, trim: u32::MAX };
        let slot = Slot { sequence: 1 << 60, demands: [demand, Demand { weight: 7, ..demand }] };
        let bytes = slot.to_bytes();
        let bounded = Demand { weight: WEIGHT_MAX, used: USED_MAX, wants: true, trim: WHOLE };
        let read = Slot { demands: [bounded, Demand { weight: 7, ..bounded }], ..slot };
        assert_eq!(Slot::from_bytes(&bytes), Some(read));
        for bit in 0..8 * (PAYLOAD_LEN + 8) {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::from_bytes(&other), None, "bit {bit}");
        }
        assert_eq!(Slot::from_bytes(&bytes[..PAYLOAD_LEN]), None);
        assert_eq!(Slot::from_bytes(&[0; SLOT_LEN]), None);
    }
}
