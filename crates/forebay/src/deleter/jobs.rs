//! The jobs of a deleter. A file is reported as removed when its removal is durable.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{AtFlags, FileType, Stat, fstat, statat, unlinkat};
use rustix::io::Errno;

use super::deletion::{DeletedHow, Target, UnlinkReason};
use super::directory::{Directory, allocated, file_type, split};
use super::entry::Entry;
use super::error::{DeleteErrorCause, DeleteOperation, During};
use super::item::{Held, Item, Place};
use super::lease;
use super::shared::Job;
use super::state::{Emptying, Worker};
use super::trash::Trash;
use crate::direct_file::file_number_of;

/// The most jobs that are done at a time.
pub(super) const JOBS_MAX: usize = 1024;
/// The most unlinked files that are kept open.
const HELD_MAX: usize = 64;
/// How often a trash is made again if another process removes it just when it is used.
const TRASH_TRIES: u32 = 8;
/// A directory that was moved to the trash by mistake is moved back. This is the number of attempts
/// while others take its name.
const GIVE_BACK_TRIES: u32 = 64;

/// The state of a file after its name was removed.
enum Removed {
    /// The file waits to be freed.
    Waits(Place, Stat),
    Over(UnlinkReason),
}

/// Why a job was not done.
enum JobFailure {
    /// There is no room for the job now.
    PutOff,
    Failed(DeleteErrorCause),
}

impl From<DeleteErrorCause> for JobFailure {
    fn from(cause: DeleteErrorCause) -> Self {
        Self::Failed(cause)
    }
}

/// The objects that were flushed, with the results.
type Flushed<T> = Vec<(Arc<T>, Result<(), Errno>)>;

/// Files whose removal is not durable yet.
#[derive(Default)]
struct Batch {
    directories: Flushed<Directory>,
    trashes: Flushed<Trash>,
    waiting: Vec<(Item, Arc<Directory>)>,
    over: Vec<(Arc<Target>, UnlinkReason, Arc<Directory>)>,
}

impl Worker {
    /// Does the new jobs. Returns whether there were any.
    pub(super) fn take_jobs(&mut self) -> bool {
        let room = JOBS_MAX.saturating_sub(self.put_off.len());
        let jobs = self.shared.take_jobs(room);
        let came = !jobs.is_empty();
        self.put_off.extend(jobs);
        let mut before = usize::MAX;
        // A flush makes room among the directories for jobs that were put off.
        while !self.put_off.is_empty() && self.put_off.len() < before {
            before = self.put_off.len();
            let jobs = std::mem::take(&mut self.put_off);
            self.do_jobs(jobs);
        }
        came
    }

    /// Does the `jobs` for which there is room, with one flush of each directory.
    fn do_jobs(&mut self, mut jobs: VecDeque<Job>) {
        let mut batch = Batch::default();
        while let Some(job) = jobs.pop_front() {
            let result = match &job {
                Job::Delete(target) => self.delete(target, &mut batch),
                Job::EmptyTrash(target) => self.empty_trash(target),
                Job::Drain(target) => {
                    self.draining.push(Arc::clone(target));
                    Ok(())
                }
            };
            match result {
                Ok(()) => {}
                Err(JobFailure::PutOff) => {
                    jobs.push_front(job);
                    break;
                }
                Err(JobFailure::Failed(cause)) => self.shared.end(job.target(), Err(cause)),
            }
        }
        self.put_off = jobs;
        self.flush(batch);
    }

    fn delete(&mut self, target: &Arc<Target>, batch: &mut Batch) -> Result<(), JobFailure> {
        let (path, name) = split(&target.path).during(DeleteOperation::LookUp)?;
        if self.shared.options.in_place && self.held >= HELD_MAX {
            return Err(JobFailure::PutOff);
        }
        let known = self.directories.get(&path, &self.shared.class)?;
        let directory = known.ok_or(JobFailure::PutOff)?;
        // The trash's directory stays open next to it until the file is moved. An error is returned
        // there.
        let trash_in = self.shared.options.trash_in.as_ref();
        let home = trash_in.map(|path| self.directories.get(path, &self.shared.class));
        if matches!(home, Some(Ok(None))) {
            return Err(JobFailure::PutOff);
        }
        if !target.begin() {
            // The deletion was cancelled.
            self.shared.forget();
            return Ok(());
        }
        match self.remove(&directory, &name)? {
            Removed::Over(reason) => batch.over.push((Arc::clone(target), reason, directory)),
            Removed::Waits(place, stat) => {
                self.held += usize::from(matches!(place, Place::Held(_)));
                let item = self.item(target, place, &stat);
                batch.waiting.push((item, directory));
            }
        }
        Ok(())
    }

    pub(super) fn item(&self, target: &Arc<Target>, place: Place, stat: &Stat) -> Item {
        let bytes = allocated(stat);
        target.add_total(bytes);
        let counts = self.shared.counts();
        counts.backlog_files.fetch_add(1, Relaxed);
        counts.backlog_bytes.fetch_add(bytes, Relaxed);
        Item { target: Arc::clone(target), place, bytes, since: self.now() }
    }

    /// Removes a name. The file is then freed in steps, unless there is a reason against it.
    fn remove(
        &mut self,
        directory: &Arc<Directory>,
        name: &OsStr,
    ) -> Result<Removed, DeleteErrorCause> {
        let stat = statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .during(DeleteOperation::LookUp)?;
        if file_type(&stat) == FileType::RegularFile && stat.st_nlink == 1 {
            directory.class.disk.held_files.close_deleted(file_number_of(&stat));
        }
        let in_steps = directory.discards || self.shared.options.always;
        let reason = match file_type(&stat) {
            FileType::Directory => return Err(Errno::ISDIR).during(DeleteOperation::LookUp),
            FileType::RegularFile if stat.st_nlink > 1 => UnlinkReason::HardLinked,
            FileType::RegularFile if allocated(&stat) == 0 => UnlinkReason::NothingToFree,
            FileType::RegularFile if !in_steps => UnlinkReason::NoDiscards,
            FileType::RegularFile if self.shared.options.in_place => return hold(directory, name),
            FileType::RegularFile => match self.throw_away(directory, name) {
                Err(DeleteErrorCause::System { errno, .. })
                    if [Errno::NOSPC, Errno::DQUOT].iter().any(|e| e.raw_os_error() == errno) =>
                {
                    UnlinkReason::NoSpace
                }
                moved => {
                    return moved.map(|(entry, stat)| Removed::Waits(Place::Trash(entry), stat));
                }
            },
            _ => UnlinkReason::NothingToFree,
        };
        unlinkat(&directory.fd, name, AtFlags::empty()).during(DeleteOperation::Unlink)?;
        Ok(Removed::Over(reason))
    }

    fn throw_away(
        &mut self,
        directory: &Arc<Directory>,
        name: &OsStr,
    ) -> Result<(Entry, Stat), DeleteErrorCause> {
        let mut tries = 0;
        let entry = loop {
            let trash = self.trash_for(directory)?;
            tries += 1;
            match trash.take(directory, name, &mut self.names) {
                // Either the file or the trash is gone.
                Err(Errno::NOENT) if tries < TRASH_TRIES && trash.is_gone() => {
                    self.forget_trash(&trash);
                }
                moved => break Entry::new(&trash, moved.during(DeleteOperation::Rename)?),
            }
        };
        // The name may belong to another file than when it was looked up.
        for _ in 0..GIVE_BACK_TRIES {
            let stat = entry.trash.stat_entry(entry.name).during(DeleteOperation::Rename)?;
            if file_type(&stat) != FileType::Directory {
                return Ok((entry, stat));
            }
            let given_back = entry.trash.give_back(entry.name, directory, name);
            if given_back.during(DeleteOperation::Rename)? {
                return Err(Errno::ISDIR).during(DeleteOperation::Rename);
            }
        }
        Err(Errno::EXIST).during(DeleteOperation::Rename)
    }

    /// The trash for files of `directory`. Entries that earlier processes left there are deleted
    /// too.
    fn trash_for(&mut self, directory: &Arc<Directory>) -> Result<Arc<Trash>, DeleteErrorCause> {
        let directory = match &self.shared.options.trash_in {
            None => Arc::clone(directory),
            Some(path) => {
                let known = self.directories.get(path, &self.shared.class)?;
                known.ok_or(Errno::MFILE).during(DeleteOperation::OpenTrash)?
            }
        };
        if let Some(Some(trash)) = self.directories.trash_of(&directory) {
            return Ok(Arc::clone(trash));
        }
        let name = self.shared.options.trash_name.clone();
        let trash = Trash::open(&directory, &name, self.names.owner, true)?;
        let trash = trash.map(Arc::new).ok_or(Errno::NOENT).during(DeleteOperation::OpenTrash)?;
        if let Some(known) = self.directories.trash_of(&directory) {
            *known = Some(Arc::clone(&trash));
        }
        let left = Arc::new(Target::new(trash.path()));
        // If the trash cannot be listed, files can still be moved there.
        let _ = self.adopt(&trash, &left, false);
        Ok(trash)
    }

    fn forget_trash(&mut self, gone: &Arc<Trash>) {
        if let Some(known) = self.directories.trash_of(&gone.directory) {
            *known = None;
        }
    }

    /// Deletes the entries that other deleters left in the trash of a directory, and waits for
    /// those of present deleters.
    fn empty_trash(&mut self, target: &Arc<Target>) -> Result<(), JobFailure> {
        let known = self.directories.get(&target.path, &self.shared.class)?;
        let directory = known.ok_or(JobFailure::PutOff)?;
        if !target.begin() {
            self.shared.forget();
            return Ok(());
        }
        let known = self.directories.trash_of(&directory).and_then(|known| known.clone());
        let trash = match known {
            Some(trash) => Some(trash),
            None => {
                let (name, owner) = (&self.shared.options.trash_name, self.names.owner);
                Trash::open(&directory, name, owner, false)?.map(Arc::new)
            }
        };
        let Some(trash) = trash else {
            target.note_removed();
            self.shared.end_scan(target);
            return Ok(());
        };
        if let Some(known) = self.directories.trash_of(&directory) {
            *known = Some(Arc::clone(&trash));
        }
        self.adopt(&trash, target, true)?;
        target.note_removed();
        self.emptying.push(Emptying { target: Arc::clone(target), trash });
        Ok(())
    }

    /// Makes the removals of `batch` durable, and reports them.
    fn flush(&mut self, mut batch: Batch) {
        for (item, directory) in std::mem::take(&mut batch.waiting) {
            let flushed = once(&mut batch.directories, &directory, Directory::flush);
            let flushed = flushed.and_then(|()| match &item.place {
                Place::Trash(entry) => once(&mut batch.trashes, &entry.trash, Trash::flush),
                Place::Held(_) => Ok(()),
            });
            match flushed.during(DeleteOperation::Flush) {
                Ok(()) => {
                    item.target.note_removed();
                    self.queue.push_back(item);
                }
                Err(cause) => self.end(item, Err(cause)),
            }
        }
        for (target, reason, directory) in std::mem::take(&mut batch.over) {
            let flushed = once(&mut batch.directories, &directory, Directory::flush);
            let flushed = flushed.during(DeleteOperation::Flush);
            self.shared.end(&target, flushed.map(|()| DeletedHow::Unlinked(reason)));
        }
    }
}

/// Flushes `this` unless it was flushed before. Returns the result of the flush.
fn once<T>(
    earlier: &mut Flushed<T>,
    this: &Arc<T>,
    flush: impl Fn(&T) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if let Some((_, flushed)) = earlier.iter().find(|(known, _)| Arc::ptr_eq(known, this)) {
        return *flushed;
    }
    let flushed = flush(this);
    earlier.push((Arc::clone(this), flushed));
    flushed
}

/// Unlinks a file and keeps it open, if nobody else has it open.
fn hold(directory: &Arc<Directory>, name: &OsStr) -> Result<Removed, DeleteErrorCause> {
    let files = &directory.class.disk.held_files;
    let fd = lease::open_all(files, directory.fd.as_fd(), vec![name.to_owned()]).pop();
    unlinkat(&directory.fd, name, AtFlags::empty()).during(DeleteOperation::Unlink)?;
    let Some(Ok(fd)) = fd else { return Ok(Removed::Over(UnlinkReason::OpenElsewhere)) };
    let stat = fstat(&fd).during(DeleteOperation::Open)?;
    if stat.st_nlink > 0 {
        return Ok(Removed::Over(UnlinkReason::HardLinked));
    }
    let held = Held { fd, directory: Arc::clone(directory) };
    Ok(Removed::Waits(Place::Held(held), stat))
}
