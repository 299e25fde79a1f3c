//! Targets of a measurement.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::phase::Phase;
use crate::probe::DiskCounters;
use crate::samples::Samples;

/// A disk, real or simulated, on which loads can be run.
pub trait Target {
    /// The properties that are known before the measurement.
    fn info(&self) -> &TargetInfo;

    /// Runs one phase.
    ///
    /// # Errors
    /// The disk failed a request or does not answer, or the user interrupted the measurement.
    fn run(&mut self, phase: &Phase) -> Result<Samples, Error>;

    /// Runs `background` on the data laid out, and `phase` at the same time. Both end when `phase`
    /// does.
    ///
    /// # Errors
    /// As of [`Target::run`].
    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error>;

    /// The counters of the disk, over all programs that use it.
    ///
    /// # Errors
    /// The disk has no counters.
    fn counters(&self) -> Result<DiskCounters, Error>;

    /// Waits for this many seconds.
    ///
    /// # Errors
    /// The user interrupted the measurement.
    fn wait(&mut self, seconds: f64) -> Result<(), Error>;
}

/// The properties of a disk that are known before it is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// The directories or the block device, as full paths.
    #[serde(rename = "places")]
    pub paths: Vec<String>,
    /// The number of their device, as `MAJOR:MINOR`; empty for a simulated disk.
    pub device: String,
    /// The disks below it, such as the members of a RAID.
    pub disks: Vec<String>,
    /// The kind of its file system; empty without one.
    pub filesystem: String,
    /// The number of threads that send requests.
    pub threads: u32,
    /// How requests are passed to the kernel.
    pub backend: String,
    /// The alignment of offsets and lengths, in bytes.
    pub alignment: u32,
    /// The logical sector that the device states, in bytes.
    pub logical_sector: Option<u32>,
    /// The physical sector that the device states, in bytes.
    pub physical_sector: Option<u32>,
    /// Whether the device states that it is a hard disk.
    pub rotational: Option<bool>,
    /// The bandwidth of the link to the disk in bytes per second, and the kind of the link.
    pub link: Option<(u64, String)>,
    /// Whether the file system discards freed space on the device.
    pub discards: bool,
    /// Whether the measurement makes files on it.
    pub files: bool,
    /// The most bytes that the data of the measurement may take.
    pub room: u64,
}

impl TargetInfo {
    /// The disk below these directories, of which nothing is known yet.
    pub fn of(paths: &[PathBuf]) -> Self {
        let paths = paths.iter().map(|path| path.display().to_string()).collect();
        Self { paths, ..Self::default() }
    }

    /// Whether it is a simulated disk.
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
