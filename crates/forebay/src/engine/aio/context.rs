//! The system calls of linux-aio.

use std::io;
use std::ptr;

use libc::{c_long, c_ulong};
use rustix::io::Errno;

use super::control_block::ControlBlock;

/// The kernel's report of a request that has ended (`io_event`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    /// The `data` of the request's [`ControlBlock`].
    pub(super) data: u64,
    control_block: u64,
    /// The number of bytes transferred, or a negated error number.
    pub(super) result: i64,
    result2: i64,
}

/// An `aio_context_t`: the kernel's state for the requests of one engine.
#[derive(Debug)]
pub(super) struct Context {
    id: c_ulong,
}

impl Context {
    /// Makes a context for at least `requests` requests at a time.
    ///
    /// # Errors
    /// `EAGAIN` if `fs.aio-max-nr` is used up. Errors of a kernel without the system calls, or of a
    /// filter that forbids one of them.
    pub(super) fn new(requests: u32) -> io::Result<Self> {
        let mut id: c_ulong = 0;
        // SAFETY: the kernel writes the id of the context to `id`, which lives during the call.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, requests, &raw mut id) };
        outcome(made)?;
        let context = Self { id };
        // Shows at once whether the other system calls are forbidden. SAFETY: there is no request.
        unsafe { context.submit(&mut []) }?;
        context.completed(&mut [])?;
        Ok(context)
    }

    /// Submits requests to the kernel, in their order. Returns the number that the kernel accepted.
    /// An error is that of the first request.
    ///
    /// # Safety
    ///
    /// The pointers lead to valid control blocks. The memory that a block points to stays valid as
    /// [`ControlBlock::new`] requires, and nobody else uses it.
    pub(super) unsafe fn submit(&self, blocks: &mut [*mut ControlBlock]) -> Result<usize, Errno> {
        let (count, blocks) = (blocks.len(), blocks.as_mut_ptr());
        // SAFETY: there are `count` pointers, which are valid as the caller guarantees.
        outcome(unsafe { libc::syscall(libc::SYS_io_submit, self.id, count as c_long, blocks) })
    }

    /// Takes completed requests from the kernel, without waiting. Returns their number.
    pub(super) fn completed(&self, events: &mut [Event]) -> Result<usize, Errno> {
        let (count, events) = (events.len() as c_long, events.as_mut_ptr());
        let (least, no_wait) = (0 as c_long, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: there is room for `count` events, and `no_wait` lives during the call.
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

    /// Leaves the context to the kernel while requests hang. Destroying it would wait for them
    /// without end.
    pub(super) const fn abandon(&mut self) {
        self.id = NONE;
    }
}

/// The id of no context.
const NONE: c_ulong = 0;

impl Drop for Context {
    /// Waits for the requests in the kernel.
    fn drop(&mut self) {
        // SAFETY: nobody uses the context after this. The kernel rejects the id [`NONE`].
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

fn outcome(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
