//! Files that grow at once.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::ValueEnum;
use forebay::{AlignedBuf, DirectFile, FileExtent};
use rustix::fs::{FallocateFlags, fallocate, fsync, ftruncate};
use rustix::io::{pwrite, retry_on_intr};
use serde::{Deserialize, Serialize};

/// As many files grow at once: each has a thread.
pub const FILES_MAX: u32 = 256;

/// Buffers begin at pages.
const BUFFER_ALIGNMENT: usize = 4096;

/// What grows, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The files are made in a directory in this one, and lose their names before they grow.
    pub dir: PathBuf,
    /// How many grow at once, from 1 to [`FILES_MAX`].
    pub files: u32,
    /// To how many bytes each; rounded up to whole requests.
    pub file_bytes: u64,
    /// Bytes of a write, which the file system takes as direct.
    pub request_bytes: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// How they grew.
    pub strategy: Strategy,
    /// How many files.
    pub files: u32,
    /// Bytes of each.
    pub file_bytes: u64,
    /// Bytes of a write.
    pub request_bytes: u32,
    /// From the first write until all is flushed.
    pub seconds: f64,
    /// Bytes of all files per second.
    pub bytes_per_second: f64,
    /// Extents of all files; none where the file system does not say where files lie.
    pub extents: Option<u64>,
    /// How many of them begin at a multiple of 4 KiB on the device of the file system.
    pub extents_at_4kib: u64,
    /// The same of 64 KiB.
    pub extents_at_64kib: u64,
    /// The same of 1 MiB.
    pub extents_at_1mib: u64,
}

/// Grows the files, until `is_cancelled` returns true.
///
/// # Errors
/// Files cannot be made or written; `Interrupted` where it was to end.
pub fn grow(
    growth: &Growth,
    strategy: Strategy,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> io::Result<Grown> {
    // a number of the process would not do: in another container it may be that of another one
    let dir = tempfile::Builder::new().prefix(".forebay-growth-").tempdir_in(&growth.dir)?;
    let request = u64::from(growth.request_bytes.max(1));
    let file_bytes = growth.file_bytes.max(1).next_multiple_of(request);
    let files = growth.files.clamp(1, FILES_MAX);
    let open =
        |number: u32| Growing::open(&dir.path().join(number.to_string()), strategy, file_bytes);
    let growing = (0..files).map(open).collect::<io::Result<Vec<_>>>()?;
    // without names nothing is left of them, however this ends
    drop(dir);
    let began = Instant::now();
    thread::scope(|scope| {
        let start = |file| scope.spawn(move || Growing::write(file, request, is_cancelled));
        let threads: Vec<_> = growing.iter().map(start).collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        });
        ended.collect::<io::Result<()>>()
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let extents = growing.iter().map(|file| FileExtent::all(&file.file));
    let extents: Option<Vec<_>> = extents.map(Result::ok).collect();
    let all = || extents.iter().flatten().flatten();
    let at = |bytes| all().filter(|one| one.device_offset.is_multiple_of(bytes)).count() as u64;
    Ok(Grown {
        strategy,
        files,
        file_bytes,
        request_bytes: growth.request_bytes,
        seconds,
        bytes_per_second: (u64::from(files) * file_bytes) as f64 / seconds.max(1e-9),
        extents: extents.as_ref().map(|_| all().count() as u64),
        extents_at_4kib: at(4 << 10),
        extents_at_64kib: at(64 << 10),
        extents_at_1mib: at(1 << 20),
    })
}

/// A file that grows.
struct Growing {
    file: DirectFile,
    strategy: Strategy,
    bytes: u64,
    /// How long it is, which writes beyond it change.
    length: AtomicU64,
}

impl Growing {
    fn open(path: &Path, strategy: Strategy, bytes: u64) -> io::Result<Self> {
        let file = DirectFile::options().read(true).write(true).create_new(true).open(path)?;
        match strategy {
            Strategy::Append | Strategy::Double => {}
            Strategy::Truncate => ftruncate(&file, bytes)?,
            Strategy::Fallocate => fallocate(&file, FallocateFlags::empty(), 0, bytes)?,
        }
        Ok(Self { file, strategy, bytes, length: AtomicU64::new(0) })
    }

    /// Writes all of it, and flushes it.
    fn write(&self, request: u64, is_cancelled: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        let buffer = AlignedBuf::new(request as usize, BUFFER_ALIGNMENT)?;
        for at in (0..self.bytes).step_by(request as usize) {
            if is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.lengthen(at + request)?;
            let written = retry_on_intr(|| pwrite(&self.file, &buffer, at))?;
            if written as u64 != request {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        if self.strategy == Strategy::Double {
            ftruncate(&self.file, self.bytes)?;
        }
        Ok(fsync(&self.file)?)
    }

    /// Twice the length, where a write ends beyond it.
    fn lengthen(&self, end: u64) -> io::Result<()> {
        let length = self.length.load(Ordering::Relaxed);
        if self.strategy == Strategy::Double && end > length {
            let length = end.max(length.saturating_mul(2));
            ftruncate(&self.file, length)?;
            self.length.store(length, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// How a file gets its length and its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Each write makes the file longer.
    Append,
    /// Files are set to their final length first (ftruncate), without blocks.
    Truncate,
    /// Files get their length and their blocks first (fallocate).
    Fallocate,
    /// A write beyond the end doubles the length first.
    Double,
}

impl Strategy {
    /// All, in the order in which they are compared.
    pub const ALL: [Self; 4] = [Self::Append, Self::Truncate, Self::Fallocate, Self::Double];

    /// Its name in options and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Truncate => "truncate",
            Self::Fallocate => "fallocate",
            Self::Double => "double",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn files_have_their_size_by_each_strategy_and_are_removed() {
        let place = tempfile::tempdir().unwrap();
        for strategy in Strategy::ALL {
            for files in [1, 4] {
                let dir = place.path().to_owned();
                let growth = Growth { dir, files, file_bytes: MIB + 1, request_bytes: 128 << 10 };
                let grown = match grow(&growth, strategy, &|| false) {
                    Err(error) if strategy == Strategy::Fallocate => {
                        eprintln!("no fallocate: {error}");
                        continue;
                    }
                    grown => grown.unwrap(),
                };
                assert_eq!((grown.files, grown.file_bytes), (files, MIB + (128 << 10)));
                assert!(grown.bytes_per_second > 0.0);
                if let Some(extents) = grown.extents {
                    assert!(extents >= u64::from(files), "{grown:?}");
                    assert!(grown.extents_at_4kib <= extents);
                    assert!(grown.extents_at_1mib <= grown.extents_at_64kib);
                }
                assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
            }
        }
    }

    /// As in another container, where a process may have the same number.
    #[test]
    fn the_directory_of_another_process_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let other = place.path().join(format!(".forebay-growth-{}", process::id()));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("0"), "data").unwrap();
        let dir = place.path().to_owned();
        let growth = Growth { dir, files: 1, file_bytes: 4096, request_bytes: 4096 };
        grow(&growth, Strategy::Append, &|| false).unwrap();
        assert_eq!(fs::read_to_string(other.join("0")).unwrap(), "data");
    }

    #[test]
    fn cancelled_requests_leave_nothing() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().to_owned();
        let growth = Growth { dir, files: 2, file_bytes: 1 << 30, request_bytes: 4096 };
        let error = grow(&growth, Strategy::Append, &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let nowhere = Growth { dir: place.path().join("none"), ..growth };
        assert!(grow(&nowhere, Strategy::Append, &|| false).is_err());
    }

    #[test]
    fn twice_the_length_is_asked_for_a_few_times_only() {
        let place = tempfile::tempdir().unwrap();
        let file = Growing::open(&place.path().join("x"), Strategy::Double, 64 * MIB).unwrap();
        let lengths: Vec<u64> = (1..=64)
            .map(|end| {
                file.lengthen(end * MIB).unwrap();
                fs::metadata(place.path().join("x")).unwrap().len() / MIB
            })
            .collect();
        let mut different = lengths.clone();
        different.dedup();
        assert_eq!(different, [1, 2, 4, 8, 16, 32, 64]);
        assert!(lengths.iter().zip(1..).all(|(&length, end)| length >= end));
    }
}
