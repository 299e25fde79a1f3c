//! Why nothing can be traced.

use std::fmt;
use std::io;

/// Why nothing can be traced, and what to do about it.
#[derive(thiserror::Error)]
pub enum TraceError {
    /// The kernel lets nobody but root trace.
    #[error("only root can trace the requests of disks; run it as root")]
    NotRoot,
    /// The kernel has no tracefs, or none for this process.
    #[error(
        "the kernel's tracefs cannot be mounted: {0}; it needs a kernel with CONFIG_FTRACE, and a \
         container needs CAP_SYS_ADMIN and no lockdown"
    )]
    NoTracefs(#[source] io::Error),
    /// A file of tracefs could not be made, read or written.
    #[error("cannot trace: {name} of tracefs: {error}")]
    File {
        /// Which one.
        name: String,
        /// Why.
        #[source]
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
