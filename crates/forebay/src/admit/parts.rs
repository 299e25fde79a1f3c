//! Permits for the parts of large requests.

use std::ops::Range;

use forebay_core::{Access, Op};

use super::ask::check;
use super::target::AdmitFor;
use crate::Class;
use crate::permit::AdmitError;

/// The parts of an [`AdmitFor`]: see [`AdmitFor::in_parts`].
#[derive(Clone, Debug)]
pub struct AdmitParts {
    /// The class, on the disk of the request.
    class: Class,
    /// The access of the whole request.
    access: Access,
    part_max: u64,
    len: u64,
    /// The beginning of the next part in bytes; `None` after the last.
    at: Option<u64>,
}

impl AdmitFor {
    /// A permit for each part of a large request that its owner can do in parts, such as a read of
    /// a compaction. A part costs the disk no more than its present [effective
    /// goal](crate::Disk::effective_goal), and all but the last have the same power of two in
    /// bytes. Each permit comes with its range of bytes in the request. Ask for one after the
    /// other, or for a few at once, and do the I/O of each under its own permit: others have their
    /// turns in between. A request that is not too large has one part, and so has each flush.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::write(dir.path().join("table"), vec![7; 1_250_000])?;
    /// use std::os::unix::fs::FileExt;
    ///
    /// use forebay::{Op, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let compaction = scheduler.add_class("compaction", 100)?;
    /// let table = std::fs::File::open(dir.path().join("table"))?;
    /// let mut block = vec![0; 1_250_000];
    /// let whole = compaction.admit_for(&table, Op::Read, block.len() as u64);
    /// for (part, admit) in whole.in_parts()? {
    ///     let permit = admit.wait()?;
    ///     let bytes = &mut block[part.start as usize..part.end as usize];
    ///     let result = table.read_exact_at(bytes, part.start);
    ///     permit.complete(&result);
    ///     result?;
    /// }
    /// # assert!(block.iter().all(|byte| *byte == 7));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the look-up, and lengths that [`Class::admit`] refuses.
    pub fn in_parts(self) -> Result<AdmitParts, AdmitError> {
        let Self { class, access, len } = self;
        let class = class?;
        check(access.op, len)?;
        let part_max = part_max(&class, access.op, len);
        Ok(AdmitParts { class, access, part_max, len, at: Some(0) })
    }

    /// Returns it unchanged, or fails if it has several [parts](Self::in_parts). Use it for a
    /// request that cannot be done in parts, and should not delay all others.
    ///
    /// # Errors
    /// [`AdmitError::SeveralParts`]; as for [`AdmitFor::in_parts`].
    pub fn in_one_part(self) -> Result<Self, AdmitError> {
        let Self { class, access, len } = self;
        let class = class?;
        check(access.op, len)?;
        let most = part_max(&class, access.op, len);
        if len > most {
            let disk = class.disk.name.clone();
            return Err(AdmitError::SeveralParts { op: access.op, len, most, disk });
        }
        Ok(Self { class: Ok(class), access, len })
    }
}

impl Iterator for AdmitParts {
    /// The range of a part in the request, in bytes, and the request for its permit.
    type Item = (Range<u64>, AdmitFor);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at?;
        let len = (self.len - at).min(self.part_max);
        let end = at + len;
        self.at = (end < self.len).then_some(end);
        let access = self.access.part(at, len, self.len);
        Some((at..end, AdmitFor { class: Ok(self.class.clone()), access, len }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.at.map_or(0, |at| (self.len - at).div_ceil(self.part_max).max(1));
        let left = usize::try_from(left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The most bytes of a part.
fn part_max(class: &Class, op: Op, len: u64) -> u64 {
    match op {
        Op::Flush => len.max(1),
        _ => class.disk.here().of(op).largest_request(op),
    }
}
