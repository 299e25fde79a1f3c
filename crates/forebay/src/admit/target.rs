//! Permits for requests on the disk of a file or descriptor.

use std::fmt;
use std::fs;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_core::Access;

use super::future::AdmitFuture;
use crate::direct_file::file_number;
use crate::permit::{AdmitError, Permit, ThreadPermit};
use crate::{Class, DirectFile, Disk, File, Scheduler};

/// A target of a permit: a [`File`], a [`Disk`], or a descriptor.
///
/// A [`File`] knows its disk. A descriptor is looked up each time with a system call, and its mount
/// once a second. For many requests, look up the disk once with [`Scheduler::disk_of_file`].
pub trait OnDisk: Sealed {}

mod sealed {
    use std::io;

    use crate::{Disk, Scheduler};

    pub trait Sealed {
        /// The disk of the target.
        fn disk_in(&self, scheduler: &Scheduler) -> io::Result<Disk>;

        /// The number of the file to which offsets belong: a
        /// [`Place::file`](forebay_core::Place::file).
        fn file_number(&self) -> io::Result<u64>;
    }
}

use self::sealed::Sealed;

impl OnDisk for Disk {}
impl Sealed for Disk {
    fn disk_in(&self, _: &Scheduler) -> io::Result<Disk> {
        Ok(self.clone())
    }

    fn file_number(&self) -> io::Result<u64> {
        Ok(0)
    }
}

impl OnDisk for File {}
impl Sealed for File {
    fn disk_in(&self, _: &Scheduler) -> io::Result<Disk> {
        Ok(self.disk().clone())
    }

    fn file_number(&self) -> io::Result<u64> {
        Ok(self.direct_file().number())
    }
}

/// Descriptors, whose disk is looked up.
macro_rules! looked_up {
    ($($descriptor:ty),+) => {
        $(
            impl OnDisk for $descriptor {}
            impl Sealed for $descriptor {
                fn disk_in(&self, scheduler: &Scheduler) -> io::Result<Disk> {
                    scheduler.disk_of_file(self.as_fd())
                }

                fn file_number(&self) -> io::Result<u64> {
                    file_number(self.as_fd())
                }
            }
        )+
    };
}

looked_up!(fs::File, OwnedFd, BorrowedFd<'_>, DirectFile);

/// A permit on the disk of its target, which is not requested yet: see [`Class::admit_for`]. A
/// thread [waits](Self::wait) for it, or a task awaits it. Large requests are done [in
/// parts](Self::in_parts), or [refused](Self::in_one_part).
#[must_use = "it asks for the permit when it is waited for"]
#[derive(Debug)]
pub struct AdmitFor {
    /// The class, on the disk of the target.
    pub(super) class: Result<Class, AdmitError>,
    pub(super) access: Access,
    pub(super) len: u64,
}

impl AdmitFor {
    /// [`Class::admit`].
    ///
    /// # Errors
    /// As for [`Class::admit`]; also that of the look-up.
    pub fn wait(self) -> Result<ThreadPermit<'static>, AdmitError> {
        Ok(self.class?.admit_access(self.access, self.len, None)?.into_owned())
    }

    /// [`Self::wait`] for required I/O.
    pub(crate) fn wait_required(self) -> Result<Permit, AdmitError> {
        self.class?.admit_required(self.access, self.len)
    }

    /// [`Class::admit_timeout`].
    ///
    /// # Errors
    /// As for [`Class::admit_timeout`]; also that of the look-up.
    pub fn wait_timeout(self, timeout: Duration) -> Result<ThreadPermit<'static>, AdmitError> {
        Ok(self.class?.admit_access(self.access, self.len, Some(timeout))?.into_owned())
    }

    /// [`Class::try_admit`].
    ///
    /// # Errors
    /// As for [`Class::try_admit`]; also that of the look-up.
    pub fn try_now(self) -> Result<Option<ThreadPermit<'static>>, AdmitError> {
        Ok(self.class?.try_admit_access(self.access, self.len)?.map(ThreadPermit::into_owned))
    }
}

/// [`Class::admit_async`].
impl IntoFuture for AdmitFor {
    type Output = Result<Permit, AdmitError>;
    type IntoFuture = AdmitForFuture;

    fn into_future(self) -> AdmitForFuture {
        let Self { class, access, len } = self;
        AdmitForFuture(class.map(|class| AdmitFuture::new(class, access, len)).map_err(Some))
    }
}

/// An [`AdmitFor`] that a task waits for.
///
/// Cancel safety: as for [`AdmitFuture`].
#[must_use = "it asks for the permit when it is polled"]
pub struct AdmitForFuture(Result<AdmitFuture, Option<AdmitError>>);

impl Future for AdmitForFuture {
    type Output = Result<Permit, AdmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(admit) => Pin::new(admit).poll(context),
            // As with other futures, nothing follows the answer.
            Err(error) => error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error))),
        }
    }
}

impl fmt::Debug for AdmitForFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdmitForFuture").field(&self.0).finish()
    }
}

impl Class {
    /// A permit for `op` of `len` bytes on the disk of `target`, whatever the [disk](Class::on) of
    /// this class is: [`Class::admit`] for a program with several disks.
    ///
    /// For a hard disk, with [`seeks`](crate::properties::Measured::seeks) in its properties, pass
    /// the offset: `Op::Write.at(offset)`, in bytes from the beginning of the target. A request
    /// that continues where another one of the same [`Op`](crate::Op) ends is charged only for its
    /// bytes, if the other one is not complete or was the last that was sent to the disk. For a
    /// descriptor that costs one more system call.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # std::fs::write(dir.path().join("table"), [7; 4096])?;
    /// use std::os::unix::fs::FileExt;
    ///
    /// use forebay::{Op, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let queries = scheduler.add_class("queries", 1000)?;
    /// let table = std::fs::File::open(dir.path().join("table"))?;
    /// let mut page = [0; 4096];
    ///
    /// let permit = queries.admit_for(&table, Op::Read, 4096).wait()?;
    /// let result = table.read_exact_at(&mut page, 0);
    /// permit.complete(&result);
    ///
    /// # let task = async {
    /// // in a task
    /// let permit = queries.admit_for(&table, Op::Read, 4096).await?;
    /// # drop(permit);
    /// # Ok::<_, forebay::AdmitError>(())
    /// # };
    /// # smol::block_on(task)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn admit_for(&self, target: &impl OnDisk, access: impl Into<Access>, len: u64) -> AdmitFor {
        let mut access = access.into();
        let disk = target.disk_in(&Scheduler::of(&self.scheduler));
        let disk = disk.and_then(|disk| {
            if access.place.is_some() {
                access = access.of(target.file_number()?);
            }
            Ok(disk)
        });
        let class = disk.map_err(AdmitError::Lookup).and_then(|disk| self.on_disk_of(&disk));
        AdmitFor { class, access, len }
    }

    fn on_disk_of(&self, disk: &Disk) -> Result<Self, AdmitError> {
        self.on(disk).map_err(|_| AdmitError::OtherScheduler {
            class: self.name().to_owned(),
            disk: disk.name().to_owned(),
        })
    }
}

impl Scheduler {
    /// [`Class::admit_for`] in the [current class](Self::current_class).
    pub fn admit_for(&self, target: &impl OnDisk, access: impl Into<Access>, len: u64) -> AdmitFor {
        self.current_class().admit_for(target, access, len)
    }
}
