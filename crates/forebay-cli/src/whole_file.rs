//! Files that are written whole, or not at all.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::Failure;

const MODE: u32 = 0o644;

/// Writes `text` beside `path` first, and then gives it its name.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(dir.unwrap_or_else(|| Path::new(".")))?;
    file.write_all(text.as_bytes())?;
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
