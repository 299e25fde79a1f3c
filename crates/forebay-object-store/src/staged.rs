//! An object that is being written, and is not there before it is finished.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use forebay::{BufferedWriter, Class};
use object_store::{PutPayload, PutResult, Result};

use crate::error;

/// A file alongside the object that it will be, by a name that `LocalFileSystem` neither lists nor
/// opens, and takes for its own. It is removed if it does not become the object.
pub(crate) struct Staged {
    writer: BufferedWriter<File>,
    class: Class,
    /// `None` once it is the object.
    path: Option<PathBuf>,
    dest: PathBuf,
    fsync: bool,
}

impl Staged {
    /// An empty file, with the directories that it needs.
    pub(crate) fn create(dest: PathBuf, class: &Class, fsync: bool) -> Result<Self> {
        let mut number = 1u64;
        let (file, path) = loop {
            let mut path = dest.clone().into_os_string();
            path.push(format!("#{number}"));
            let path = PathBuf::from(path);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => break (file, path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    create_parents(&dest, class, fsync).map_err(|e| error::of(&dest, e))?;
                }
                Err(error) => return Err(error::of(&path, error)),
            }
        };
        let writer = class.buffered_writer(file).map_err(|e| {
            let _ = fs::remove_file(&path);
            error::of(&path, e)
        })?;
        Ok(Self { writer, class: class.clone(), path: Some(path), dest, fsync })
    }

    pub(crate) fn write_at(&self, payload: &PutPayload, mut offset: u64) -> Result<()> {
        for piece in payload {
            let written = self.writer.write_all_at(piece, offset);
            written.map_err(|e| error::of(&self.dest, e))?;
            offset += piece.len() as u64;
        }
        Ok(())
    }

    /// Makes it the object; replaces an existing one unless it has to be new.
    pub(crate) fn publish(mut self, is_new: bool) -> Result<PutResult> {
        let e_tag = self.try_publish(is_new).map_err(|e| error::of(&self.dest, e))?;
        Ok(PutResult { e_tag: Some(e_tag), version: None, extensions: Default::default() })
    }

    fn try_publish(&mut self, is_new: bool) -> io::Result<String> {
        if self.fsync {
            self.writer.sync_all()?;
        } else {
            // says what went wrong so far
            self.writer.write_at(&[], 0)?;
        }
        let e_tag = e_tag(&self.writer.get_ref().metadata()?);
        if let Some(path) = &self.path {
            if is_new {
                fs::hard_link(path, &self.dest)?;
                let _ = fs::remove_file(path);
            } else {
                fs::rename(path, &self.dest)?;
            }
        }
        self.path = None;
        if self.fsync {
            sync_parent(&self.dest, &self.class)?;
        }
        Ok(e_tag)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
            // nobody needs what is dirty of it
            let _ = self.writer.get_ref().set_len(0);
        }
    }
}

/// Creates the directories above `path`; durable, each with its name, if they have to be.
fn create_parents(path: &Path, class: &Class, fsync: bool) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().skip(1).take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match fs::create_dir(dir) {
            Err(error) if !dir.is_dir() => return Err(error),
            _ if fsync => sync_parent(dir, class)?,
            _ => {}
        }
    }
    Ok(())
}

fn sync_parent(path: &Path, class: &Class) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| class.sync_all(File::open(parent)?))
}

/// The same as `LocalFileSystem` says of the object.
fn e_tag(metadata: &Metadata) -> String {
    let since =
        metadata.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let modified = since.unwrap_or_default().as_micros();
    format!("\"{:x}-{modified:x}-{:x}\"", metadata.ino(), metadata.len())
}
