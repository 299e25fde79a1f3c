//! What is done with what the walk finds.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use forebay::{DeletedHow, Deleter, Deletion, DeletionState};
use rustix::fs::{AtFlags, FileType, unlinkat};
use rustix::io::Errno;

use super::entry::Entry;
use super::pacing::Pacing;
use super::place::{may_delete_in, no_discards};
use super::progress::RmProgress;
use super::text::{Counts, cause, reason, system};
use crate::console::{note, print};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// This many files are handed over with one flush.
const BATCH: usize = 256;
/// This many may wait to be freed; the walk pauses until there are fewer.
const WAITING_MAX: usize = 16_384;
/// The shortest and the longest time between two looks.
const LOOK_MIN: Duration = Duration::from_micros(50);
const LOOK_MAX: Duration = Duration::from_millis(10);

/// A file that the deleter has.
struct Waiting {
    path: PathBuf,
    deletion: Deletion,
}

/// What is done with what the walk finds.
pub(super) struct Deletes<'a> {
    pub(super) pacing: &'a Pacing,
    pub(super) interrupt: &'a Interrupt,
    pub(super) dry_run: bool,
    /// Whether what is not there is no error.
    pub(super) force: bool,
    pub(super) verbose: bool,
    pub(super) counts: Counts,
    pub(super) progress: RmProgress,
    /// None where nothing is discarded, or before the first file.
    deleter: Option<Deleter>,
    /// The directory that the trash is in.
    here: Option<(OwnedFd, Entry)>,
    /// The same for people.
    trash: PathBuf,
    batch: Vec<(PathBuf, PathBuf)>,
    /// Files that may still be where they were.
    moving: VecDeque<Waiting>,
    /// Files that have left their places.
    freeing: VecDeque<Waiting>,
}

impl<'a> Deletes<'a> {
    pub(super) fn new(pacing: &'a Pacing, interrupt: &'a Interrupt) -> Self {
        Self {
            pacing,
            interrupt,
            dry_run: false,
            force: false,
            verbose: false,
            counts: Counts::default(),
            progress: RmProgress::new(),
            deleter: None,
            here: None,
            trash: PathBuf::new(),
            batch: Vec::new(),
            moving: VecDeque::new(),
            freeing: VecDeque::new(),
        }
    }

    /// Files come that wait in the trash in `dir`, which is called `path`. Those before are waited
    /// for if they do elsewhere, so that the pace is one.
    pub(super) fn go_to(&mut self, dir: OwnedFd, path: &Path) -> Result<(), Failure> {
        let entry = Entry::of_file(&dir);
        let entry = entry.map_err(|errno| Failure::Run(format!("{path:?}: {}", system(errno))))?;
        if self.is_at(&entry) {
            return Ok(());
        }
        self.drain();
        path.clone_into(&mut self.trash);
        self.deleter = match no_discards(&dir) {
            Some(why) => {
                self.say(&format!(
                    "{why}: deleting files there sends no discards, so they are unlinked at once"
                ));
                None
            }
            None => Some(self.pacing.deleter(Some(&by_descriptor(&dir)))?),
        };
        self.here = Some((dir, entry));
        Ok(())
    }

    /// Whether files wait in the trash in this directory.
    pub(super) fn is_at(&self, dir: &Entry) -> bool {
        self.here.as_ref().is_some_and(|(_, here)| here.is_same(dir))
    }

    /// [`Deletes::file`], of a file alongside the trash.
    pub(super) fn file_here(&mut self, name: &OsStr, entry: &Entry, path: PathBuf) {
        if let Some((dir, here)) = self.here.take() {
            self.file(&dir, name, entry, path);
            self.here = Some((dir, here));
        }
    }

    /// A file, or anything that is no directory.
    pub(super) fn file(&mut self, dir: impl AsFd, name: &OsStr, entry: &Entry, path: PathBuf) {
        let is_paced = self.deleter.is_some();
        let at_once = match entry.kind {
            FileType::RegularFile if entry.links > 1 => Some("other names remain"),
            FileType::RegularFile if entry.bytes == 0 => Some("nothing to free"),
            FileType::RegularFile if !is_paced => Some("nothing is discarded there"),
            FileType::RegularFile => None,
            _ => Some("nothing to free"),
        };
        let dir = dir.as_fd();
        if self.dry_run {
            if let Err(errno) = may_delete_in(dir) {
                return self.refused(&path, errno);
            }
            self.counts.freed += at_once.map_or(entry.bytes, |_| 0);
            return self.deleted(&path, at_once);
        }
        if !is_paced {
            return match unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) => self.deleted(&path, at_once),
                Err(errno) => self.refused(&path, errno),
            };
        }
        let here = by_descriptor(dir).join(name);
        self.batch.push((here, path));
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// All files of the directory where the walk is were told: they have left it afterwards, and
    /// its descriptor may be closed.
    pub(super) fn leave(&mut self) {
        self.hand_over();
        self.wait(|deletes| deletes.moving.is_empty());
    }

    /// A directory whose content was deleted; `may_be_full` if some of it was not.
    pub(super) fn directory(
        &mut self,
        parent: impl AsFd,
        name: &OsStr,
        path: &Path,
        may_be_full: bool,
    ) {
        let done = match self.dry_run {
            true => may_delete_in(parent),
            false => unlinkat(parent, name, AtFlags::REMOVEDIR),
        };
        match done {
            Ok(()) => {
                self.counts.directories += 1;
                self.tell(path, "directory");
            }
            // what is in it was told
            Err(_) if may_be_full => {}
            Err(errno) => self.refused(path, errno),
        }
    }

    /// The system refused to delete a path.
    pub(super) fn refused(&mut self, path: &Path, errno: Errno) {
        if !(self.force && errno == Errno::NOENT) {
            self.failed(path, &system(errno));
        }
    }

    /// A path is not deleted.
    pub(super) fn failed(&mut self, path: &Path, why: &str) {
        self.counts.failed += 1;
        // the trash itself is what --empty-trash names
        let what = if *path == self.trash { "free the trash in" } else { "delete" };
        self.say(&format!("error: cannot {what} `{}`: {why}", path.display()));
    }

    /// Waits until all that was handed over is freed, or the user wants the end.
    pub(super) fn drain(&mut self) {
        self.hand_over();
        self.wait(|deletes| deletes.moving.is_empty() && deletes.freeing.is_empty());
        if let Some(deleter) = &self.deleter {
            let drained = deleter.drain();
            // of all deleters of the class, and small files share steps
            self.counts.steps = deleter.snapshot().steps;
            self.wait(|_| drained.progress().state == DeletionState::Ended);
        }
    }

    /// Frees what is in the trash in `dir`.
    pub(super) fn empty_trash(&mut self, dir: &Path) -> Result<(), Failure> {
        self.drain();
        let (deleter, path) = (self.pacing.deleter(None)?, dir.to_owned());
        let deletion = deleter.empty_trash(dir);
        dir.clone_into(&mut self.trash);
        (self.deleter, self.here) = (Some(deleter), None);
        self.freeing.push_back(Waiting { path, deletion });
        self.drain();
        Ok(())
    }

    /// After an interruption: what is removed and not freed, for people.
    pub(super) fn left(&self) -> Option<String> {
        let bytes = self.freeing.iter().map(|waiting| {
            let progress = waiting.deletion.progress();
            progress.bytes_total.saturating_sub(progress.bytes_freed)
        });
        let bytes = super::text::bytes(bytes.sum());
        (!self.freeing.is_empty()).then(|| {
            let dir = self.trash.display();
            format!(
                "{bytes} are removed but not freed yet: `forebay rm --empty-trash {dir}` frees them"
            )
        })
    }

    fn hand_over(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let Some(deleter) = &self.deleter else { return };
        let (here, paths): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let deletions = deleter.delete_all(here);
        let waiting = paths.into_iter().zip(deletions);
        self.moving.extend(waiting.map(|(path, deletion)| Waiting { path, deletion }));
        self.wait(|deletes| deletes.moving.len() + deletes.freeing.len() < WAITING_MAX);
    }

    /// Waits until `is_over`, or the user wants the end: then what was not touched stays.
    fn wait(&mut self, is_over: impl Fn(&Self) -> bool) {
        let mut pause = LOOK_MIN;
        loop {
            self.look();
            if self.interrupt.is_raised() {
                // descriptors are closed from here on, and what is resolved by them later would be
                // found elsewhere
                self.moving.retain(|waiting| !waiting.deletion.cancel());
                self.freeing.append(&mut self.moving);
                return;
            }
            if is_over(self) {
                return;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LOOK_MAX);
        }
    }

    /// Sees what has become of files, in their order.
    fn look(&mut self) {
        let state = |waiting: &Waiting| waiting.deletion.progress().state;
        while let Some(moved) = pop_if(&mut self.moving, |w| state(w) >= DeletionState::Removed) {
            // what failed is still there, which who deletes its directory has to know
            match state(&moved) {
                DeletionState::Ended => self.ended(&moved.path, &moved.deletion),
                _ => self.freeing.push_back(moved),
            }
        }
        while let Some(over) = pop_if(&mut self.freeing, |w| state(w) == DeletionState::Ended) {
            self.ended(&over.path, &over.deletion);
        }
        let first = self.freeing.front().map(|first| first.deletion.progress().bytes_freed);
        let waiting = self.moving.len() + self.freeing.len();
        self.progress.show(&self.counts, first.unwrap_or(0), waiting);
    }

    fn ended(&mut self, path: &Path, deletion: &Deletion) {
        match deletion.wait() {
            Ok(deleted) => {
                self.counts.freed += deleted.bytes;
                self.counts.files += deleted.files;
                self.report(
                    path,
                    match deleted.how {
                        DeletedHow::Unlinked(why) => Some(reason(why)),
                        _ => None,
                    },
                );
            }
            Err(error) if error.errno() == Some(Errno::NOENT.raw_os_error()) => {
                self.refused(path, Errno::NOENT);
            }
            Err(error) => self.failed(path, &cause(&error)),
        }
    }

    fn deleted(&mut self, path: &Path, at_once: Option<&'static str>) {
        self.counts.files += 1;
        self.report(path, at_once);
    }

    fn report(&mut self, path: &Path, at_once: Option<&'static str>) {
        if let Some(why) = at_once {
            *self.counts.unlinked.entry(why).or_default() += 1;
        }
        self.tell(path, at_once.map_or("paced", |_| "unlinked"));
    }

    /// With -v: what was done with a path.
    fn tell(&self, path: &Path, how: &str) {
        if self.verbose {
            let would = if self.dry_run { "would be " } else { "" };
            // a reader that has gone is no reason to stop half-way
            let line = format!("{}: {would}{how}\n", path.display());
            let _ = self.progress.aside(|| print(&line));
        }
    }

    pub(super) fn say(&self, text: &str) {
        self.progress.aside(|| note(text));
    }
}

/// A path that leads to an open directory, wherever that is.
fn by_descriptor(dir: impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()))
}

fn pop_if(queue: &mut VecDeque<Waiting>, is_it: impl FnOnce(&Waiting) -> bool) -> Option<Waiting> {
    if is_it(queue.front()?) { queue.pop_front() } else { None }
}
