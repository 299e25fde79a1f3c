//! Options of a deleter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_core::DISCARD_STEP_NANOS;

use crate::backlog::BacklogController;

/// The default name of trash directories.
pub const TRASH_NAME_DEFAULT: &str = ".forebay-trash";
/// The default length of a step.
const STEP_DEFAULT: Duration = Duration::from_nanos(DISCARD_STEP_NANOS);
/// The default maximum of waiting files.
const FILES_MAX_DEFAULT: usize = 1 << 20;
/// The default maximum age of a waiting file.
const AGE_MAX_DEFAULT: Duration = Duration::from_secs(3600);

/// Invalid options of a deleter.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeleterError {
    /// A value of 0, with which nothing would ever be deleted.
    #[error("{option} is 0: give at least 1")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// The name of the trash is not a plain name.
    #[error("{name:?} is no name of a trash directory: give one without `/`, not `.` or `..`")]
    TrashName {
        /// The invalid name.
        name: OsString,
    },
    /// The length of a step is below 1 ms or above 10 s.
    #[error("steps of {} ms: give 1 ms to 10 s", step.as_millis())]
    Step {
        /// The invalid length.
        step: Duration,
    },
}

forebay_core::debug_as_display!(DeleterError);

/// The options of a [`Deleter`](crate::Deleter): its pace, and the place of its trash.
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
    /// The defaults: no rate limit other than the scheduling of the class, a trash in the directory
    /// of each file, and the default maximums.
    pub fn new() -> Self {
        Self::default()
    }

    /// Frees at most this many bytes per second, to the accuracy of a step, until the backlog nears
    /// its [maximum](Self::backlog_bytes_max). Without a rate only the scheduling of the class
    /// limits it.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.rate = Some(bytes_per_second);
        self
    }

    /// Discards at most this many extents per second. With [`rate`](Self::rate) too, the lower
    /// limit applies. Without it only the scheduling of the class limits it.
    pub fn commands_per_second(mut self, commands: u64) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Sets the length of a step: it frees at most as much as the rate frees in this time, 1 ms to
    /// 10 s, by default 80 ms. A step never costs the disk more than its [effective
    /// goal](crate::Disk::effective_goal), as far as one extent can be divided.
    pub fn step(mut self, step: Duration) -> Self {
        self.step = step;
        self
    }

    /// The name of trash directories: a plain name, by default [`TRASH_NAME_DEFAULT`].
    pub fn trash_name(mut self, name: impl AsRef<OsStr>) -> Self {
        self.trash_name = name.as_ref().to_owned();
        self
    }

    /// Uses one trash directory for all files, in this directory, instead of one in the directory
    /// of each file. Files on another file system are refused (`EXDEV`).
    pub fn trash_in(mut self, dir: impl AsRef<Path>) -> Self {
        self.trash_in = Some(dir.as_ref().to_owned());
        self
    }

    /// Unlinks each file at once and keeps its descriptor, instead of moving it into a trash
    /// directory. After a crash the file system frees the rest at once. At most 64 files are held
    /// in this way; the others wait at their paths.
    pub fn in_place(mut self, in_place: bool) -> Self {
        self.in_place = in_place;
        self
    }

    /// Frees files in steps even if their deletion sends no discards, for file systems that take
    /// long to free large files. Otherwise such files are only unlinked.
    pub fn always_in_steps(mut self, always: bool) -> Self {
        self.always = always;
        self
    }

    /// Sets the most files that may wait, 1,048,576 by default. Further files are refused
    /// ([`Full`](crate::DeleteErrorCause::Full)).
    pub fn files_max(mut self, files: usize) -> Self {
        self.files_max = files;
        self
    }

    /// Sets the most bytes that may wait; there is no limit by default. Above half of it the rate
    /// and the class's shares rise. At the limit the rate is unlimited, and the shares are highest.
    pub fn backlog_bytes_max(mut self, bytes: Option<u64>) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets the longest time that a file may wait, one hour by default; `None` sets no limit. It
    /// has the same effect as [`backlog_bytes_max`](Self::backlog_bytes_max).
    pub fn backlog_age_max(mut self, age: Option<Duration>) -> Self {
        self.age_max = age;
        self
    }

    /// Sets the least number of free bytes in the file system. With fewer the backlog counts as
    /// half full, and with half as many as full. The default (`None`) is a twentieth of the file
    /// system, at most 16 GiB. 0 turns this off.
    pub fn free_bytes_min(mut self, bytes: Option<u64>) -> Self {
        self.free_min = bytes;
        self
    }

    /// Sets the class's shares by the backlog, as a fraction of its maximum. By default they are
    /// constant up to a half, and then rise to ten times as many.
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
