//! Cutting an operation into parts, and making it whole again.

use std::ops::Range;

use crate::AlignedBuf;
use crate::engine::Operation;

/// A part of an operation, or all of it.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) operation: Operation,
    /// Whether its first buffer is the rest of the last one of the part before.
    pub(super) continues: bool,
}

impl Piece {
    pub(super) const fn whole(operation: Operation) -> Self {
        Self { operation, continues: false }
    }

    /// Bytes that it is about; zero if it is not about any.
    pub(super) fn len(&self) -> u64 {
        len(&self.operation)
    }

    /// Keeps the first `at` bytes, and returns the rest: `None` where one of
    /// the two would be nothing, or a part of the operation makes no sense.
    pub(super) fn split_off(&mut self, at: u64) -> Option<Self> {
        if at == 0 || at >= self.len() {
            return None;
        }
        let (operation, continues) = match &mut self.operation {
            Operation::Read { file, offset, buffer, range } => {
                let (cut, rest) = split_range(range, at)?;
                let buffer = buffer.split_off(cut)?;
                *range = range.start..cut;
                let (file, offset, range) = (file.clone(), *offset + at, rest);
                (Operation::Read { file, offset, buffer, range }, true)
            }
            Operation::Write { file, offset, buffer, range } => {
                let (cut, rest) = split_range(range, at)?;
                let buffer = buffer.split_off(cut)?;
                *range = range.start..cut;
                let (file, offset, range) = (file.clone(), *offset + at, rest);
                (Operation::Write { file, offset, buffer, range }, true)
            }
            Operation::ReadVectored { file, offset, buffers } => {
                let (buffers, continues) = split_vector(buffers, at)?;
                let (file, offset) = (file.clone(), *offset + at);
                (Operation::ReadVectored { file, offset, buffers }, continues)
            }
            Operation::WriteVectored { file, offset, buffers } => {
                let (buffers, continues) = split_vector(buffers, at)?;
                let (file, offset) = (file.clone(), *offset + at);
                (Operation::WriteVectored { file, offset, buffers }, continues)
            }
            Operation::PunchHole { file, offset, len } => {
                let (file, offset, rest) = (file.clone(), *offset + at, *len - at);
                *len = at;
                (Operation::PunchHole { file, offset, len: rest }, false)
            }
            _ => return None,
        };
        Some(Self { operation, continues })
    }

    /// Takes back what [`Piece::split_off`] returned.
    pub(super) fn unsplit(&mut self, rest: Self) {
        use Operation::{PunchHole, Read, ReadVectored, Write, WriteVectored};
        match (&mut self.operation, rest.operation) {
            (Read { buffer, range, .. }, Read { buffer: more, range: end, .. }) => {
                buffer.unsplit(more);
                range.end += end.len();
            }
            (Write { buffer, range, .. }, Write { buffer: more, range: end, .. }) => {
                buffer.unsplit(more);
                range.end += end.len();
            }
            (ReadVectored { buffers, .. }, ReadVectored { buffers: more, .. })
            | (WriteVectored { buffers, .. }, WriteVectored { buffers: more, .. }) => {
                let mut more = more.into_iter();
                if rest.continues
                    && let (Some(last), Some(first)) = (buffers.last_mut(), more.next())
                {
                    // It was cut from there.
                    let _ = last.unsplit(first);
                }
                buffers.extend(more);
            }
            (PunchHole { len, .. }, PunchHole { len: more, .. }) => *len += more,
            _ => {}
        }
    }
}

/// Bytes that `operation` is about; zero if it is not about any.
pub(super) fn len(operation: &Operation) -> u64 {
    match operation {
        Operation::Read { range, .. } | Operation::Write { range, .. } => range.len() as u64,
        Operation::ReadVectored { buffers, .. } | Operation::WriteVectored { buffers, .. } => {
            buffers.iter().map(|buffer| buffer.len() as u64).sum()
        }
        Operation::PunchHole { len, .. } | Operation::Unlink { len, .. } => *len,
        _ => 0,
    }
}

/// Where a buffer is cut whose `range` is cut after `at` bytes, and the range of
/// the rest.
fn split_range(range: &Range<usize>, at: u64) -> Option<(usize, Range<usize>)> {
    let cut = range.start + usize::try_from(at).ok()?;
    Some((cut, 0..range.end.checked_sub(cut)?))
}

/// The buffers from byte `at` on, and whether the first was cut.
fn split_vector(buffers: &mut Vec<AlignedBuf>, at: u64) -> Option<(Vec<AlignedBuf>, bool)> {
    let mut left = usize::try_from(at).ok()?;
    let mut whole = 0;
    while left >= buffers.get(whole)?.len() {
        left -= buffers[whole].len();
        whole += 1;
    }
    let Some(first) = buffers[whole].split_off(left) else {
        return Some((buffers.split_off(whole), false));
    };
    let mut rest = vec![first];
    rest.extend(buffers.drain(whole + 1..));
    Some((rest, true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::DirectFile;

    fn null() -> DirectFile {
        DirectFile::options().read(true).write(true).open("/dev/null").unwrap()
    }

    fn numbered(len: usize, from: &mut u8) -> AlignedBuf {
        let mut buffer = AlignedBuf::new(len, 512).unwrap();
        for byte in buffer.iter_mut() {
            *byte = *from;
            *from = from.wrapping_add(1);
        }
        buffer
    }

    /// What a piece would transfer, with its offset.
    fn content(piece: &Piece) -> (u64, Vec<u8>) {
        match &piece.operation {
            Operation::Write { offset, buffer, range, .. } => {
                (*offset, buffer.filled()[range.clone()].to_vec())
            }
            Operation::WriteVectored { offset, buffers, .. } => {
                (*offset, buffers.iter().flat_map(|buffer| buffer.to_vec()).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Cuts a piece at each of `cuts`, checks the parts, joins them.
    fn cut_and_join(mut piece: Piece, cuts: &[u64]) -> Piece {
        let (start, data) = content(&piece);
        let mut parts = Vec::new();
        let mut at = 0;
        for &cut in cuts {
            let Some(rest) = piece.split_off(cut) else { continue };
            parts.push(std::mem::replace(&mut piece, rest));
            at += cut;
            let (offset, rest) = content(&piece);
            assert_eq!((offset, &*rest), (start + at, &data[at as usize..]));
        }
        parts.push(piece);
        let joined: Vec<u8> = parts.iter().flat_map(|part| content(part).1).collect();
        assert_eq!(joined, data);
        parts
            .into_iter()
            .reduce(|mut front, part| {
                front.unsplit(part);
                front
            })
            .unwrap()
    }

    proptest! {
        #[test]
        fn a_range_survives(len in 1usize..200, from in 0usize..100, cuts in cuts()) {
            let from = from.min(len);
            let operation = Operation::Write {
                file: null(), offset: 7, buffer: numbered(len, &mut 0).into(), range: from..len,
            };
            let whole = cut_and_join(Piece::whole(operation), &cuts);
            let Operation::Write { offset, buffer, range, .. } = whole.operation else { panic!() };
            prop_assert_eq!((offset, range), (7, from..len));
            prop_assert_eq!(buffer.filled(), &*numbered(len, &mut 0));
        }

        #[test]
        fn a_vector_survives(lens in prop::collection::vec(1usize..50, 1..10), cuts in cuts()) {
            let mut from = 0;
            let buffers = lens.iter().map(|len| numbered(*len, &mut from)).collect();
            let operation = Operation::WriteVectored { file: null(), offset: 7, buffers };
            let whole = cut_and_join(Piece::whole(operation), &cuts);
            let Operation::WriteVectored { buffers, .. } = whole.operation else { panic!() };
            let mut from = 0;
            let expected: Vec<_> = lens.iter().map(|len| numbered(*len, &mut from)).collect();
            let bytes = |buffers: Vec<AlignedBuf>| -> Vec<Vec<u8>> {
                buffers.iter().map(|buffer| buffer.to_vec()).collect()
            };
            prop_assert_eq!(bytes(buffers), bytes(expected));
        }
    }

    fn cuts() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0u64..60, 0..8)
    }

    #[test]
    fn buffers_of_the_caller_that_touch_stay_two() {
        for cut in [30, 50, 70] {
            let mut front = numbered(100, &mut 0);
            let back = front.split_off(50).unwrap();
            let buffers = vec![front, back];
            let operation = Operation::WriteVectored { file: null(), offset: 0, buffers };
            let whole = cut_and_join(Piece::whole(operation), &[cut]);
            let Operation::WriteVectored { buffers, .. } = whole.operation else { panic!() };
            assert_eq!(buffers.iter().map(|b| b.len()).collect::<Vec<_>>(), [50, 50]);
        }
    }

    #[test]
    fn a_hole_is_cut_and_a_flush_is_not() {
        let mut hole = Piece::whole(Operation::PunchHole { file: null(), offset: 10, len: 100 });
        let rest = hole.split_off(40).unwrap();
        assert!(matches!(rest.operation, Operation::PunchHole { offset: 50, len: 60, .. }));
        hole.unsplit(rest);
        assert_eq!(hole.len(), 100);
        assert!(Piece::whole(Operation::SyncAll { file: null() }).split_off(1).is_none());
    }
}
