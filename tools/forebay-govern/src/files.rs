//! Access to the kernel's files with settings.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use forebay_trace::Tracefs;

/// The prefix of paths in tracefs, which need not be mounted.
pub(crate) const TRACEFS: &str = "tracefs";

/// How often it is checked whether the processes of a cgroup have ended.
const ENDING_LOOKS: u32 = 100;
/// The time between two such checks.
const ENDING_LOOK: Duration = Duration::from_millis(20);

/// The files and directories of the kernel.
pub(crate) trait Files {
    fn read(&self, path: &Path) -> io::Result<String>;
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    fn make_directory(&self, path: &Path) -> io::Result<()>;
    fn remove_directory(&self, path: &Path) -> io::Result<()>;
    /// Kills the processes of a load's cgroup, and removes it.
    fn remove_load(&self, path: &Path) -> io::Result<()>;
}

/// The files of this machine.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    tracefs: OnceCell<Tracefs>,
}

impl Kernel {
    pub(crate) fn tracefs(&self) -> io::Result<&Tracefs> {
        if let Some(tracefs) = self.tracefs.get() {
            return Ok(tracefs);
        }
        let opened = Tracefs::open().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(self.tracefs.get_or_init(|| opened))
    }
}

impl Files for Kernel {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.strip_prefix(TRACEFS) {
            Ok(below) => self.tracefs()?.read(below),
            // names of processes may hold anything
            Err(_) => fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()),
        }
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        if let Ok(below) = path.strip_prefix(TRACEFS) {
            return self.tracefs()?.write(below, text);
        }
        fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_load(&self, path: &Path) -> io::Result<()> {
        // Kernels without this file do not have io.cost either.
        let _ = self.write(&path.join("cgroup.kill"), "1");
        for _ in 0..ENDING_LOOKS {
            match fs::remove_dir(path) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(ENDING_LOOK),
                removed => return removed,
            }
        }
        fs::remove_dir(path)
    }
}

/// Whether the error means that the object of a file no longer exists.
pub fn is_gone(error: &io::Error) -> bool {
    const GONE: [rustix::io::Errno; 3] =
        [rustix::io::Errno::NODEV, rustix::io::Errno::NXIO, rustix::io::Errno::SRCH];
    error.kind() == ErrorKind::NotFound
        || GONE.iter().any(|gone| error.raw_os_error() == Some(gone.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_process_is_read_whatever_its_name_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"41 (cut within \xc3) S 1\n").unwrap();
        assert!(Kernel::default().read(file.path()).unwrap().ends_with(") S 1\n"));
    }
}
