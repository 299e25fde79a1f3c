//! Reading an object, in the turns of a class.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use forebay::Class;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, try_unfold};
use object_store::Result;

use crate::error;
use crate::jobs::Jobs;

/// The most that is read with a permit.
const READ_MAX: usize = 256 << 10;

/// The most that a stream has in memory.
const CHUNK_MAX: u64 = 1 << 20;

/// An object that is open.
pub(crate) struct Reader {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    pub(crate) class: Class,
}

impl Reader {
    /// A range of the object, a chunk after the other as each is asked for.
    pub(crate) fn stream(
        self: Arc<Self>,
        jobs: Jobs,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<Bytes>> {
        let next = move |Range { start, end }: Range<u64>| {
            let (reader, jobs) = (Arc::clone(&self), jobs.clone());
            async move {
                if start >= end {
                    return Ok(None);
                }
                let chunk_end = end.min(start + CHUNK_MAX);
                let chunk = jobs.run(move || reader.read(start..chunk_end)).await?;
                Ok(Some((chunk, chunk_end..end)))
            }
        };
        try_unfold(range, next).boxed()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut data = vec![0; usize::try_from(range.end - range.start).unwrap_or(usize::MAX)];
        let offsets = range.step_by(READ_MAX);
        for (part, offset) in data.chunks_mut(READ_MAX).zip(offsets) {
            let read = self.class.read_at(&self.file, part, offset);
            if read.map_err(|e| error::of(&self.path, e))? < part.len() {
                return Err(error::of(&self.path, ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(data.into())
    }
}
