//! Writes data before a run reads it: what was never written is read without the disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay::engine::{BackendChoice, Completion, Engine, EngineConfig, Operation};
use forebay::{AlignedBuf, DirectFile};
use forebay_load::Rng;
use indicatif::ProgressBar;

use super::data::{BUFFER_ALIGNMENT, MIB};
use crate::bench::progress::fill_progress;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Writes in flight.
const DEPTH: u32 = 8;
const PAGE: usize = 4096;
/// How long a Ctrl-C may go unnoticed.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// A part of a file that is to be written; whole MiB.
pub(super) struct UnwrittenExtent {
    pub(super) file: DirectFile,
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) name: Arc<Path>,
}

/// Writes all of `extents`, `bytes` in all. They are asked for one by one, and their files are
/// closed when they are done.
pub(super) fn fill(
    mut extents: impl Iterator<Item = Result<UnwrittenExtent, Failure>>,
    bytes: u64,
    backend: BackendChoice,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if bytes == 0 {
        // Empty files are made by being asked for.
        return extents.try_for_each(|extent| extent.map(drop));
    }
    let failed = |error: io::Error| Failure::Run(format!("cannot write data files: {error}"));
    let config = EngineConfig { backend, depth_max: DEPTH, ..EngineConfig::default() };
    let mut filler = Filler {
        engine: Engine::new(&config).map_err(failed)?,
        buffers: buffers().map_err(failed)?,
        names: vec![None; DEPTH as usize],
        pages: 0,
    };
    let written = fill_progress(bytes);
    for extent in extents {
        let extent = extent?;
        for mib in 0..extent.len.div_ceil(MIB) {
            while filler.buffers.is_empty() {
                filler.collect(&written, interrupt)?;
            }
            filler.write(&extent, extent.start + mib * MIB)?;
        }
    }
    while filler.engine.in_flight() > 0 {
        filler.collect(&written, interrupt)?;
    }
    Ok(())
}

struct Filler {
    engine: Engine,
    /// Those not in flight, with their tokens.
    buffers: Vec<(u64, AlignedBuf)>,
    /// Where each buffer is being written, by its token.
    names: Vec<Option<Arc<Path>>>,
    /// Pages written so far.
    pages: u64,
}

impl Filler {
    fn write(&mut self, extent: &UnwrittenExtent, offset: u64) -> Result<(), Failure> {
        let Some((token, mut buffer)) = self.buffers.pop() else { return Ok(()) };
        for page in buffer.chunks_mut(PAGE) {
            // No two pages alike, for disks that store such only once.
            self.pages += 1;
            if let Some(stamp) = page.first_chunk_mut() {
                *stamp = self.pages.to_ne_bytes();
            }
        }
        if let Some(name) = self.names.get_mut(token as usize) {
            *name = Some(Arc::clone(&extent.name));
        }
        let write = Operation::write(extent.file.clone(), offset, buffer);
        self.engine.push(token, write).map_err(|(error, _)| cannot_write(&extent.name, &error))
    }

    fn collect(&mut self, written: &ProgressBar, interrupt: &Interrupt) -> Result<(), Failure> {
        interrupt.check()?;
        self.engine
            .submit_and_wait(Some(WAIT_MAX))
            .map_err(|error| Failure::Run(format!("cannot write data files: {error}")))?;
        while let Some(Completion { token, result, operation }) = self.engine.pop() {
            let name = self.names.get_mut(token as usize).and_then(Option::take);
            let name = name.unwrap_or_else(|| Path::new("a data file").into());
            match result {
                Ok(bytes) if bytes as u64 == MIB => written.inc(MIB),
                Ok(_) => return Err(cannot_write(&name, &"no space left?")),
                Err(error) => return Err(cannot_write(&name, &error)),
            }
            self.buffers.extend(operation.into_buffer().map(|buffer| (token, buffer)));
        }
        Ok(())
    }
}

/// One for each write in flight, full of what does not compress.
fn buffers() -> io::Result<Vec<(u64, AlignedBuf)>> {
    let mut rng = Rng::new(0, &[]);
    (0..u64::from(DEPTH))
        .map(|token| {
            let mut buffer = AlignedBuf::new(MIB as usize, BUFFER_ALIGNMENT)?;
            fill_randomly(&mut buffer, &mut rng);
            Ok((token, buffer))
        })
        .collect()
}

/// Fills `bytes` with what does not compress.
pub(in crate::bench) fn fill_randomly(bytes: &mut [u8], rng: &mut Rng) {
    for chunk in bytes.chunks_mut(size_of::<u64>()) {
        chunk.copy_from_slice(&rng.next_u64().to_ne_bytes()[..chunk.len()]);
    }
}

fn cannot_write(name: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Run(format!("cannot write `{}`: {error}", name.display()))
}
