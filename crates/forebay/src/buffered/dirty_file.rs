//! A file that is written through the page cache, as its writer and its parts share it.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};

use forebay_core::{Access, DiskTime, Op};

use super::dirt::Dirt;
use super::write_back_path::WriteBackPath;
use crate::Class;
use crate::direct_file::file_number;
use crate::page_cache::HeldFile;
use crate::sys::workers::KeptWorker;

/// Bytes of a part at least, and at most, unless less may be dirty.
const PART_LEN_MIN: u64 = 128 << 10;
const PART_LEN_MAX: u64 = 1 << 20;

/// Shared by a writer and the parts that are on their way. It stays until the last of them is on
/// the disk.
pub(super) struct DirtyFile {
    pub(super) held: Arc<HeldFile>,
    /// On the file's disk.
    pub(super) class: Class,
    pub(super) path: WriteBackPath,
    pub(super) dirt: Dirt,
    number: u64,
    _worker: KeptWorker,
}

impl DirtyFile {
    /// Of an open file, to be written in `class`, which is on its disk.
    pub(super) fn new(file: impl AsFd, class: Class, path: WriteBackPath) -> io::Result<Self> {
        let worker = class.disk.workers.keep_one()?;
        let limits = class.disk.dirty_limits.class(class.name());
        Ok(Self {
            held: Arc::new(HeldFile::new(file.as_fd(), class.disk.held_files())),
            number: file_number(file.as_fd())?,
            dirt: Dirt::new(limits, part_len(&class)),
            class,
            path,
            _worker: worker,
        })
    }

    /// What of the disk a part of the file is.
    pub(super) fn access(&self, offset: u64) -> Access {
        Op::Write.at(offset).of(self.number)
    }

    /// [`Dirt::mark`].
    pub(super) fn mark(self: &Arc<Self>, range: &Range<u64>, reserved: u64) -> bool {
        self.dirt.mark(range, reserved, || {
            let file: Weak<Self> = Arc::downgrade(self);
            file
        })
    }

    /// [`Dirt::hand_over_all`], in parts of the length of now.
    pub(super) fn hand_over_all(&self) -> u64 {
        self.dirt.hand_over_all(part_len(&self.class))
    }

    /// The same because somebody waits for room.
    pub(super) fn hand_over_listed(&self) {
        self.dirt.hand_over_listed(part_len(&self.class));
    }

    /// Its writer is being dropped: the file is closed soon, whatever of it waits.
    pub(super) fn leave_writer(&self) {
        self.held.leave_writer();
        let disk = &self.class.disk;
        if self.dirt.dirty() > 0
            && let Ok(files) = disk.held_files()
            && files.close_later(&self.held)
        {
            disk.workers.run(move || files.close_leaving());
        }
    }
}

/// How many bytes are written back with a permit: as many as cost a quarter of the effective goal,
/// so that a window has several, and between the bounds.
pub(super) fn part_len(class: &Class) -> u64 {
    let group = class.disk.here().of(Op::Write);
    let goal = group.io.effective_goal();
    let most = DiskTime::from_units(goal.units() / 4);
    let mut len = PART_LEN_MAX;
    while len > PART_LEN_MIN && group.cost(Op::Write, len) > most {
        len /= 2;
    }
    len
}
