//! The files of fjall: as the standard library has them, or in the class of the thread that opens or
//! reads them. The patches alongside this have fjall use them.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use forebay::{BufferedWriter, Class, Entered, Scheduler};

struct Classes {
    scheduler: Scheduler,
    flush: Class,
    compaction: Class,
}

static CLASSES: OnceLock<Classes> = OnceLock::new();

/// From now on files are the scheduler's, and what flushes and compactions do is of these classes.
pub fn schedule(scheduler: Scheduler, flush: Class, compaction: Class) {
    let _ = CLASSES.set(Classes { scheduler, flush, compaction });
}

/// Makes what this thread does that of a flush.
pub fn enter_flush() -> Option<Entered> {
    CLASSES.get().map(|classes| classes.flush.enter())
}

/// Makes what this thread does that of a compaction.
pub fn enter_compaction() -> Option<Entered> {
    CLASSES.get().map(|classes| classes.compaction.enter())
}

fn current_class() -> Option<Class> {
    CLASSES.get().map(|classes| classes.scheduler.current_class())
}

/// `pread`.
pub fn read_at(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    match current_class() {
        Some(class) => class.read_at(file, buffer, offset),
        None => file.read_at(buffer, offset),
    }
}

/// A file that is written.
pub enum File {
    Plain(std::fs::File),
    Scheduled(BufferedWriter<std::fs::File>),
}

impl File {
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(std::fs::File::create_new(path)?)
    }

    pub fn new(file: std::fs::File) -> io::Result<Self> {
        match current_class() {
            Some(class) => Ok(Self::Scheduled(class.buffered_writer(file)?)),
            None => Ok(Self::Plain(file)),
        }
    }

    fn get_ref(&self) -> &std::fs::File {
        match self {
            Self::Plain(file) => file,
            Self::Scheduled(writer) => writer.get_ref(),
        }
    }

    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.get_ref().set_len(len)
    }

    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.get_ref().metadata()
    }

    pub fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.sync_all(),
            Self::Scheduled(writer) => writer.sync_all(),
        }
    }

    pub fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.sync_data(),
            Self::Scheduled(writer) => writer.sync_data(),
        }
    }
}

impl Write for File {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(buffer),
            Self::Scheduled(writer) => writer.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Scheduled(writer) => writer.flush(),
        }
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Plain(file) => file.seek(to),
            Self::Scheduled(writer) => writer.seek(to),
        }
    }
}

/// A file that is read from its beginning to its end.
pub struct Scan {
    file: std::fs::File,
    position: u64,
}

impl Scan {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: std::fs::File::open(path)?, position: 0 })
    }
}

impl Read for Scan {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.file, buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
