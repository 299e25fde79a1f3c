//! A path of the command line: the directory that it is in, and its name there.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay::TRASH_NAME_DEFAULT;
use rustix::fs::{CWD, Mode, OFlags};

use super::entry::Entry;
use super::text::system;

/// What is to be deleted.
#[derive(Debug)]
pub(super) struct Argument {
    /// The directory that it is in.
    pub(super) parent: OwnedFd,
    /// That directory, for people.
    pub(super) parent_path: PathBuf,
    pub(super) name: OsString,
    pub(super) entry: Entry,
}

/// Why it is not deleted.
#[derive(Debug)]
pub(super) enum Refused {
    Missing,
    Because(String),
}

impl Argument {
    /// Looks at `path`, and refuses what `rm` would refuse.
    pub(super) fn new(path: &Path, recursive: bool) -> Result<Self, Refused> {
        let because = |text: &str| Refused::Because(text.to_owned());
        let (parent_path, name) = split(path).map_err(because)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let look_up = |errno: rustix::io::Errno| match errno {
            rustix::io::Errno::NOENT => Refused::Missing,
            errno => Refused::Because(system(errno)),
        };
        let parent = rustix::fs::openat(CWD, &parent_path, flags, Mode::empty());
        let parent = parent.map_err(look_up)?;
        let entry = Entry::look(&parent, &name).map_err(look_up)?;
        let here = Entry::of_file(&parent).map_err(look_up)?;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty());
        let is_root = root.and_then(Entry::of_file).is_ok_and(|root| root.is_same(&entry));
        let ends_in_slash = path.as_os_str().as_bytes().ends_with(b"/");
        if is_root {
            return Err(because("it is the root directory, which is never deleted"));
        }
        if entry.is_dir() && !recursive {
            return Err(because("it is a directory; -r deletes it with its contents"));
        }
        if ends_in_slash && !entry.is_dir() {
            return Err(because("it is not a directory; leave out the slash at its end"));
        }
        if entry.place != here.place {
            return Err(because("something is mounted there; unmount it first"));
        }
        if name == TRASH_NAME_DEFAULT {
            return Err(because(
                "it is a trash with files of an earlier delete; free them with --empty-trash and \
                 its parent directory",
            ));
        }
        Ok(Self { parent, parent_path, name, entry })
    }
}

/// The directory and the last name of a path.
fn split(path: &Path) -> Result<(PathBuf, OsString), &'static str> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err("the path is empty");
    }
    let end = bytes.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    let trimmed = &bytes[..end];
    if trimmed.is_empty() {
        return Err("it is the root directory, which is never deleted");
    }
    let start = trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let (dir, name) = trimmed.split_at(start);
    if matches!(name, b"." | b"..") {
        return Err("`.` and `..` are never deleted; name the directory itself");
    }
    let dir = if dir.is_empty() { b"." } else { dir };
    Ok((OsStr::from_bytes(dir).into(), OsStr::from_bytes(name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_directory_and_a_name() {
        for (path, dir, name) in [
            ("a", ".", "a"),
            ("a/b", "a/", "b"),
            ("/a", "/", "a"),
            ("./a//", "./", "a"),
            ("../a", "../", "a"),
            ("..a", ".", "..a"),
        ] {
            let (found, last) = split(Path::new(path)).unwrap();
            assert_eq!((found.to_str(), last.to_str()), (Some(dir), Some(name)), "{path}");
        }
    }

    #[test]
    fn paths_that_are_never_deleted_are_refused_by_name() {
        for path in ["", "/", "//", ".", "..", "a/.", "a/..", "../", "./", "/.."] {
            assert!(split(Path::new(path)).is_err(), "{path}");
        }
    }
}
