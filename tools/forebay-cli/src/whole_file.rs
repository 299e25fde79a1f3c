//! Files that are written whole, or not at all.

use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// The access that a new file gives, as far as the umask of the process allows.
const MODE: u32 = 0o666;

/// Writes `text` alongside `path` first, and then gives it its name. What is there and is no file,
/// such as a pipe, is written into; a link stays one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = &followed(path);
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return fs::write(path, text);
    }
    let mut file = temporary_file(path)?;
    file.write_all(text.as_bytes()).map_err(nameless)?;
    if let Ok(there) = fs::metadata(path) {
        file.as_file().set_permissions(there.permissions())?;
    }
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
    let path = &followed(path);
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(wrong(&"it is a directory")),
        Ok(there) if !there.is_file() => Ok(()),
        _ => temporary_file(path).map(drop).map_err(|error| wrong(&error)),
    }
}

/// Whether a file called `path` would replace none of those that are `read`.
pub(crate) fn check_other(path: &Path, read: &[&Path]) -> Result<(), Failure> {
    let file = |path: &Path| {
        let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((there.dev(), there.ino()))
    };
    match file(path) {
        Some(there) if read.iter().any(|read| file(read) == Some(there)) => Err(Failure::Input(
            format!("`{}` would be replaced while it is read; name another place", path.display()),
        )),
        _ => Ok(()),
    }
}

/// What `path` leads to, which need not be there yet.
fn followed(path: &Path) -> PathBuf {
    let there = fs::canonicalize(path);
    let target = || Some(path.parent()?.join(fs::read_link(path).ok()?));
    there.ok().or_else(target).unwrap_or_else(|| path.to_owned())
}

/// A file in the directory of `path`.
fn temporary_file(path: &Path) -> io::Result<NamedTempFile> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let mut file = tempfile::Builder::new();
    file.permissions(Permissions::from_mode(MODE));
    file.tempfile_in(dir.unwrap_or_else(|| Path::new("."))).map_err(nameless)
}

/// The error of the system alone: the name of a file that is nobody's says nothing.
pub(crate) fn nameless(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rfind(" at path \"") {
        Some(end) => io::Error::new(error.kind(), &text[..end]),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_for_those_the_umask_says_and_an_old_one_for_those_it_was_for() {
        let dir = tempfile::tempdir().unwrap();
        let [plain, new, old] = ["plain", "new", "old"].map(|name| dir.path().join(name));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        fs::write(&plain, "").unwrap();
        write(&new, "text").unwrap();
        assert_eq!(mode(&new), mode(&plain));
        fs::write(&old, "").unwrap();
        for access in [0o600, 0o640] {
            fs::set_permissions(&old, Permissions::from_mode(access)).unwrap();
            write(&old, "text").unwrap();
            assert_eq!((mode(&old), fs::read_to_string(&old).unwrap()), (access, "text".into()));
        }
    }

    #[test]
    fn a_link_stays_one_whether_its_file_is_there_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("file", &link).unwrap();
        for text in ["new", "again"] {
            check(&link).unwrap();
            write(&link, text).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), text);
        }
    }
}
