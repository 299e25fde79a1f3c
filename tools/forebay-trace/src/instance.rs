//! An instance of tracefs: a buffer and events that nobody else uses.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FlockOperation, Mode, flock, unlinkat};
use rustix::process::getpid;

use crate::error::TraceError;
use crate::tracefs;

/// What names of instances begin with; the number of their process follows.
const PREFIX: &str = "forebay-";

/// An instance; it is removed with this value, and by the next one where this process was killed.
#[derive(Debug)]
pub(crate) struct Instance {
    instances: OwnedFd,
    name: String,
    /// Locked while it is in use.
    pub(crate) dir: OwnedFd,
}

impl Instance {
    pub(crate) fn new(root: &OwnedFd) -> Result<Self, TraceError> {
        let instances = tracefs::instances(root)?;
        // nobody takes what has just been made for what was left
        let failed = TraceError::at("instances");
        flock(&instances, FlockOperation::LockExclusive).map_err(failed)?;
        remove_stale(&instances);
        let name = format!("{PREFIX}{}", getpid().as_raw_nonzero());
        let made = rustix::fs::mkdirat(&instances, &name, Mode::RWXU);
        made.map_err(TraceError::at(&format!("instances/{name}")))?;
        let dir = tracefs::directory(&instances, &name).and_then(|dir| {
            flock(&dir, FlockOperation::NonBlockingLockExclusive)?;
            flock(&instances, FlockOperation::Unlock)?;
            Ok(dir)
        });
        match dir {
            Ok(dir) => Ok(Self { instances, name, dir }),
            Err(error) => {
                let _ = unlinkat(&instances, &name, AtFlags::REMOVEDIR);
                Err(TraceError::at(&name)(error))
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = unlinkat(&self.instances, &self.name, AtFlags::REMOVEDIR);
    }
}

/// Removes what processes left that were killed: what nobody has locked.
fn remove_stale(instances: &OwnedFd) {
    let names = tracefs::names(instances, ".");
    for name in names.iter().filter(|name| name.starts_with(PREFIX)) {
        let Ok(dir) = tracefs::directory(instances, name) else { continue };
        if flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = unlinkat(instances, name, AtFlags::REMOVEDIR);
        }
    }
}
