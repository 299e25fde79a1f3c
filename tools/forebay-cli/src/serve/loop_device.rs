//! A block device made of the served file.

use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// How long the end waits for the device to go while the disk is still served.
const DETACH_MAX: Duration = Duration::from_secs(2);

/// A loop device; it goes with this value at the latest.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: String,
    detaching: Option<Child>,
}

impl LoopDevice {
    /// Makes a block device of `file`, with direct I/O, so that what reaches the disk is what was
    /// asked of the device.
    pub(super) fn attach(file: &Path, sector: u32) -> Result<Self, Failure> {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--direct-io=on", "--sector-size", &sector.to_string()]);
        let output = command.arg(file).output();
        let refused = |reason: &str| {
            let advice = "it needs root and the program losetup; or leave --loop out";
            Failure::Run(format!("no loop device for {}: {reason}; {advice}", file.display()))
        };
        let output = output.map_err(|error| refused(&format!("cannot run losetup: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || said.is_empty() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(Self { path: said, detaching: None })
    }

    /// The device.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Lets go of the file, or begins to: while requests hang it takes until the disk has ended.
    pub(super) fn detach(&mut self) {
        let child = Command::new("losetup").arg("--detach").arg(&self.path).spawn();
        let Ok(child) = child else { return };
        let child = self.detaching.insert(child);
        let step = Duration::from_millis(1);
        let mut left = DETACH_MAX;
        while matches!(child.try_wait(), Ok(None)) && !left.is_zero() {
            thread::sleep(step);
            left = left.saturating_sub(step);
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if self.detaching.is_none() {
            self.detach();
        }
        if let Some(child) = &mut self.detaching {
            let _ = child.wait();
        }
    }
}
