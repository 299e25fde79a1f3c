//! redb: a database that is read, and one for each writer, since each has one writer at a time.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use forebay::{BufferedWriter, Scheduler};
use forebay_load::Rng;
use redb::{Builder, Database, ReadableDatabase, StorageBackend, TableDefinition};

use crate::engine::{
    BATCH_ROWS, CACHE_LEN, Copied, Engine, Failure, ROWS, Store, checked, row, row_bytes,
};
use crate::mode::Mode;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
const READ: &str = "read";
const WRITERS_MAX: u64 = 16;
/// Rows of a writer's database.
const WRITER_ROWS: u64 = 4000;

pub(crate) struct Redb;

struct Open {
    read: Database,
    written: Vec<Database>,
}

impl Engine for Redb {
    fn fill(&self, base: &Path) -> Result<(), Failure> {
        let rng = &mut Rng::new(0, &[]);
        insert(&builder().create(base.join(READ))?, 0..ROWS, rng)?;
        for number in 0..WRITERS_MAX {
            let database = builder().create(base.join(number.to_string()))?;
            insert(&database, 0..WRITER_ROWS, rng)?;
        }
        Ok(())
    }

    fn open(&self, dir: &Path, mode: &Mode, writers: u64) -> Result<Box<dyn Store>, Failure> {
        let database = |name: &str| database(&dir.join(name), mode);
        let written = (0..writers).map(|number| database(&number.to_string()));
        Ok(Box::new(Open { written: written.collect::<Result<_, _>>()?, read: database(READ)? }))
    }

    fn how_to_copy(&self, path: &Path, writers: u64) -> Copied {
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        match number {
            None => Copied::Linked,
            Some(number) if number < writers => Copied::Whole,
            Some(_) => Copied::Left,
        }
    }

    fn live_bytes(&self, writers: u64) -> u64 {
        (ROWS + writers * WRITER_ROWS) * row_bytes()
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_LEN as usize);
    builder
}

fn database(path: &Path, mode: &Mode) -> Result<Database, Failure> {
    let Some(classes) = &mode.classes else { return Ok(builder().open(path)?) };
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let file = classes.commits.buffered_writer(file)?;
    let backend = Backend { scheduler: classes.scheduler.clone(), file };
    Ok(builder().create_with_backend(backend)?)
}

impl Store for Open {
    fn read(&self, row: u64) -> Result<(), Failure> {
        let row = self.read.begin_read()?.open_table(TABLE)?.get(row)?;
        checked(row.as_ref().map(|row| row.value()))
    }

    fn write(&self, writer: u64, rng: &mut Rng) -> Result<u64, Failure> {
        let rows: Vec<u64> = (0..BATCH_ROWS).map(|_| rng.below(WRITER_ROWS)).collect();
        insert(&self.written[writer as usize], rows, rng)?;
        Ok(BATCH_ROWS * row_bytes())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

fn insert(
    database: &Database,
    rows: impl IntoIterator<Item = u64>,
    rng: &mut Rng,
) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for number in rows {
            table.insert(number, row(rng).as_slice())?;
        }
    }
    Ok(transaction.commit()?)
}

/// A file through the page cache, whose reads are of the class of the thread that calls redb.
struct Backend {
    scheduler: Scheduler,
    file: BufferedWriter<File>,
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.get_ref().metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = self.scheduler.current_class().read_at(self.file.get_ref(), out, offset)?;
        if read < out.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.get_ref().set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}
