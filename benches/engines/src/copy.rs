//! Copies of a store that begin with nothing in memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise, syncfs};

use crate::engine::{Copied, Engine, Failure};

/// Makes `dir` from what is below `base`, and has the kernel forget all of it.
pub(crate) fn copy(
    base: &Path,
    dir: &Path,
    engine: &dyn Engine,
    writers: u64,
) -> Result<(), Failure> {
    fs::create_dir(dir)?;
    for entry in fs::read_dir(base)? {
        let (from, to) = {
            let entry = entry?;
            (entry.path(), dir.join(entry.file_name()))
        };
        if from.is_dir() {
            copy(&from, &to, engine, writers)?;
            continue;
        }
        match engine.how_to_copy(&from, writers) {
            Copied::Linked => fs::hard_link(&from, &to)?,
            Copied::Whole => drop(fs::copy(&from, &to)?),
            Copied::Left => continue,
        }
    }
    syncfs(File::open(dir)?)?;
    for entry in fs::read_dir(dir)? {
        let file = File::open(entry?.path())?;
        if file.metadata()?.is_file() {
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Bytes of the disk that files below `dir` take.
pub(crate) fn space(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // an engine may have removed it
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { space(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
