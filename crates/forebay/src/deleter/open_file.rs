//! Files that are being freed.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use forebay_core::StepMax;
use rustix::fs::{FallocateFlags, FileType, Stat, fallocate, fstat, fsync, ftruncate};
use rustix::io::{Errno, retry_on_intr};

use super::deletion::{DeletedHow, UnlinkReason};
use super::directory::{allocated, file_type};
use super::error::{DeleteErrorCause, DeleteOperation, During};
use super::flusher::Flusher;
use super::item::{Item, Place};
use super::lease::{self, OpenFailure};
use super::steps::{Step, next_step};
use crate::extents::{EXTENTS_MAX, ExtentMap};
use crate::page_cache::residency;

/// The most passes over a file that grows while it is freed. Then it is unlinked.
const ROUNDS_MAX: u32 = 4;
/// An offset beyond the end of any file.
const END: u64 = i64::MAX as u64;

/// The most bytes of a file that shares a step.
pub(super) const SMALL_MAX: u64 = 1 << 20;

/// How parts are freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Punch,
    Truncate,
}

/// A file that only the deleter has open.
pub(super) struct OpenFile {
    pub(super) item: Item,
    /// `None` if the item has the descriptor.
    fd: Option<OwnedFd>,
    /// Whether it shares steps with others.
    pub(super) is_small: bool,
    /// The extents of a small file.
    pub(super) extents: Vec<Range<u64>>,
    size: u64,
    /// The offset from which on everything is freed.
    end: u64,
    rounds: u32,
    map: ExtentMap,
    method: Method,
    /// For a file with dirty pages: a file without data, which is flushed in its place.
    flusher: Option<Flusher>,
}

/// The result of opening a file.
pub(super) enum Opened {
    Freeable(OpenFile),
    /// The file was unlinked, and needs no steps.
    Over(Item, DeletedHow),
}

impl OpenFile {
    /// Opens removed files, which are all in one trash. Files that are not freed in steps are
    /// unlinked.
    pub(super) fn open_all(items: Vec<Item>) -> Vec<Result<Opened, (Item, DeleteErrorCause)>> {
        let looked_up: Vec<_> = items.iter().map(Self::look_up).collect();
        let entries = items.iter().zip(&looked_up).filter(|(_, looked_up)| looked_up.is_ok());
        let entries = entries.filter_map(|(item, _)| match &item.place {
            Place::Trash(entry) => Some(entry),
            Place::Held(_) => None,
        });
        let (mut names, mut trash) = (Vec::new(), None);
        entries.for_each(|entry| {
            names.push(entry.name.to_os());
            trash = Some(&entry.trash);
        });
        let opened = trash.map(|trash| {
            let files = &trash.directory.class.disk.held_files;
            lease::open_all(files, trash.fd.as_fd(), names)
        });
        let mut opened = opened.into_iter().flatten();
        let freeable = items.into_iter().zip(looked_up).map(|(item, looked_up)| {
            let fd = looked_up.and_then(|()| match &item.place {
                Place::Held(_) => Ok(None),
                Place::Trash(_) => opened.next().map(why_not_freeable).transpose(),
            });
            match fd {
                Ok(fd) => Self::of(item, fd),
                Err(Ok(reason)) => match item.place.unlink() {
                    Ok(()) => Ok(Opened::Over(item, DeletedHow::Unlinked(reason))),
                    Err(cause) => Err((item, cause)),
                },
                Err(Err(cause)) => Err((item, cause)),
            }
        });
        freeable.collect()
    }

    /// Checks an item before it is opened. If the library has no descriptor table of its own,
    /// opening and closing a file drops the record locks of this process on it. So a file that
    /// keeps another name is not opened.
    fn look_up(item: &Item) -> Result<(), Result<UnlinkReason, DeleteErrorCause>> {
        let Place::Trash(entry) = &item.place else { return Ok(()) };
        match entry.trash.stat_entry(entry.name) {
            Ok(stat) => why_only_unlinked(&stat).map_or(Ok(()), |reason| Err(Ok(reason))),
            Err(Errno::NOENT) => Err(Ok(UnlinkReason::NothingToFree)),
            Err(errno) => Err(errno).during(DeleteOperation::Open).map_err(Err),
        }
    }

    fn of(item: Item, fd: Option<OwnedFd>) -> Result<Opened, (Item, DeleteErrorCause)> {
        let mut file = Self {
            item,
            fd,
            is_small: false,
            extents: Vec::new(),
            size: 0,
            end: END,
            rounds: 0,
            map: ExtentMap::Fiemap,
            method: Method::Punch,
            flusher: None,
        };
        match file.look() {
            Ok(()) => Ok(Opened::Freeable(file)),
            Err(cause) => Err((file.item, cause)),
        }
    }

    fn look(&mut self) -> Result<(), DeleteErrorCause> {
        let stat = fstat(self.fd()).during(DeleteOperation::Open)?;
        self.size = u64::try_from(stat.st_size).unwrap_or(0);
        // Punching a hole writes its dirty pages first, and flushing the file writes all of them.
        if !residency(self.fd(), 0, 0).is_ok_and(|pages| pages.is_clean()) {
            self.method = Method::Truncate;
            self.flusher = self.item.place.flusher().ok();
        }
        self.is_small = allocated(&stat) <= SMALL_MAX && self.item.bytes <= SMALL_MAX;
        if self.is_small {
            self.extents = self.extents_within(&(0..END))?;
            // A file with more extents than a step frees cannot share one.
            self.is_small = self.extents.len() < EXTENTS_MAX;
        }
        Ok(())
    }

    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match (&self.fd, &self.item.place) {
            (Some(fd), _) => fd.as_fd(),
            (None, Place::Held(held)) => held.fd.as_fd(),
            (None, Place::Trash(entry)) => entry.trash.fd.as_fd(),
        }
    }

    fn extents_within(&mut self, within: &Range<u64>) -> Result<Vec<Range<u64>>, DeleteErrorCause> {
        let mut map = self.map;
        let all = map.extents(self.fd(), within);
        self.map = map;
        all.map(|all| all.found)
            .map_err(|error| DeleteErrorCause::io(DeleteOperation::MapExtents, &error))
    }

    /// The next step. `None` if nothing is left, or if a program wants to open the file.
    pub(super) fn next_step(&mut self, limit: StepMax) -> Result<Option<Step>, DeleteErrorCause> {
        if !lease::is_kept(self.fd()) {
            return Ok(None);
        }
        loop {
            let (size, end, mut map) = (self.size, self.end, self.map);
            let step = next_step(size, end, limit, |within| map.extents(self.fd(), within));
            self.map = map;
            let step =
                step.map_err(|error| DeleteErrorCause::io(DeleteOperation::MapExtents, &error))?;
            if step.is_some() {
                return Ok(step);
            }
            // The file may have grown.
            let stat = fstat(self.fd()).during(DeleteOperation::Open)?;
            self.rounds += 1;
            if allocated(&stat) == 0 || self.rounds >= ROUNDS_MAX || self.method == Method::Truncate
            {
                return Ok(None);
            }
            (self.size, self.end) = (u64::try_from(stat.st_size).unwrap_or(0), END);
        }
    }

    /// Frees these extents, which are the last of the file, and flushes, so that the file system
    /// sends the discards. Returns their bytes.
    pub(super) fn free(&mut self, extents: &[Range<u64>]) -> Result<u64, DeleteErrorCause> {
        let (Some(first), Some(last)) = (extents.last(), extents.first()) else { return Ok(0) };
        let (start, len) = (first.start, last.end - first.start);
        // A truncation beyond the end would make the file longer.
        let has_no_data = start >= self.size;
        if self.method == Method::Punch || has_no_data {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match retry_on_intr(|| fallocate(self.fd(), flags, start, len)) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.method = Method::Truncate,
                punched => punched.during(DeleteOperation::Free)?,
            }
        }
        if self.method == Method::Truncate && !has_no_data {
            retry_on_intr(|| ftruncate(self.fd(), start)).during(DeleteOperation::Free)?;
        }
        self.end = start;
        let flushed = match &self.flusher {
            Some(flusher) => flusher.flush(),
            None => retry_on_intr(|| fsync(self.fd())),
        };
        flushed.during(DeleteOperation::Flush)?;
        Ok(extents.iter().map(|extent| extent.end - extent.start).sum())
    }

    /// Frees a small file and removes its name.
    pub(super) fn free_whole(self) -> (Item, Result<DeletedHow, DeleteErrorCause>) {
        let how = if lease::is_kept(self.fd()) {
            let cut = retry_on_intr(|| ftruncate(self.fd(), 0)).during(DeleteOperation::Free);
            cut.map(|()| DeletedHow::Truncated)
        } else {
            Ok(DeletedHow::Unlinked(UnlinkReason::OpenElsewhere))
        };
        let result = how.and_then(|how| self.item.place.unlink().map(|()| how));
        (self.item, result)
    }

    /// Removes the name of a file with no blocks left to free.
    pub(super) fn finish(self) -> (Item, Result<DeletedHow, DeleteErrorCause>) {
        let is_kept = lease::is_kept(self.fd());
        let how = match self.method {
            _ if !is_kept => DeletedHow::Unlinked(UnlinkReason::OpenElsewhere),
            Method::Punch => DeletedHow::Punched,
            Method::Truncate => DeletedHow::Truncated,
        };
        let result = self.item.place.unlink().map(|()| how);
        (self.item, result)
    }
}

/// The open file, or the reason why it is not freed in steps.
fn why_not_freeable(
    opened: Result<OwnedFd, OpenFailure>,
) -> Result<OwnedFd, Result<UnlinkReason, DeleteErrorCause>> {
    let fd = match opened {
        Ok(fd) => fd,
        // Another deleter has deleted it, or it cannot be opened: a link, a socket, a running
        // program.
        Err(OpenFailure::Refused(Errno::NOENT | Errno::LOOP | Errno::NXIO)) => {
            return Err(Ok(UnlinkReason::NothingToFree));
        }
        Err(OpenFailure::Refused(
            errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO),
        )) => {
            return Err(errno).during(DeleteOperation::Open).map_err(Err);
        }
        Err(_) => return Err(Ok(UnlinkReason::OpenElsewhere)),
    };
    let stat = fstat(&fd).during(DeleteOperation::Open).map_err(Err)?;
    why_only_unlinked(&stat).map_or(Ok(fd), |reason| Err(Ok(reason)))
}

/// The reason why a file of this kind is not freed in steps.
fn why_only_unlinked(stat: &Stat) -> Option<UnlinkReason> {
    match file_type(stat) {
        FileType::RegularFile if stat.st_nlink != 1 => Some(UnlinkReason::HardLinked),
        FileType::RegularFile if allocated(stat) > 0 => None,
        _ => Some(UnlinkReason::NothingToFree),
    }
}
