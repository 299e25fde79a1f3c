//! Objects that are written in parts.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use crate::error::generic;
use crate::jobs::Jobs;
use crate::staged::Staged;

/// An upload, which parts may be added to at the same time.
pub(crate) struct Upload {
    shared: Arc<Shared>,
    jobs: Jobs,
    /// Where the next part begins.
    offset: u64,
}

struct Shared {
    /// Until it is finished or aborted.
    staged: RwLock<Option<Staged>>,
    /// Bytes of parts that were written.
    written: AtomicU64,
}

impl Shared {
    /// What the parts are in, once none of them is being written any more.
    fn take(&self) -> Result<Staged> {
        let mut staged = self.staged.write().unwrap_or_else(PoisonError::into_inner);
        staged.take().ok_or_else(over)
    }

    fn write(&self, part: &PutPayload, offset: u64) -> Result<()> {
        let staged = self.staged.read().unwrap_or_else(PoisonError::into_inner);
        staged.as_ref().ok_or_else(over)?.write_at(part, offset)?;
        self.written.fetch_add(part.content_length() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Upload {
    pub(crate) fn new(staged: Staged, jobs: Jobs) -> Self {
        let (staged, written) = (RwLock::new(Some(staged)), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { staged, written }), jobs, offset: 0 }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let offset = self.offset;
        self.offset += part.content_length() as u64;
        let (shared, jobs) = (Arc::clone(&self.shared), self.jobs.clone());
        Box::pin(async move { jobs.run(move || shared.write(&part, offset)).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let (shared, len) = (Arc::clone(&self.shared), self.offset);
        let complete = move || {
            let staged = shared.take()?;
            // a part that failed, or was dropped, would be a hole
            if shared.written.load(Ordering::Relaxed) != len {
                return Err(generic("a part of the upload was not written"));
            }
            staged.publish(false)
        };
        self.jobs.run(complete).await
    }

    async fn abort(&mut self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        self.jobs.run(move || shared.take().map(drop)).await
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("offset", &self.offset).finish_non_exhaustive()
    }
}

fn over() -> object_store::Error {
    generic("the upload is finished or aborted")
}
