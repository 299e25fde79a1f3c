//! A file that is written through the page cache, as its writer and its parts share it.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use forebay_core::{Access, DiskTime, Op};

use super::active_parts::{Abandoned, ActivePart, ActiveParts};
use super::dirt::Dirt;
use super::write_back_path::WriteBackPath;
use crate::Class;
use crate::direct_file::file_number;
use crate::failures::OpenFailures;
use crate::page_cache::{HeldFile, LeavingFile, file_len};
use crate::sys::lock::Lock;
use crate::sys::workers::KeptWorker;

/// The least and the most bytes of a part, unless the dirty limit is lower.
const PART_LEN_MIN: u64 = 128 << 10;
const PART_LEN_MAX: u64 = 1 << 20;

/// The state that a writer shares with its parts. It lives until the last part is on the disk.
pub(super) struct DirtyFile {
    pub(super) held: Arc<HeldFile>,
    /// The class of the writer at first, on the file's disk.
    pub(super) class: Class,
    /// The class that asks for permits now, if it is another one.
    asking: Lock<Option<Class>>,
    pub(super) path: WriteBackPath,
    pub(super) failures: OpenFailures,
    /// The number of write-back errors that writes and flushes of this writer have reported.
    reported: AtomicU64,
    pub(super) dirt: Dirt,
    pub(super) active: ActiveParts,
    number: u64,
    _worker: KeptWorker,
}

impl DirtyFile {
    /// The state of an open file that is written back in `class`, which is on its disk.
    pub(super) fn new(file: impl AsFd, class: Class, path: WriteBackPath) -> io::Result<Self> {
        let worker = class.disk.workers.keep_one()?;
        let limits = class.disk.dirty_limits.class(class.name());
        let number = file_number(file.as_fd())?;
        let held = HeldFile::new(file.as_fd(), number, class.disk.held_files.clone());
        let held = Arc::new(held);
        let failures = class.disk.failed_files.open(file.as_fd())?;
        let failures = failures.ok_or(io::ErrorKind::InvalidInput)?.of_writer(&held);
        Ok(Self {
            held,
            reported: AtomicU64::new(failures.errors()),
            failures,
            number,
            dirt: Dirt::new(limits, part_len(&class)),
            active: ActiveParts::default(),
            asking: Lock::default(),
            class,
            path,
            _worker: worker,
        })
    }

    /// The class that asks for the permits of parts, flushes and writes that reach the disk at once.
    pub(super) fn asking(&self) -> Class {
        self.asking.lock().clone().unwrap_or_else(|| self.class.clone())
    }

    /// Sets the class that asks for permits, which is on the file's disk. Parts that wait move to
    /// it too.
    pub(super) fn set_asking(&self, class: Class) {
        let before = self.asking.lock().replace(class);
        drop(before);
        self.active.all().into_iter().for_each(ActivePart::restart);
    }

    /// The access of the disk for a part of the file.
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

    /// [`Dirt::hand_over_all`], in parts of the present length.
    pub(super) fn hand_over_all(&self) -> u64 {
        self.dirt.hand_over_all(part_len(&self.class))
    }

    /// [`Self::hand_over_all`], because a write waits for room.
    pub(super) fn hand_over_for_room(&self) {
        self.dirt.hand_over_for_room(part_len(&self.class));
    }

    /// Fails with an error since the last write or flush that reported one.
    pub(super) fn failure_for_write(&self) -> io::Result<()> {
        let errors = self.failures.errors();
        if self.reported.swap(errors, Ordering::Relaxed) != errors {
            self.failures.check(u64::MAX)?;
        }
        self.dirt.failure_for_write()
    }

    /// Fails while bytes of the file are failed, or if parts got no permit since the last flush.
    /// `open` is the file.
    pub(super) fn failure_for_flush(&self, open: impl AsFd) -> io::Result<()> {
        self.reported.store(self.failures.errors(), Ordering::Relaxed);
        let refused = self.dirt.take_failure();
        self.failures.check(file_len(open)?)?;
        refused
    }

    /// Notes that the writer is dropped. The file is closed soon, even if parts of it wait.
    pub(super) fn leave_writer(self: &Arc<Self>) {
        let waits = self.dirt.has_unfinished();
        if let Some(files) = self.held.leave_writer(self, waits) {
            self.class.disk.workers.run(move || files.abandon_leaving());
        }
    }

    /// Counts dirty bytes that the kernel has to write back, unless the file is deleted.
    pub(super) fn count_left(&self, bytes: u64) {
        if bytes > 0 && self.active.abandoned() != Some(Abandoned::Deleted) {
            self.class.record.reads.add_left_to_kernel(bytes);
        }
    }
}

impl LeavingFile for DirtyFile {
    fn abandon(&self, is_deleted: bool) {
        self.held.abandon();
        let abandoned = if is_deleted { Abandoned::Deleted } else { Abandoned::ToKernel };
        let active = self.active.abandon(abandoned);
        self.count_left(self.dirt.cancel_queue());
        active.iter().for_each(|part| part.cancel());
    }
}

/// The length of a part in bytes: it costs a quarter of the effective goal, so that a window holds
/// several parts, and is between the limits.
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
