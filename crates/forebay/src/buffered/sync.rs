//! Flushes, which write back the dirty bytes first.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use forebay_core::Op;

use super::dirty_file::{DirtyFile, part_len};
use super::dirty_pieces::{DirtyPiece, dirty_pages, dirty_pieces};
use super::part;
use super::rewritten::Rewritten;
use super::waiter::Waiter;
use crate::admit::AdmitFuture;
use crate::direct_file::file_number;
use crate::failures::FileFailures;
use crate::page_cache::{HeldFile, file_len, write_back};
use crate::permit::{AdmitError, Permit, block_on, holds_permit_now};
use crate::sys::library_thread::WaitsForItself;
use crate::{Class, Scheduler};

/// The metadata of a file that a flush makes durable with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metadata {
    /// Only the metadata that is needed to read the data back: `fdatasync`.
    Needed,
    /// All metadata: `fsync`.
    All,
}

/// Writes back all dirty bytes of a file in parts, scheduled in its class, and then flushes it.
/// `open` is the writer's file.
///
/// Cancel safety: the parts that were handed over are still written back. Bytes that fail stay
/// failed, and the next flush reports them.
pub(super) async fn sync(
    open: BorrowedFd<'_>,
    file: &Arc<DirtyFile>,
    metadata: Metadata,
    holder: bool,
) -> io::Result<()> {
    let (class, rewritten) = (file.asking(), Rewritten::look(&file.failures, open));
    let permit = permit_after_dirt(open, file, holder, true).await?;
    let flushed = Arc::clone(file);
    let call = move || {
        let call = flushed.failures.begin_flush();
        let result = flushed.held.call(move |fd| flush(fd, metadata).map(|()| true));
        permit.complete(&result);
        call.end_and_settle(&result);
        if result.is_ok() {
            rewritten.clear(&flushed.failures, &class, &flushed.held);
        }
        result.map(drop)
    };
    let result = file.class.disk.workers.call(call).await;
    file.failure_for_flush(open).and(result)
}

/// [`sync`] with a flush by the caller. With `looks`, bytes that other writers have made dirty are
/// written back too.
pub(super) fn sync_with(
    open: BorrowedFd<'_>,
    file: &Arc<DirtyFile>,
    looks: bool,
    flush: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let (class, rewritten) = (file.asking(), Rewritten::look(&file.failures, open));
    let permit = wait(permit_after_dirt(open, file, holds_permit_now(), looks))?;
    let call = file.failures.begin_flush();
    let result = flush().map(|()| Some(true));
    permit.complete(&result);
    call.end_and_settle(&result);
    if result.is_ok() {
        rewritten.clear(&file.failures, &class, &file.held);
    }
    let result = result.map(drop);
    file.failure_for_flush(open).and(result)
}

/// A permit for the flush, after all dirty bytes of the file are written back.
async fn permit_after_dirt(
    open: BorrowedFd<'_>,
    file: &Arc<DirtyFile>,
    holder: bool,
    looks: bool,
) -> io::Result<Permit> {
    let request = || {
        let mut class = file.asking();
        class.holder |= holder;
        AdmitFuture::required(class, Op::Flush.into(), 0)
    };
    let last = file.hand_over_all();
    part::ask(file, holder);
    // Earlier parts may wait for room in the window that this thread's permit takes. While a
    // request of a thread with a permit waits, the window does not apply.
    let mut admit = holder.then(request);
    let early = match &mut admit {
        Some(admit) => poll_once(Pin::new(admit)).await,
        None => None,
    };
    wait_ended(file, last).await;
    // Bytes that were not written through this writer, as far as the kernel shows them.
    let others = if looks { dirty_pieces(open, file.dirt.part_len()) } else { Vec::new() };
    if !others.is_empty() {
        others.iter().for_each(|piece| file.failures.saw(&dirty_pages(open, &piece.range)));
        let last = file.dirt.hand_over_others(others);
        part::ask(file, holder);
        wait_ended(file, last).await;
    }
    Ok(match early {
        Some(admitted) => admitted?,
        None => admit.unwrap_or_else(request).await?,
    })
}

/// Waits for `future` on the calling thread.
pub(super) fn wait<R>(future: impl Future<Output = io::Result<R>>) -> io::Result<R> {
    block_on(future).unwrap_or_else(|| Err(WaitsForItself.into()))
}

/// Polls `admit` once, which queues the request. Returns its result if it is ready.
async fn poll_once(mut admit: Pin<&mut AdmitFuture>) -> Option<Result<Permit, AdmitError>> {
    poll_fn(|context| match admit.as_mut().poll(context) {
        Poll::Ready(admitted) => Poll::Ready(Some(admitted)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Waits until all parts up to this number have ended.
async fn wait_ended(file: &DirtyFile, number: u64) {
    let waiter = Waiter::of(&file.dirt);
    poll_fn(|context| waiter.poll_ended(number, context.waker())).await;
}

fn flush(file: impl AsFd, metadata: Metadata) -> io::Result<()> {
    let result = match metadata {
        Metadata::Needed => rustix::fs::fdatasync(file),
        Metadata::All => rustix::fs::fsync(file),
    };
    Ok(result?)
}

impl Class {
    /// Makes all writes to `file` durable, with the metadata that is needed to read them back
    /// (`fdatasync`). First it writes back the dirty bytes in parts of up to 1 MiB, each with a
    /// permit, then it flushes. It does not matter how the bytes were written. A plain `fdatasync`
    /// with a permit for the flush would instead write the whole file at once, unscheduled.
    ///
    /// A large page that is partly dirty costs as much as the whole page, because the kernel does
    /// not report its parts.
    ///
    /// Dirty bytes are found with `cachestat` (Linux 6.5, not on an overlay). Without it only the
    /// flush has a permit. A [`BufferedWriter`](crate::BufferedWriter) does not need `cachestat`.
    ///
    /// # Errors
    /// [`WriteBackError`](crate::WriteBackError) while bytes of the file are failed. These are
    /// bytes that a flush of the scheduler found dirty and that could not be written back, or the
    /// whole file if the bytes of an error are unknown. They stay failed until they were written
    /// again, their pages were dirty when a flush began, and that flush succeeded. Bytes of a
    /// [`BufferedWriter`](crate::BufferedWriter) stay failed until a writer wrote them again. If
    /// the kernel does not show dirty pages (`cachestat`), rewrite failed bytes through a writer.
    /// Bytes beyond the end of the file no longer count.
    ///
    /// Those of `fdatasync(2)`, including earlier write-back, once for each open file description.
    /// Those of [`Class::admit`].
    pub fn sync_data(&self, file: impl AsFd) -> io::Result<()> {
        self.sync(file.as_fd(), Metadata::Needed)
    }

    /// [`Class::sync_data`] with all attributes (`fsync`).
    ///
    /// # Errors
    /// As for [`Class::sync_data`].
    pub fn sync_all(&self, file: impl AsFd) -> io::Result<()> {
        self.sync(file.as_fd(), Metadata::All)
    }

    fn sync(&self, file: BorrowedFd<'_>, metadata: Metadata) -> io::Result<()> {
        let disk = Scheduler::of(&self.scheduler).disk_of_file(file)?;
        let class = self.on(&disk).map_err(io::Error::other)?;
        let Some(failures) = disk.record.failed_files.open(file)? else {
            // A directory has no bytes.
            let permit = class.admit_required(Op::Flush.into(), 0)?;
            let result = flush(file, metadata);
            permit.complete(&result);
            return result;
        };
        let reported = failures.report_before(file);
        let rewritten = Rewritten::look(&failures, file);
        let number = file_number(file)?;
        let result = class.sync_file((file, number), &failures, metadata);
        if result.is_ok() && !rewritten.is_empty() {
            let held = HeldFile::new(file, number, disk.record.held_files.clone());
            rewritten.clear(&failures, &class, &held);
        }
        failures.check(file_len(file)?).and(result).and(reported)
    }

    /// [`Self::sync`] of a file with its number, in the class on its disk.
    fn sync_file(
        &self,
        (file, number): (BorrowedFd<'_>, u64),
        failures: &FileFailures,
        metadata: Metadata,
    ) -> io::Result<()> {
        let pieces = dirty_pieces(file, part_len(self));
        pieces.iter().for_each(|piece| failures.saw(&dirty_pages(file, &piece.range)));
        for DirtyPiece { range, dirty } in pieces {
            let access = Op::Write.at(range.start).of(number);
            let permit = self.admit_required(access, dirty)?;
            let call = failures.begin_part(&range);
            let result = write_back(file, range.start, range.end - range.start);
            permit.complete(&result);
            let result = result.map(Some);
            call.end(&result);
            result?;
        }
        let permit = self.admit_required(Op::Flush.into(), 0)?;
        let call = failures.begin_flush();
        let result = flush(file, metadata);
        permit.complete(&result);
        let result = result.map(|()| Some(true));
        call.end_and_settle(&result);
        result.map(drop)
    }
}
