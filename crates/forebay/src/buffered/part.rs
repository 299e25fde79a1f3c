//! The parts of dirty files. Each asks for a permit, and holds it until the part is on the disk.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use forebay_core::Op;

use super::active_parts::ActivePart;
use super::dirt::PartRange;
use super::dirty_file::DirtyFile;
use super::failure::Failure;
use crate::Class;
use crate::admit::AdmitFuture;
use crate::dirty_limits::HandOver;
use crate::permit::{AdmitError, Permit};
use crate::sys::lock::Lock;
use crate::sys::waker::{put_off, wake_after, with_own};

/// A part that asks for a permit or holds one.
struct Part {
    file: Arc<DirtyFile>,
    part: PartRange,
    /// A thread with a permit waits for this part.
    holder: bool,
    /// The request for a permit, until it is granted.
    admit: Lock<Option<AdmitFuture>>,
}

/// Asks for the permits of the next parts of a file. With `holder`, a thread with a permit waits
/// for all parts so far.
pub(super) fn ask(file: &Arc<DirtyFile>, holder: bool) {
    if holder {
        file.dirt.hurry_for_holder();
    }
    ask_next(file);
}

fn ask_next(file: &Arc<DirtyFile>) {
    wake_after(|| {
        while let Some((part, holder)) = file.dirt.next_part() {
            Part::ask(file, part, holder);
        }
    });
}

/// The request for a part, in the class that the file has now.
fn admit(file: &DirtyFile, part: &PartRange, holder: bool) -> AdmitFuture {
    let class = Class { holder, ..file.asking() };
    AdmitFuture::required(class, file.access(part.range.start), part.dirty)
}

impl HandOver for DirtyFile {
    fn hand_over(self: Arc<Self>) {
        self.hand_over_for_room();
        ask(&self, false);
    }
}

impl Part {
    fn ask(file: &Arc<DirtyFile>, part: PartRange, holder: bool) {
        let admit = Lock::new(Some(admit(file, &part, holder)));
        let part = Arc::new(Self { file: Arc::clone(file), part, holder, admit });
        if !part.file.active.add(&part) {
            return part.cancel();
        }
        // The request is queued now, not only when a thread is free.
        if let Poll::Ready(admitted) = part.poll() {
            part.file.class.disk.workers.run({
                let part = Arc::clone(&part);
                move || part.carry_out(admitted)
            });
        }
    }

    /// Polls the request within [`wake_after`], because a task that gets a permit at the same time
    /// may wait for this part.
    fn poll(self: &Arc<Self>) -> Poll<Result<Permit, AdmitError>> {
        let waker = Waker::from(Arc::clone(self));
        let mut admit = self.admit.lock();
        let Some(future) = admit.as_mut() else { return Poll::Pending };
        let polled = with_own(&waker, |context| Pin::new(future).poll(context));
        if polled.is_ready() {
            *admit = None;
        }
        polled
    }

    fn carry_out(&self, admitted: Result<Permit, AdmitError>) {
        let file = &self.file;
        match admitted {
            Ok(permit) => {
                let result = self.write_back(&permit);
                wake_after(|| {
                    permit.complete(&result);
                    file.dirt.end_part(&self.part, None);
                    ask_next(file);
                });
            }
            // The kernel or a flush writes the part. It no longer counts, because writes would wait
            // for ever.
            Err(error) => wake_after(|| {
                file.count_left(self.part.dirty);
                file.dirt.end_part(&self.part, Some(Failure::of_admission(error)));
                ask_next(file);
            }),
        }
    }

    fn write_back(&self, permit: &Permit) -> io::Result<()> {
        let file = &self.file;
        let (of, range) = (Arc::clone(file), self.part.range.clone());
        let call = file.failures.begin_part(&range);
        let mut written = file.held.call(move |fd| of.path.write_range(fd, &range));
        call.end(&written);
        if matches!(written, Ok(Some(false))) {
            let class = file.asking().nested_in(permit);
            let _permit = class.admit_required(Op::Flush.into(), 0);
            let call = file.failures.begin_flush();
            written = file.held.call(|fd| Ok(rustix::fs::fdatasync(fd).map(|()| true)?));
            call.end(&written);
        }
        if written?.is_none() {
            file.count_left(self.part.dirty);
        }
        Ok(())
    }
}

impl ActivePart for Part {
    fn cancel(&self) {
        let admit = self.admit.lock().take();
        if admit.is_some() {
            wake_after(|| {
                drop(admit);
                self.file.count_left(self.part.dirty);
                self.file.dirt.end_part(&self.part, None);
            });
        }
    }

    fn restart(self: Arc<Self>) {
        let mut asking = self.admit.lock();
        if asking.is_none() {
            return;
        }
        let before = asking.replace(admit(&self.file, &self.part, self.holder));
        drop(asking);
        wake_after(|| drop(before));
        // Wakes a thread as if the permit were granted. The thread asks again and polls.
        self.wake();
    }
}

/// The permit is granted. A thread that may block does the write-back.
impl Wake for Part {
    fn wake(self: Arc<Self>) {
        let disk = Arc::clone(&self.file.class.disk);
        disk.workers.run(move || {
            // A thread that writes back a part wakes no other tasks before that; another thread
            // does.
            let (admitted, wakers) = put_off(|| self.poll());
            if let Poll::Ready(admitted) = admitted {
                if !wakers.is_empty() {
                    self.file.class.disk.workers.run(|| drop(wakers));
                }
                self.carry_out(admitted);
            }
        });
    }
}
