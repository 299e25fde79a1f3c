//! The files of the workspace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::strip::strip;

/// A file of Rust.
#[derive(Clone, Debug)]
pub struct Source {
    /// Below the folder that was read, with `/` between names.
    pub path: String,
    /// Lines of it.
    pub lines: usize,
    /// Its text without comments, and with nothing in its strings.
    pub code: String,
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folders that hold crates: the library, what operators run, and where the scheduler is
/// tested.
pub const WINGS: &[&str] = &["crates", "tools", "lab"];

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub struct Crate {
    /// What it is called, as its folder is.
    pub name: String,
    /// Its folder below that of the workspace.
    pub path: String,
}

impl Crate {
    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        root().join(&self.path)
    }
}

/// All crates, by name.
///
/// # Errors
/// A folder cannot be read.
pub fn crates() -> io::Result<Vec<Crate>> {
    let mut crates = Vec::new();
    for wing in WINGS.iter().filter(|wing| root().join(wing).is_dir()) {
        for entry in fs::read_dir(root().join(wing))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let path = format!("{wing}/{name}");
            if root().join(&path).join("src").is_dir() {
                crates.push(Crate { name, path });
            }
        }
    }
    crates.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(crates)
}

/// All files of Rust below a folder, by path; none where there is no such folder.
///
/// # Errors
/// A file or folder cannot be read.
pub fn read(folder: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    if folder.is_dir() {
        read_into(folder, "", &mut sources)?;
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}

fn read_into(folder: &Path, prefix: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read_into(&entry.path(), &format!("{path}/"), sources)?;
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path())?;
            sources.push(Source { path, lines: text.lines().count(), code: strip(&text) });
        }
    }
    Ok(())
}
