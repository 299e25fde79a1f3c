//! Putting back what a governor has changed.

use std::path::Path;

use crate::changes::put_back;
use crate::error::GovernError;
use crate::files::Kernel;
use crate::state_file::{STATE_DIRECTORY, StateFile};

/// Puts back all that a governor of this disk has changed; whether there was anything.
///
/// # Errors
/// A governor of the disk is running, this process is not root's, or something cannot be put back:
/// it stays in the state file then.
pub fn restore(disk: &str) -> Result<bool, GovernError> {
    let name = disk.trim_start_matches("/dev/");
    if name.is_empty() || name.contains('/') {
        return Err(GovernError::Missing(format!("`{disk}` is no name of a disk, such as sda")));
    }
    require_root()?;
    put_back(&Kernel::default(), &StateFile::lock(Path::new(STATE_DIRECTORY), name)?)
}

/// Settings of the kernel are root's.
pub(crate) fn require_root() -> Result<(), GovernError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(GovernError::Missing("settings of disks are root's; run it as root".into()))
}
