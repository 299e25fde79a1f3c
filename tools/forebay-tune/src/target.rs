//! What can be measured.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::look::Counted;
use crate::phase::Phase;
use crate::samples::Samples;

/// Something that a load can be run on.
pub trait Target {
    /// What is known about it in advance.
    fn info(&self) -> &TargetInfo;

    /// Runs one phase.
    ///
    /// # Errors
    /// The disk fails a request, does not answer, or the user has had enough.
    fn run(&mut self, phase: &Phase) -> Result<Samples, Error>;

    /// Runs `background` on the data laid out, and `phase` at the same time; both end when `phase`
    /// does.
    ///
    /// # Errors
    /// As of [`Target::run`].
    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error>;

    /// What the disk has done so far for all that use it.
    ///
    /// # Errors
    /// Nobody counts that.
    fn counted(&self) -> Result<Counted, Error>;

    /// Lets this many seconds pass.
    ///
    /// # Errors
    /// The user has had enough.
    fn wait(&mut self, seconds: f64) -> Result<(), Error>;
}

/// What is known about a disk before it is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// The directories or the block device measured, full paths.
    #[serde(rename = "places")]
    pub paths: Vec<String>,
    /// The device they lie on, as `MAJOR:MINOR`; empty for a simulated disk.
    pub device: String,
    /// The disks below it, such as the members of a RAID.
    pub disks: Vec<String>,
    /// What kind of file system it is; empty without one.
    pub filesystem: String,
    /// Threads that send requests.
    pub threads: u32,
    /// How requests get to the kernel.
    pub backend: String,
    /// What offsets and lengths must be multiples of, in bytes.
    pub alignment: u32,
    /// The logical sector that the device states, in bytes.
    pub logical_sector: Option<u32>,
    /// The physical sector that the device states, in bytes.
    pub physical_sector: Option<u32>,
    /// Whether it says that it is a hard disk.
    pub rotational: Option<bool>,
    /// Bytes per second of the link to the disk, and what that is.
    pub link: Option<(u64, String)>,
    /// Whether space that is given back is discarded on the device.
    pub discards: bool,
    /// Whether files are made on it.
    pub files: bool,
    /// Bytes that the data of the measurement may take.
    pub room: u64,
}

impl TargetInfo {
    /// The disk below these directories, of which nothing is known yet.
    pub fn of(paths: &[PathBuf]) -> Self {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        Self { paths, ..Self::default() }
    }

    /// Whether it is no real disk.
    pub fn is_simulated(&self) -> bool {
        self.device.is_empty()
    }

    /// Whether both are the same disk: by the names of the disks where these are known, or else by the
    /// directories.
    pub fn is_same_disk(&self, other: &Self) -> bool {
        match (self.disks.as_slice(), other.disks.as_slice()) {
            ([], _) | (_, []) => self.paths == other.paths && self.disks == other.disks,
            (own, other) => own == other,
        }
    }

    /// The names of the disks, or the directories where these are not known.
    pub fn disk_name(&self) -> String {
        if self.disks.is_empty() { self.paths.join(", ") } else { self.disks.join(", ") }
    }
}
