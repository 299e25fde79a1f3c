//! Files that are written whole, or not at all.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::Failure;

const MODE: u32 = 0o644;

/// Writes `text` alongside `path` first, and then gives it its name. What is there and is no file,
/// such as a pipe, is written into; a link stays one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return fs::write(path, text);
    }
    let mut file = temporary_file(path)?;
    file.write_all(text.as_bytes()).map_err(nameless)?;
    file.as_file().set_permissions(Permissions::from_mode(MODE))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// [`write`]; what went wrong names the file.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Failure> {
    write(path, text)
        .map_err(|error| Failure::Run(format!("cannot write `{}`: {error}", path.display())))
}

/// Whether [`write`] would have a place for a file called `path`: better known before minutes of
/// work. What is there stays as it is.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let wrong = |why: &dyn Display| {
        Failure::Input(format!("cannot write `{}`: {why}; name another place", path.display()))
    };
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(wrong(&"it is a directory")),
        Ok(there) if !there.is_file() => Ok(()),
        _ => temporary_file(path).map(drop).map_err(|error| wrong(&error)),
    }
}

/// A file in the directory of `path`.
fn temporary_file(path: &Path) -> io::Result<NamedTempFile> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    NamedTempFile::new_in(dir.unwrap_or_else(|| Path::new("."))).map_err(nameless)
}

/// The error of the system alone: the name of a file that is nobody's says nothing.
pub(crate) fn nameless(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rfind(" at path \"") {
        Some(end) => io::Error::new(error.kind(), &text[..end]),
        None => error,
    }
}
