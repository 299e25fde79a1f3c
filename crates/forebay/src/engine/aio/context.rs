//! The system calls of linux-aio.

use std::io;
use std::ptr;

use libc::{c_long, c_ulong};
use rustix::io::Errno;

use super::control_block::ControlBlock;

/// What the kernel says of a request that has ended (`io_event`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    /// That of the request's [`ControlBlock`].
    pub(super) data: u64,
    control_block: u64,
    /// Bytes transferred, or the number of an error, negated.
    pub(super) result: i64,
    result2: i64,
}

/// An `aio_context_t`: what the kernel has of the requests of one engine.
#[derive(Debug)]
pub(super) struct Context {
    id: c_ulong,
}

impl Context {
    /// One for `requests` requests at a time, or somewhat more.
    ///
    /// # Errors
    /// `EAGAIN` when `fs.aio-max-nr` is used up; what a kernel without the calls
    /// or a filter of system calls answers to any of them.
    pub(super) fn new(requests: u32) -> io::Result<Self> {
        let mut id: c_ulong = 0;
        // SAFETY: the kernel writes the name of the context to a number of ours.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, requests, &raw mut id) };
        outcome(made)?;
        let context = Self { id };
        // Shows at once whether the others are forbidden.
        // SAFETY: there is no request.
        unsafe { context.submit(&mut []) }?;
        context.completed(&mut [])?;
        Ok(context)
    }

    /// Hands requests to the kernel, the first of them first; how many it took.
    /// An error is that of the first.
    ///
    /// # Safety
    ///
    /// The pointers lead to control blocks. What those name is there as
    /// [`ControlBlock::new`] says, and nobody else's.
    pub(super) unsafe fn submit(&self, blocks: &mut [*mut ControlBlock]) -> Result<usize, Errno> {
        let (count, blocks) = (blocks.len(), blocks.as_mut_ptr());
        // SAFETY: there are `count` pointers, to what the caller promises.
        outcome(unsafe { libc::syscall(libc::SYS_io_submit, self.id, count as c_long, blocks) })
    }

    /// Takes what the kernel has completed, without waiting; how much that is.
    pub(super) fn completed(&self, events: &mut [Event]) -> Result<usize, Errno> {
        let (count, events) = (events.len() as c_long, events.as_mut_ptr());
        let (least, no_wait) = (0 as c_long, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: there is room for `count` events, and the time is one of ours.
        outcome(unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                least,
                count,
                events,
                ptr::from_ref(&no_wait),
            )
        })
    }

    /// Leaves the context to the kernel, which has requests: to destroy it
    /// would be to wait for them without end.
    pub(super) const fn abandon(&mut self) {
        self.id = NONE;
    }
}

/// No context has this name.
const NONE: c_ulong = 0;

impl Drop for Context {
    /// Waits for what the kernel still has.
    fn drop(&mut self) {
        // SAFETY: nobody uses the context after this; of none the kernel knows nothing.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

fn outcome(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
