//! Flushes that come after the dirt they cover.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use forebay_core::Op;

use super::dirty_file::{DirtyFile, part_len};
use super::dirty_pieces::{DirtyPiece, dirty_pieces};
use super::failure::Failure;
use super::part;
use super::waiter::Waiter;
use crate::admit::AdmitFuture;
use crate::direct_file::file_number;
use crate::page_cache::write_back;
use crate::permit::{AdmitError, Permit};
use crate::{Class, Scheduler};

/// Which of the file's metadata is to be durable with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metadata {
    /// What is needed to read the data back: `fdatasync`.
    Needed,
    /// All of it: `fsync`.
    All,
}

/// Writes back all that is dirty of the file, which its writer has `open`, in parts of its class, and
/// flushes.
///
/// Cancel safety: what was handed over is written back all the same, and an error of the flush is
/// the next one's to tell.
pub(super) async fn sync(
    open: BorrowedFd<'_>,
    file: &Arc<DirtyFile>,
    metadata: Metadata,
    holder: bool,
) -> io::Result<()> {
    let mut class = file.class.clone();
    class.holder |= holder;
    let mut admit = pin!(AdmitFuture::required(class, Op::Flush.into(), 0));
    let last = file.hand_over_all();
    part::ask(file, holder);
    // Parts that were asked for before may wait for room that the holder has: while a request of
    // the holder waits, the window binds nobody.
    let early = if holder { poll_once(admit.as_mut()).await } else { None };
    wait_ended(file, last).await;
    // What was not written through the writer, as far as it can be seen.
    let others = dirty_pieces(open, file.dirt.part_len());
    if !others.is_empty() {
        let last = file.dirt.hand_over_others(others);
        part::ask(file, holder);
        wait_ended(file, last).await;
    }
    let permit = match early {
        Some(admitted) => admitted?,
        None => admit.await?,
    };
    let flushed = Arc::clone(file);
    let call = move || {
        let result = flushed.held.call(move |fd| flush(fd, metadata)).map(drop);
        permit.complete(&result);
        // The kernel tells it once: where nobody waits any more the next flush does.
        result.inspect_err(|error| flushed.dirt.keep_failure(Failure::of_flush(error)))
    };
    let result = file.class.disk.workers.call(call).await;
    // An error that this description was told of before is not told again.
    file.dirt.take_failure().and(result)
}

/// What `admit` resolves to if that is at once. It has asked then.
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
    /// Makes what was written to `file`, in whatever way, durable, with what is needed to read it
    /// back (`fdatasync`), at the price of what is dirty: first the dirt, in parts of up to 1 MiB
    /// that each have their turn, then the flush. For an engine that flushes by itself and has a
    /// permit for the flush alone: that would do the writes of a whole file at once, in no class.
    ///
    /// What is dirty is seen with `cachestat` (Linux 6.5, not on an overlay); where it is not, the
    /// flush alone has a permit. A [`BufferedWriter`](crate::BufferedWriter) knows without.
    ///
    /// # Errors
    /// Those of `fdatasync(2)`, also of writeback before, once for each open file description;
    /// those of [`Class::admit`].
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
        let number = file_number(file)?;
        for DirtyPiece { range, dirty } in dirty_pieces(file, part_len(&class)) {
            let access = Op::Write.at(range.start).of(number);
            let permit = class.admit_required(access, dirty)?;
            let result = write_back(file, range.start, range.end - range.start);
            permit.complete(&result);
            result?;
        }
        let permit = class.admit_required(Op::Flush.into(), 0)?;
        let result = flush(file, metadata);
        permit.complete(&result);
        result
    }
}
