//! What the interface says of errors of the system.

use std::io::{self, ErrorKind};
use std::path::Path;

use object_store::Error;

/// The name of the store in errors.
const STORE: &str = "ScheduledStore";

/// What went wrong with the file at `path`.
pub(crate) fn of(path: &Path, error: io::Error) -> Error {
    let (kind, path, source) = (error.kind(), path.display().to_string(), error.into());
    match kind {
        ErrorKind::NotFound => Error::NotFound { path, source },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path, source },
        ErrorKind::PermissionDenied => Error::PermissionDenied { path, source },
        _ => Error::Generic { store: STORE, source: format!("{path}: {source}").into() },
    }
}

/// A request that is not as it should be.
pub(crate) fn generic(why: &'static str) -> Error {
    Error::Generic { store: STORE, source: why.into() }
}

pub(crate) fn not_implemented(what: &str, store: &impl ToString) -> Error {
    Error::NotImplemented { operation: what.to_owned(), implementer: store.to_string() }
}
