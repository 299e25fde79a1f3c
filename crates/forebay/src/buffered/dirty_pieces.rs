//! The dirty ranges of a file according to the kernel.

use std::ops::Range;
use std::os::fd::AsFd;

use crate::failures::Ranges;
use crate::page_cache::{file_len, page_size, residency, whole_pages};

/// The most calls of the kernel for one piece. The rest of the piece counts as dirty.
const LOOKS_MAX: usize = 1024;

/// A piece of a file with dirty pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirtyPiece {
    pub(super) range: Range<u64>,
    /// The bytes of its dirty pages, at least 1.
    pub(super) dirty: u64,
}

/// The dirty pieces of a file, cut at multiples of `piece_len`. None if the kernel does not show
/// dirty pages. Pieces are searched by halves, and clean halves are skipped.
pub(super) fn dirty_pieces(file: impl AsFd, piece_len: u64) -> Vec<DirtyPiece> {
    let file = file.as_fd();
    let pieces = file_len(file).unwrap_or(0).div_ceil(piece_len);
    let mut found = Vec::new();
    let mut open: Vec<_> = std::iter::once(0..pieces).collect();
    while let Some(numbers) = open.pop() {
        let (range, count) =
            (numbers.start * piece_len..numbers.end * piece_len, numbers.end - numbers.start);
        let dirty = match residency(file, range.start, range.end - range.start) {
            Ok(seen) if count > 0 => seen.dirty.saturating_mul(page_size()),
            _ => 0,
        };
        if dirty == 0 {
            continue;
        }
        if count == 1 {
            let dirty = dirty.min(piece_len);
            found.push(DirtyPiece { range, dirty });
            continue;
        }
        let half = numbers.start + count / 2;
        open.extend([half..numbers.end, numbers.start..half]);
    }
    found
}

/// The pages of a range that are dirty or under write-back. None if the kernel does not show them.
/// The kernel reports a large page as dirty if any part of it is.
pub(super) fn dirty_pages(file: impl AsFd, range: &Range<u64>) -> Ranges {
    let (file, page) = (file.as_fd(), page_size());
    let (mut found, mut looks) = (Ranges::default(), 0);
    let mut open = vec![whole_pages(range)];
    while let Some(range) = open.pop() {
        let pages = (range.end - range.start) / page;
        let seen = residency(file, range.start, range.end - range.start).unwrap_or_default();
        let dirty = seen.dirty.max(seen.in_writeback);
        looks += 1;
        if dirty == 0 {
            continue;
        }
        if dirty >= pages || pages <= 1 || looks > LOOKS_MAX {
            found.insert(range);
            continue;
        }
        let half = range.start + pages / 2 * page;
        open.extend([half..range.end, range.start..half]);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn dirty_pages_are_found_at_any_offset() {
        let file = tempfile::tempfile_in(".").unwrap();
        file.set_len(1 << 30).unwrap();
        let places = [0u64, 5 << 20, (999 << 20) + 4096];
        places.iter().for_each(|at| file.write_all_at(&[7; 4096], *at).unwrap());
        let found = dirty_pieces(&file, 1 << 20);
        // Some file systems do not show dirty pages.
        if !found.is_empty() {
            let starts: Vec<_> = found.iter().map(|piece| piece.range.start).collect();
            assert_eq!(starts, [0, 5 << 20, 999 << 20]);
            assert!(found.iter().all(|piece| piece.dirty >= 4096));
            file.sync_data().unwrap();
            assert_eq!(dirty_pieces(&file, 1 << 20), []);
        }
        assert_eq!(dirty_pieces(tempfile::tempfile().unwrap(), 4096), []);
    }
}
