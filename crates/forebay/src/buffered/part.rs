//! The parts of dirty files: each asks for its permit, and holds it until the disk has the part.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use forebay_core::Op;

use super::asked_parts::AskedPart;
use super::dirt::PartRange;
use super::dirty_file::DirtyFile;
use super::failure::Failure;
use crate::Class;
use crate::admit::AdmitFuture;
use crate::dirty_limits::HandOver;
use crate::permit::{AdmitError, Permit};
use crate::sys::lock::Lock;
use crate::sys::waker::{put_off, wake_after, with_own};

/// A part that was asked for.
struct Part {
    file: Arc<DirtyFile>,
    part: PartRange,
    /// A thread that holds a permit waits for it.
    holder: bool,
    /// Until it has its permit.
    admit: Lock<Option<AdmitFuture>>,
}

/// Asks permits for the next parts of a file. With `holder`, a thread that holds a permit waits for
/// all parts so far.
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
        self.hand_over_listed();
        ask(&self, false);
    }
}

impl Part {
    fn ask(file: &Arc<DirtyFile>, part: PartRange, holder: bool) {
        let admit = Lock::new(Some(admit(file, &part, holder)));
        let part = Arc::new(Self { file: Arc::clone(file), part, holder, admit });
        if !part.file.asked.add(&part) {
            return part.cancel();
        }
        // It stands in the order from now on, not when a thread is free.
        if let Poll::Ready(admitted) = part.poll() {
            part.file.class.disk.workers.run({
                let part = Arc::clone(&part);
                move || part.carry_out(admitted)
            });
        }
    }

    /// In the middle of a [`wake_after`]: a task that is granted a permit alongside it may wait for
    /// this part.
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
            // The kernel or a flush writes it. It is counted no longer, or writes would wait for
            // ever.
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

impl AskedPart for Part {
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

    fn ask_again(self: Arc<Self>) {
        let mut asking = self.admit.lock();
        if asking.is_none() {
            return;
        }
        let before = asking.replace(admit(&self.file, &self.part, self.holder));
        drop(asking);
        wake_after(|| drop(before));
        // As if it were granted: a thread asks, and looks.
        self.wake();
    }
}

/// It is granted: a thread looks, which can do what blocks.
impl Wake for Part {
    fn wake(self: Arc<Self>) {
        let disk = Arc::clone(&self.file.class.disk);
        disk.workers.run(move || {
            // Who carries a part out wakes nobody before that: another thread does.
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
