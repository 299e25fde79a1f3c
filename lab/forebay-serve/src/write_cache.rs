//! A write cache that loses what no flush has covered when the power goes.
//!
//! The data lies where it would lie without the cache; kept here is what was there before, so that
//! a flush only forgets, and a cut puts back.
//!
//! Decision: `docs/decisions/0047-volatile-write-cache.md`.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use forebay_core::Op;
use forebay_load::Rng;

/// A write cache without a battery.
#[derive(Clone, Debug)]
pub struct WriteCacheConfig {
    /// Bytes of writes that no flush has covered, at most; beyond it the oldest are made durable.
    pub size: u64,
    /// What a cut loses depends on this number, on which cut it is, and on what is unflushed then.
    pub seed: u64,
}

/// What a write cache holds, and what it has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCacheStats {
    /// The power is off: everything fails.
    pub is_off: bool,
    /// How often the power went.
    pub cuts: u64,
    /// Writes and discards that no flush has covered yet.
    pub unflushed: u64,
    /// Of those that were not covered when the power went: lost, as a whole or in part.
    pub lost: u64,
    /// Of the same: kept as a whole.
    pub kept: u64,
}

/// What a request is known by: the power has not gone since, and what had ended before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    cuts: u64,
    moment: u64,
}

/// A write or discard that no flush has covered.
struct Unflushed {
    moment: u64,
    offset: u64,
    before: Vec<u8>,
    completed: Option<u64>,
}

impl Unflushed {
    const fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.before.len() as u64
    }
}

pub(crate) struct WriteCache {
    config: WriteCacheConfig,
    sector: usize,
    /// The oldest first.
    unflushed: VecDeque<Unflushed>,
    held: u64,
    /// Writes that arrive before the power goes.
    left: Option<u64>,
    /// Counts requests and completions.
    moment: u64,
    stats: WriteCacheStats,
    failure: Option<io::Error>,
}

impl WriteCache {
    pub(crate) fn new(config: WriteCacheConfig, sector: u32) -> Self {
        Self {
            config,
            sector: sector as usize,
            unflushed: VecDeque::new(),
            held: 0,
            left: None,
            moment: 0,
            stats: WriteCacheStats::default(),
            failure: None,
        }
    }

    pub(crate) fn stats(&self) -> WriteCacheStats {
        WriteCacheStats { unflushed: self.unflushed.len() as u64, ..self.stats }
    }

    /// Marks a request that changes nothing.
    pub(crate) fn mark(&mut self) -> Mark {
        self.moment += 1;
        Mark { cuts: self.stats.cuts, moment: self.moment }
    }

    /// Remembers what is in a range of the data that is about to change.
    pub(crate) fn remember(&mut self, data: &File, range: Range<u64>) -> io::Result<Mark> {
        if self.stats.is_off {
            return Err(rustix::io::Errno::IO.into());
        }
        let before = read(data, &range)?;
        let mark = self.mark();
        self.held += before.len() as u64;
        let (moment, offset) = (mark.moment, range.start);
        self.unflushed.push_back(Unflushed { moment, offset, before, completed: None });
        while self.held > self.config.size
            && let Some(oldest) = self.unflushed.pop_front()
        {
            self.held -= oldest.before.len() as u64;
        }
        Ok(mark)
    }

    /// A write has arrived; whether the power goes with it.
    pub(crate) fn counts_down(&mut self) -> bool {
        let Some(left) = &mut self.left else { return false };
        *left = left.saturating_sub(1);
        *left == 0
    }

    /// The power goes when this many more writes have arrived.
    pub(crate) fn cut_after(&mut self, writes: u64) {
        self.left = Some(writes);
    }

    /// The disk has completed a request. Whether the power let it.
    pub(crate) fn complete(&mut self, op: Op, mark: Mark) -> bool {
        if self.stats.is_off || mark.cuts != self.stats.cuts {
            return false;
        }
        self.moment += 1;
        match op {
            Op::Flush => self.forget_before(mark.moment),
            _ => {
                let found = self.unflushed.binary_search_by_key(&mark.moment, |write| write.moment);
                if let Some(write) = found.ok().and_then(|at| self.unflushed.get_mut(at)) {
                    write.completed = Some(self.moment);
                }
            }
        }
        true
    }

    /// A flush that arrived at `moment` makes durable what was completed before it, and what that
    /// had written over.
    fn forget_before(&mut self, moment: u64) {
        let mut durable: Vec<Range<u64>> = Vec::new();
        let mut kept = VecDeque::new();
        self.held = 0;
        for write in self.unflushed.drain(..).rev() {
            let range = write.range();
            let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
            if write.completed.is_some_and(|completed| completed < moment)
                || durable.iter().any(overlaps)
            {
                durable.push(range);
            } else {
                self.held += write.before.len() as u64;
                kept.push_front(write);
            }
        }
        self.unflushed = kept;
    }

    /// The power goes: some of what is unflushed is lost.
    pub(crate) fn cut(&mut self, data: &File) {
        if self.stats.is_off {
            return;
        }
        self.stats.is_off = true;
        self.stats.cuts += 1;
        self.left = None;
        self.failure = self.lose(data).err();
        self.held = 0;
    }

    /// First all is undone, the newest first; then what is kept is done again, the oldest first.
    fn lose(&mut self, data: &File) -> io::Result<()> {
        let mut undone = Vec::with_capacity(self.unflushed.len());
        for write in self.unflushed.drain(..).rev() {
            undone.push((write.offset, read(data, &write.range())?));
            data.write_all_at(&write.before, write.offset)?;
        }
        let mut rng = Rng::new(self.config.seed, &[self.stats.cuts]);
        // quarters of the writes, from none of them to all
        let lost = rng.below(5);
        for (offset, after) in undone.into_iter().rev() {
            // one of eight may be torn between sectors
            let is_torn = rng.below(8) == 0;
            let mut is_lost = rng.below(4) < lost;
            let mut any_is_lost = false;
            for (sector, offset) in after.chunks(self.sector).zip((offset..).step_by(self.sector)) {
                if is_torn {
                    is_lost = rng.below(4) < lost;
                }
                any_is_lost |= is_lost;
                if !is_lost {
                    data.write_all_at(sector, offset)?;
                }
            }
            self.stats.lost += u64::from(any_is_lost);
            self.stats.kept += u64::from(!any_is_lost);
        }
        Ok(())
    }

    /// The power comes back. An error is one of the cut: what survived is not what it should be.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        self.stats.is_off = false;
        self.failure.take().map_or(Ok(()), Err)
    }
}

fn read(data: &File, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let mut read = vec![0; len];
    data.read_exact_at(&mut read, range.start)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: u64 = 512;
    const SECTORS: u64 = 24;

    /// What of a sector a cut may leave: what was last made durable, and what came after it.
    struct Sector {
        versions: Vec<u8>,
    }

    struct Bed {
        data: File,
        cache: WriteCache,
        sectors: Vec<Sector>,
        /// The sectors of each change, with its mark, whether it was completed, and its version.
        changes: Vec<(Range<u64>, Mark, bool, u8)>,
    }

    impl Bed {
        fn new(seed: u64, size: u64) -> Self {
            let data = tempfile::tempfile().unwrap();
            data.set_len(SECTORS * SECTOR).unwrap();
            let cache = WriteCache::new(WriteCacheConfig { size, seed }, 512);
            let sectors = (0..SECTORS).map(|_| Sector { versions: vec![0] }).collect();
            Self { data, cache, sectors, changes: Vec::new() }
        }

        fn write(&mut self, sectors: Range<u64>, version: u8) {
            let range = sectors.start * SECTOR..sectors.end * SECTOR;
            let mark = self.cache.remember(&self.data, range.clone()).unwrap();
            let bytes = vec![version; (range.end - range.start) as usize];
            self.data.write_all_at(&bytes, range.start).unwrap();
            for sector in sectors.clone() {
                self.sectors[sector as usize].versions.push(version);
            }
            self.changes.push((sectors, mark, false, version));
        }

        fn complete(&mut self, at: usize) {
            let (_, mark, completed, _) = &mut self.changes[at];
            if !std::mem::replace(completed, true) {
                assert!(self.cache.complete(Op::Write, *mark));
            }
        }

        /// A flush, with writes that arrive and end while it is under way.
        fn flush(&mut self, meanwhile: impl FnOnce(&mut Self)) {
            let mark = self.cache.mark();
            let covered: Vec<_> = self.changes.iter().filter(|c| c.2).cloned().collect();
            meanwhile(self);
            assert!(self.cache.complete(Op::Flush, mark));
            for (sectors, _, _, version) in covered {
                for sector in sectors {
                    let versions = &mut self.sectors[sector as usize].versions;
                    if let Some(at) = versions.iter().position(|v| *v == version) {
                        versions.drain(..at);
                    }
                }
            }
        }

        fn seen(&self) -> Vec<u8> {
            let all = read(&self.data, &(0..SECTORS * SECTOR)).unwrap();
            let sectors = all.chunks(SECTOR as usize);
            sectors
                .map(|sector| {
                    assert!(sector.iter().all(|byte| *byte == sector[0]), "a torn sector");
                    sector[0]
                })
                .collect()
        }
    }

    #[test]
    fn a_cut_leaves_of_each_sector_what_was_flushed_or_came_later() {
        let [mut oldest, mut newest, mut between] = [0; 3];
        for seed in 0..400 {
            let mut rng = Rng::new(seed, &[]);
            let mut bed = Bed::new(seed, 1 << 20);
            for version in 1..60 {
                let start = rng.below(SECTORS);
                let end = (start + 1 + rng.below(6)).min(SECTORS);
                bed.write(start..end, version);
                if rng.below(4) > 0 {
                    let at = rng.below(bed.changes.len() as u64) as usize;
                    bed.complete(at);
                }
                if rng.below(12) == 0 {
                    bed.flush(|bed| (0..bed.changes.len()).for_each(|at| bed.complete(at)));
                }
            }
            bed.cache.cut(&bed.data);
            for (sector, seen) in bed.seen().into_iter().enumerate() {
                let versions = &bed.sectors[sector].versions;
                assert!(versions.contains(&seen), "seed {seed}: {seen} of {versions:?}");
                match versions.iter().position(|version| *version == seen) {
                    Some(0) if versions.len() > 1 => oldest += 1,
                    Some(at) if at + 1 == versions.len() => newest += 1,
                    _ => between += 1,
                }
            }
            let stats = bed.cache.stats();
            assert!(stats.is_off && stats.cuts == 1 && stats.unflushed == 0);
            assert!(bed.cache.remember(&bed.data, 0..512).is_err(), "there is no power");
            bed.cache.restore().unwrap();
            assert!(bed.cache.remember(&bed.data, 0..512).is_ok());
        }
        assert!(oldest > 500 && newest > 500 && between > 200, "{oldest} {newest} {between}");
    }

    #[test]
    fn a_flush_promises_nothing_of_what_ended_after_it_arrived() {
        let lost = (0..100).filter(|&seed| {
            let mut bed = Bed::new(seed, 1 << 20);
            bed.write(0..1, 1);
            bed.flush(|bed| bed.complete(0));
            bed.cache.cut(&bed.data);
            bed.seen()[0] == 0
        });
        assert!(lost.count() > 20);
    }

    #[test]
    fn completions_after_a_power_cut_are_errors() {
        let mut bed = Bed::new(1, 1 << 20);
        bed.write(0..1, 1);
        let flush = bed.cache.mark();
        bed.cache.cut(&bed.data);
        assert!(!bed.cache.complete(Op::Flush, flush), "off");
        bed.cache.restore().unwrap();
        assert!(!bed.cache.complete(Op::Flush, flush), "on again");
        let read = bed.cache.mark();
        assert!(bed.cache.complete(Op::Read, read));
    }

    #[test]
    fn beyond_its_size_the_oldest_are_durable() {
        for seed in 0..50 {
            let mut bed = Bed::new(seed, 4 * SECTOR);
            (0..SECTORS).for_each(|sector| bed.write(sector..sector + 1, 1));
            assert_eq!(bed.cache.stats().unflushed, 4);
            bed.cache.cut(&bed.data);
            assert!(bed.seen()[..20].iter().all(|version| *version == 1));
        }
    }

    #[test]
    fn the_power_goes_with_the_write_that_was_named() {
        let mut bed = Bed::new(1, 1 << 20);
        assert!(!bed.cache.counts_down());
        bed.cache.cut_after(3);
        assert_eq!([(); 3].map(|()| bed.cache.counts_down()), [false, false, true]);
    }
}
