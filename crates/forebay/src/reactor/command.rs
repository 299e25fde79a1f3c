//! Operations as commands of the driver: their cost, and how they are split into parts and joined
//! again.

use std::io;
use std::ops::Range;

use forebay_core::{Op, Place};
use forebay_driver::{Command, Rest};
use rustix::io::Errno;

use crate::AlignedBuf;
use crate::engine::Operation;
use crate::messages;

impl Command for Operation {
    type Error = io::Error;

    fn op(&self) -> Op {
        match self {
            Self::Read { .. } | Self::ReadVectored { .. } => Op::Read,
            Self::SyncData { .. } | Self::SyncAll { .. } => Op::Flush,
            Self::PunchHole { .. } | Self::Unlink { .. } => Op::Discard,
            // Changes of metadata are charged as small writes.
            _ => Op::Write,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Read { range, .. } | Self::Write { range, .. } => range.len() as u64,
            Self::ReadVectored { buffers, .. } | Self::WriteVectored { buffers, .. } => {
                buffers.iter().map(|buffer| buffer.len() as u64).sum()
            }
            Self::PunchHole { len, .. } | Self::Unlink { len, .. } => *len,
            _ => 0,
        }
    }

    fn place(&self) -> Option<Place> {
        match self {
            Self::Read { file, offset, .. }
            | Self::ReadVectored { file, offset, .. }
            | Self::Write { file, offset, .. }
            | Self::WriteVectored { file, offset, .. } => {
                Some(Place { file: file.number(), offset: *offset })
            }
            _ => None,
        }
    }

    fn transfers(&self) -> bool {
        self.transfer().is_some()
    }

    fn part_alignment(&self) -> Option<u64> {
        let alignment = match (self, self.transfer()) {
            (_, Some((file, Op::Read))) => file.offset_alignment(),
            (_, Some((file, _))) | (Self::PunchHole { file, .. }, _) => file.write_alignment(),
            _ => return None,
        };
        Some(alignment as u64)
    }

    fn transfer_alignment(&self) -> u64 {
        self.transfer().map_or(1, |(file, _)| file.offset_alignment() as u64)
    }

    fn split_off(&mut self, at: u64) -> Option<Rest<Self>> {
        if at == 0 || at >= self.bytes() {
            return None;
        }
        let (command, cuts_buffer) = match self {
            Self::Read { file, offset, buffer, range } => {
                let (cut, rest) = split_range(range, at)?;
                let buffer = buffer.split_off(cut)?;
                *range = range.start..cut;
                let (file, offset, range) = (file.clone(), *offset + at, rest);
                (Self::Read { file, offset, buffer, range }, true)
            }
            Self::Write { file, offset, buffer, range } => {
                let (cut, rest) = split_range(range, at)?;
                let buffer = buffer.split_off(cut)?;
                *range = range.start..cut;
                let (file, offset, range) = (file.clone(), *offset + at, rest);
                (Self::Write { file, offset, buffer, range }, true)
            }
            Self::ReadVectored { file, offset, buffers } => {
                let (buffers, cuts_buffer) = split_vector(buffers, at)?;
                let (file, offset) = (file.clone(), *offset + at);
                (Self::ReadVectored { file, offset, buffers }, cuts_buffer)
            }
            Self::WriteVectored { file, offset, buffers } => {
                let (buffers, cuts_buffer) = split_vector(buffers, at)?;
                let (file, offset) = (file.clone(), *offset + at);
                (Self::WriteVectored { file, offset, buffers }, cuts_buffer)
            }
            Self::PunchHole { file, offset, len } => {
                let (file, offset, rest) = (file.clone(), *offset + at, *len - at);
                *len = at;
                (Self::PunchHole { file, offset, len: rest }, false)
            }
            _ => return None,
        };
        Some(Rest { command, cuts_buffer })
    }

    fn unsplit(&mut self, rest: Rest<Self>) {
        match (self, rest.command) {
            (Self::Read { buffer, range, .. }, Self::Read { buffer: more, range: end, .. }) => {
                buffer.unsplit(more);
                range.end += end.len();
            }
            (Self::Write { buffer, range, .. }, Self::Write { buffer: more, range: end, .. }) => {
                buffer.unsplit(more);
                range.end += end.len();
            }
            (Self::ReadVectored { buffers, .. }, Self::ReadVectored { buffers: more, .. })
            | (Self::WriteVectored { buffers, .. }, Self::WriteVectored { buffers: more, .. }) => {
                let mut more = more.into_iter();
                if rest.cuts_buffer
                    && let (Some(last), Some(first)) = (buffers.last_mut(), more.next())
                    && last.unsplit(first).is_err()
                {
                    messages::report_invariant(
                        "a buffer does not follow the one that it was cut from",
                    );
                }
                buffers.extend(more);
            }
            (Self::PunchHole { len, .. }, Self::PunchHole { len: more, .. }) => *len += more,
            _ => messages::report_invariant("the parts of an operation are of different kinds"),
        }
    }

    fn is_transient(error: &io::Error) -> bool {
        matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::INTR))
    }

    fn cancelled() -> io::Error {
        Errno::CANCELED.into()
    }

    fn nothing_written() -> io::Error {
        io::ErrorKind::WriteZero.into()
    }
}

/// Splits `range` after `at` bytes. Returns the position in the buffer at which to split it, and
/// the range of the rest.
fn split_range(range: &Range<usize>, at: u64) -> Option<(usize, Range<usize>)> {
    let cut = range.start + usize::try_from(at).ok()?;
    Some((cut, 0..range.end.checked_sub(cut)?))
}

/// Splits off the buffers from byte `at` on. Returns them, and whether the first one was split.
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

    /// The bytes that a part would transfer, with their offset.
    fn content(piece: &Operation) -> (u64, Vec<u8>) {
        match piece {
            Operation::Write { offset, buffer, range, .. } => {
                (*offset, buffer.filled()[range.clone()].to_vec())
            }
            Operation::WriteVectored { offset, buffers, .. } => {
                (*offset, buffers.iter().flat_map(|buffer| buffer.to_vec()).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Splits an operation at each of `cuts`, checks the parts, and joins them.
    fn cut_and_join(operation: Operation, cuts: &[u64]) -> Operation {
        let mut piece = Rest::whole(operation);
        let (start, data) = content(&piece.command);
        let mut parts = Vec::new();
        let mut at = 0;
        for &cut in cuts {
            let Some(rest) = piece.command.split_off(cut) else { continue };
            parts.push(std::mem::replace(&mut piece, rest));
            at += cut;
            let (offset, rest) = content(&piece.command);
            assert_eq!((offset, &*rest), (start + at, &data[at as usize..]));
        }
        parts.push(piece);
        let joined: Vec<u8> = parts.iter().flat_map(|part| content(&part.command).1).collect();
        assert_eq!(joined, data);
        parts
            .into_iter()
            .reduce(|mut front, part| {
                front.command.unsplit(part);
                front
            })
            .unwrap()
            .command
    }

    #[test]
    fn a_part_of_another_operation_is_told_and_not_joined() {
        let write = || {
            let buffer = numbered(1024, &mut 0).into();
            Operation::Write { file: null(), offset: 0, buffer, range: 0..512 }
        };
        let vectored = |count| {
            let buffers = (0..count).map(|_| numbered(512, &mut 0)).collect();
            Operation::WriteVectored { file: null(), offset: 0, buffers }
        };
        let hole = || Operation::PunchHole { file: null(), offset: 0, len: 512 };
        for (mut operation, other) in [
            (write(), write()),
            (write(), hole()),
            (vectored(2), vectored(2)),
            (vectored(1), write()),
            (hole(), vectored(1)),
        ] {
            let rest = Rest { command: other, cuts_buffer: true };
            assert!(messages::meets_a_bug(|| operation.unsplit(rest)), "{operation:?}");
        }
    }

    proptest! {
        #[test]
        fn a_range_survives(len in 1usize..200, from in 0usize..100, cuts in cuts()) {
            let from = from.min(len);
            let operation = Operation::Write {
                file: null(), offset: 7, buffer: numbered(len, &mut 0).into(), range: from..len,
            };
            let whole = cut_and_join(operation, &cuts);
            let Operation::Write { offset, buffer, range, .. } = whole else { panic!() };
            prop_assert_eq!((offset, range), (7, from..len));
            prop_assert_eq!(buffer.filled(), &*numbered(len, &mut 0));
        }

        #[test]
        fn a_vector_survives(lens in prop::collection::vec(1usize..50, 1..10), cuts in cuts()) {
            let mut from = 0;
            let buffers = lens.iter().map(|len| numbered(*len, &mut from)).collect();
            let operation = Operation::WriteVectored { file: null(), offset: 7, buffers };
            let whole = cut_and_join(operation, &cuts);
            let Operation::WriteVectored { buffers, .. } = whole else { panic!() };
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
            let whole = cut_and_join(operation, &[cut]);
            let Operation::WriteVectored { buffers, .. } = whole else { panic!() };
            assert_eq!(buffers.iter().map(|b| b.len()).collect::<Vec<_>>(), [50, 50]);
        }
    }

    #[test]
    fn a_hole_is_cut_and_a_flush_is_not() {
        let mut hole = Operation::PunchHole { file: null(), offset: 10, len: 100 };
        let rest = hole.split_off(40).unwrap();
        assert!(matches!(rest.command, Operation::PunchHole { offset: 50, len: 60, .. }));
        hole.unsplit(rest);
        assert_eq!(hole.bytes(), 100);
        assert!(Operation::SyncAll { file: null() }.split_off(1).is_none());
    }
}
