//! Failed bytes that were rewritten without a writer.

use std::os::fd::BorrowedFd;

use forebay_core::Op;

use super::dirty_pieces::dirty_pages;
use crate::Class;
use crate::failures::{FileFailures, Ranges};
use crate::page_cache::{HeldFile, file_len, pages_on_disk};

/// The most bytes that are compared with one permit.
const CHUNK_LEN: u64 = 1 << 20;

/// Failed pages that a flush found dirty: a program has written to them again. But the kernel
/// reports a large page as dirty if a part of it was written, and then may write only that part. So
/// the pages count as written only when the disk has the same bytes as memory.
pub(super) struct Rewritten(Ranges);

impl Rewritten {
    /// Finds these pages. Call it before the flush writes anything back.
    pub(super) fn look(failures: &FileFailures, file: BorrowedFd<'_>) -> Self {
        let (failed, mut dirty) = (failures.failed_of_others(), Ranges::default());
        // Bytes beyond the end of the file no longer count.
        let len = file_len(file).unwrap_or(0);
        for range in failed.within(&(0..len)).iter() {
            let pages = dirty_pages(file, &range);
            pages.iter().for_each(|pages| dirty.extend(&failed.within(&pages)));
        }
        Self(dirty)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Clears the failure of the pages that are on the disk. Call it after the flush.
    pub(super) fn clear(self, failures: &FileFailures, class: &Class, held: &HeldFile) {
        let mut left = self.0;
        while let Some(range) = left.take_first(CHUNK_LEN) {
            let (errors, len) = (failures.errors(), range.end - range.start);
            // Pages without a permit stay failed.
            let Ok(permit) = class.admit_required(Op::Read.at(range.start), len) else { return };
            let pages = range.clone();
            let same = held.call_own(move |file| pages_on_disk(file, &pages));
            permit.complete(&Ok(()));
            let mut cleared = Ranges::default();
            match same {
                Some(same) if !same.is_empty() => same.into_iter().for_each(|pages| {
                    cleared.insert(pages.start.max(range.start)..pages.end.min(range.end));
                }),
                // The disk cannot be read without the page cache, or the file system does not show
                // what it wrote (ext4, in new blocks after an error). Then a successful flush
                // counts.
                _ => {
                    cleared.insert(range);
                }
            }
            failures.clear(&cleared, errors);
        }
    }
}
