//! Why nothing can be traced.

use std::fmt;
use std::io;

/// Why nothing can be traced, and what to do about it.
pub enum TraceError {
    /// The kernel lets nobody but root trace.
    NotRoot,
    /// The kernel has no tracefs, or none for this process.
    NoTracefs(io::Error),
    /// A file of tracefs could not be made, read or written.
    File {
        /// Which one.
        name: String,
        /// Why.
        error: io::Error,
    },
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TraceError {
    pub(crate) fn at(name: &str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |error| Self::File { name: name.to_owned(), error: error.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => {
                f.write_str("only root can trace what disks are asked; run it as root")
            }
            Self::NoTracefs(error) => write!(
                f,
                "the kernel's tracefs cannot be mounted: {error}; it needs a kernel with \
                 CONFIG_FTRACE, and a container needs CAP_SYS_ADMIN and no lockdown"
            ),
            Self::File { name, error } => write!(f, "cannot trace: {name} of tracefs: {error}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotRoot => None,
            Self::NoTracefs(error) | Self::File { error, .. } => Some(error),
        }
    }
}
