//! The engine's I/O: all that differs from one column to the next.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use forebay::{BufferedWriter, Class, Op};

/// How the engine does its I/O.
pub(crate) enum Io {
    /// As ever.
    Plain,
    /// As ever, with a permit around each call.
    Permits(Classes),
    /// With the changes that the head of this example shows.
    Changed(Classes),
}

/// What the engine does I/O for.
pub(crate) struct Classes {
    pub(crate) queries: Class,
    pub(crate) log: Class,
    pub(crate) tables: Class,
}

/// Who reads.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    Query,
    Compaction,
}

impl Classes {
    const fn of(&self, reader: Reader) -> &Class {
        match reader {
            Reader::Query => &self.queries,
            Reader::Compaction => &self.tables,
        }
    }
}

impl Io {
    pub(crate) fn read(
        &self,
        reader: Reader,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        match self {
            Self::Plain => file.read_exact_at(buffer, offset),
            Self::Permits(classes) => {
                let len = buffer.len() as u64;
                permitted(classes.of(reader), Op::Read, len, || file.read_exact_at(buffer, offset))
            }
            Self::Changed(classes) => {
                let read = classes.of(reader).read_at(file, buffer, offset)?;
                if read < buffer.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
            }
        }
    }

    /// Makes the log durable.
    pub(crate) fn sync_log(&self, log: &File) -> io::Result<()> {
        match self {
            Self::Plain => log.sync_data(),
            Self::Permits(classes) => permitted(&classes.log, Op::Flush, 0, || log.sync_data()),
            Self::Changed(classes) => classes.log.sync_data(log),
        }
    }

    /// A writer to a new table.
    pub(crate) fn writer<'a>(&'a self, file: &'a File) -> io::Result<TableWriter<'a>> {
        Ok(match self {
            Self::Plain => TableWriter::Plain(file),
            Self::Permits(classes) => TableWriter::Permits(file, &classes.tables),
            Self::Changed(classes) => TableWriter::Changed(classes.tables.buffered_writer(file)?),
        })
    }
}

/// A call with a permit around it.
fn permitted(
    class: &Class,
    op: Op,
    len: u64,
    call: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let permit = class.admit(op, len)?;
    let result = call();
    permit.complete(&result);
    result
}

pub(crate) enum TableWriter<'a> {
    Plain(&'a File),
    Permits(&'a File, &'a Class),
    Changed(BufferedWriter<&'a File>),
}

impl TableWriter<'_> {
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.write_all(bytes),
            Self::Permits(file, class) => {
                permitted(class, Op::Write, bytes.len() as u64, || file.write_all(bytes))
            }
            Self::Changed(writer) => writer.write_all(bytes),
        }
    }

    pub(crate) fn sync(self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.sync_all(),
            Self::Permits(file, class) => permitted(class, Op::Flush, 0, || file.sync_all()),
            Self::Changed(writer) => writer.sync_all(),
        }
    }
}
