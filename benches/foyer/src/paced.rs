//! The way in: an I/O engine of foyer whose reads and writes have permits.

use std::fs::File;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;

use forebay::{Class, Op};
use foyer::{Error, IoEngine, IoEngineConfig, IoHandle, Result, Spawner};
use foyer_storage::io::bytes::{IoB, IoBuf, IoBufMut};
use foyer_storage::io::device::Partition;
use foyer_storage::io::engine::IoEngineBuildContext;

/// Bytes that have a permit together, at most.
const PART: usize = 128 << 10;

type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The classes of what is looked up and of what is inserted.
#[derive(Clone, Debug)]
pub struct Paced {
    pub hits: Class,
    pub inserts: Class,
}

#[derive(Debug)]
struct Engine {
    classes: Paced,
    spawner: Spawner,
}

impl IoEngineConfig for Paced {
    fn build(self: Box<Self>, context: IoEngineBuildContext) -> Answer<Result<Arc<dyn IoEngine>>> {
        let engine = Engine { classes: *self, spawner: context.spawner };
        Box::pin(async { Ok(Arc::new(engine) as Arc<dyn IoEngine>) })
    }
}

impl From<Paced> for Box<dyn IoEngineConfig> {
    fn from(paced: Paced) -> Self {
        Box::new(paced)
    }
}

/// Where bytes are: foyer keeps the buffer until the request has ended.
#[derive(Clone, Copy)]
struct Place {
    memory: usize,
    len: usize,
    file: RawFd,
    offset: u64,
}

impl Place {
    /// Reads or writes one part.
    fn carry_out(self, op: Op) -> io::Result<()> {
        // SAFETY: foyer keeps its file open as long as its engine, and nobody closes it here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(self.file) });
        // SAFETY: the part is within foyer's buffer, which nobody else uses until it is returned.
        let part = unsafe { std::slice::from_raw_parts_mut(self.memory as *mut u8, self.len) };
        match op {
            Op::Read => file.read_exact_at(part, self.offset),
            _ => file.write_all_at(part, self.offset),
        }
    }
}

async fn in_parts(class: Class, op: Op, all: Place, spawner: Spawner) -> Result<()> {
    for from in (0..all.len).step_by(PART) {
        let part = Place {
            memory: all.memory + from,
            len: PART.min(all.len - from),
            offset: all.offset + from as u64,
            ..all
        };
        let permit = class.admit_async(op, part.len as u64).await;
        let permit = permit.map_err(|refused| Error::io_error(refused.into()))?;
        let carry_out = move || {
            let result = part.carry_out(op);
            permit.complete(&result);
            result
        };
        spawner.spawn_blocking(carry_out).await?.map_err(Error::io_error)?;
    }
    Ok(())
}

impl IoEngine for Engine {
    fn read(&self, buffer: Box<dyn IoBufMut>, partition: &dyn Partition, offset: u64) -> IoHandle {
        let ((file, offset), (memory, len)) = (partition.translate(offset), buffer.as_raw_parts());
        let all = Place { memory: memory as usize, len, file: file.0, offset };
        let work = in_parts(self.classes.hits.clone(), Op::Read, all, self.spawner.clone());
        let answer: Answer<(Box<dyn IoB>, Result<()>)> = Box::pin(async {
            let result = work.await;
            (buffer.into_iob(), result)
        });
        answer.into()
    }

    fn write(&self, buffer: Box<dyn IoBuf>, partition: &dyn Partition, offset: u64) -> IoHandle {
        let ((file, offset), (memory, len)) = (partition.translate(offset), buffer.as_raw_parts());
        let all = Place { memory: memory as usize, len, file: file.0, offset };
        let work = in_parts(self.classes.inserts.clone(), Op::Write, all, self.spawner.clone());
        let answer: Answer<(Box<dyn IoB>, Result<()>)> = Box::pin(async {
            let result = work.await;
            (buffer.into_iob(), result)
        });
        answer.into()
    }
}
