//! How a deleter deletes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_core::DISCARD_STEP_NANOS;

use crate::backlog::BacklogController;

/// The name of trash directories, unless another is given.
pub const TRASH_NAME_DEFAULT: &str = ".forebay-trash";
/// What a step may take at the rate, unless another time is given.
const STEP_DEFAULT: Duration = Duration::from_nanos(DISCARD_STEP_NANOS);
/// How many files may wait, unless another number is given.
const FILES_MAX_DEFAULT: usize = 1 << 20;
/// How old the oldest may become, unless another age is given.
const AGE_MAX_DEFAULT: Duration = Duration::from_secs(3600);

/// Options that make no deleter.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeleterError {
    /// Nothing would ever be deleted.
    #[error("{option} is 0: give at least 1")]
    Zero {
        /// Which option.
        option: &'static str,
    },
    /// Not the name of a directory.
    #[error("{name:?} is no name of a trash directory: give one without `/`, not `.` or `..`")]
    TrashName {
        /// The offending one.
        name: OsString,
    },
    /// Steps too short or too long.
    #[error("steps of {} ms: give 1 ms to 10 s", step.as_millis())]
    Step {
        /// The offending time.
        step: Duration,
    },
}

forebay_core::debug_as_display!(DeleterError);

/// How a [`Deleter`](crate::Deleter) deletes: at which pace, and where what is to be deleted
/// waits.
#[derive(Clone, Debug)]
#[must_use]
pub struct DeleterOptions {
    pub(super) rate: Option<u64>,
    pub(super) commands: Option<u64>,
    pub(super) step: Duration,
    pub(super) trash_name: OsString,
    pub(super) trash_in: Option<PathBuf>,
    pub(super) in_place: bool,
    pub(super) always: bool,
    pub(super) files_max: usize,
    pub(super) bytes_max: Option<u64>,
    pub(super) age_max: Option<Duration>,
    pub(super) free_min: Option<u64>,
    pub(super) shares: Option<BacklogController>,
}

impl Default for DeleterOptions {
    fn default() -> Self {
        Self {
            rate: None,
            commands: None,
            step: STEP_DEFAULT,
            trash_name: OsString::from(TRASH_NAME_DEFAULT),
            trash_in: None,
            in_place: false,
            always: false,
            files_max: FILES_MAX_DEFAULT,
            bytes_max: None,
            age_max: Some(AGE_MAX_DEFAULT),
            free_min: None,
            shares: None,
        }
    }
}

impl DeleterOptions {
    /// No rate but that of the class, a trash alongside each file, ceilings as they are by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frees at most this many bytes per second, within a step, until a
    /// [ceiling](Self::backlog_bytes_max) nears. Without a rate it frees what the class lets
    /// through.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.rate = Some(bytes_per_second);
        self
    }

    /// Discards at most this many extents per second; alongside [`rate`](Self::rate), whichever is
    /// slower. Without, as many as the class lets through.
    pub fn commands_per_second(mut self, commands: u64) -> Self {
        self.commands = Some(commands);
        self
    }

    /// A step frees at most what the rate frees in this time, 1 ms to 10 s; by default 80 ms. It
    /// never costs the disk more than its [effective goal](crate::Disk::effective_goal), as far as
    /// one extent can be divided.
    pub fn step(mut self, step: Duration) -> Self {
        self.step = step;
        self
    }

    /// The name of trash directories: a plain name, by default [`TRASH_NAME_DEFAULT`].
    pub fn trash_name(mut self, name: impl AsRef<OsStr>) -> Self {
        self.trash_name = name.as_ref().to_owned();
        self
    }

    /// One trash directory for all, in this directory, instead of one alongside each file. Files on
    /// another file system are refused (`EXDEV`).
    pub fn trash_in(mut self, dir: impl AsRef<Path>) -> Self {
        self.trash_in = Some(dir.as_ref().to_owned());
        self
    }

    /// Unlinks each file at once and keeps its descriptor, instead of moving it into a trash
    /// directory: after a crash the file system frees the rest by itself, at once. At most 64 files
    /// are held so; the others wait at their places.
    pub fn in_place(mut self, in_place: bool) -> Self {
        self.in_place = in_place;
        self
    }

    /// Frees in steps also where nothing is discarded, for file systems that take long to free
    /// large files. Otherwise a file is simply unlinked there.
    pub fn always_in_steps(mut self, always: bool) -> Self {
        self.always = always;
        self
    }

    /// How many files may wait, 1,048,576 by default. Others are refused
    /// ([`Full`](crate::DeleteErrorCause::Full)).
    pub fn files_max(mut self, files: usize) -> Self {
        self.files_max = files;
        self
    }

    /// How many bytes may wait; no bound by default. From half of it on the rate and the class's
    /// shares rise; at all of it there is no rate, and the shares are highest.
    pub fn backlog_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// How long a file may wait, one hour by default; `None` for ever. It counts as
    /// [`backlog_bytes_max`](Self::backlog_bytes_max) does.
    pub fn backlog_age_max(mut self, age: Option<Duration>) -> Self {
        self.age_max = age;
        self
    }

    /// With fewer free bytes than this in the file system the backlog counts as half of its most,
    /// with a half of it as all; by default (`None`) a twentieth of the file system, at most
    /// 16 GiB. 0 for no such rule.
    pub fn free_bytes_min(mut self, bytes: Option<u64>) -> Self {
        self.free_min = bytes;
        self
    }

    /// The class's shares by the part of the backlog. By default they stay as they were up to a
    /// half, and rise to ten times as many.
    pub fn shares(mut self, controller: BacklogController) -> Self {
        self.shares = Some(controller);
        self
    }

    pub(super) fn check(&self) -> Result<(), DeleterError> {
        let zero = [
            ("rate", self.rate == Some(0)),
            ("commands_per_second", self.commands == Some(0)),
            ("files_max", self.files_max == 0),
            ("backlog_bytes_max", self.bytes_max == Some(0)),
            ("backlog_age_max", self.age_max == Some(Duration::ZERO)),
        ];
        if let Some((option, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(DeleterError::Zero { option });
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&self.step) {
            return Err(DeleterError::Step { step: self.step });
        }
        let bytes = self.trash_name.as_bytes();
        let is_plain = !matches!(bytes, b"" | b"." | b"..")
            && bytes.len() <= 255
            && !bytes.iter().any(|byte| matches!(byte, b'/' | 0));
        if is_plain {
            Ok(())
        } else {
            Err(DeleterError::TrashName { name: self.trash_name.clone() })
        }
    }
}
