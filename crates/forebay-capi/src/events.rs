//! Queues of events, each with a descriptor that is readable while the queue is not empty.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay::Permit;
use rustix::event::{EventfdFlags, eventfd};

use crate::admit::forebay_permit;
use crate::call::{call_done, note};
use crate::code::{FOREBAY_E_AGAIN, FOREBAY_E_HANDLE, FOREBAY_OK};
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct};
use crate::object::{Kind, Shared, get, insert, insert_permit};

/// A request that waits for a permit. Freeing its handle cancels the request, without an event.
pub type forebay_waiting = u64;
/// A queue of events, for any number of waiting requests of any number of schedulers.
pub type forebay_events = u64;

/// How a request ended.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_event {
    /// `sizeof(struct forebay_event)`.
    pub size: usize,
    /// The number that was passed with the request.
    pub user_data: u64,
    /// The handle of the request, which is already freed.
    pub waiting: forebay_waiting,
    /// The permit; 0 after an error.
    pub permit: forebay_permit,
    /// `FOREBAY_OK`, or an error, whose message is the last error of the calling thread.
    pub code: c_int,
}

// SAFETY: it begins with its size, and is of numbers.
unsafe impl SizedStruct for forebay_event {
    const SIZE_MIN: usize = 40;
}

/// Nothing once its handle was freed: requests that still wait have the queue as well.
pub(crate) struct Events(Mutex<Option<Queue>>);

struct Queue {
    /// An eventfd whose counter is 1 while there are events, and else 0.
    fd: OwnedFd,
    ready: VecDeque<Ready>,
}

impl Shared for Events {
    const KIND: Kind = Kind::Events;
}

/// How a request ended. Its permit ends with it, unless somebody hears of it.
pub(crate) struct Ready {
    pub(crate) waiting: u64,
    pub(crate) user_data: u64,
    pub(crate) result: Result<Permit, Failure>,
}

impl Events {
    /// Puts in how a request ended, if it does so now. That is asked under the lock: who finds that it
    /// has ended finds the event as well. What nobody will hear of is returned.
    pub(crate) fn push(&self, event: Ready, ends: impl FnOnce() -> bool) -> Option<Ready> {
        let mut queue = self.lock();
        let ends = ends();
        let Some(Queue { fd, ready }) = queue.as_mut().filter(|_| ends) else { return Some(event) };
        if ready.is_empty() {
            // The counter is 0 now, so this write cannot block.
            let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
        }
        ready.push_back(event);
        None
    }

    fn pop(&self) -> Option<Ready> {
        let mut queue = self.lock();
        let Queue { fd, ready } = queue.as_mut()?;
        let first = ready.pop_front();
        if first.is_some() && ready.is_empty() {
            let _ = rustix::io::read(fd, &mut [0; 8]);
        }
        first
    }

    /// Its handle was freed: permits in it end.
    pub(crate) fn close(&self) {
        let queue = self.lock().take();
        // without the lock: whom that gives room may have an event for the same queue
        drop(queue);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a queue of events. When it is freed, the permits in it end, and so does each permit that is
/// later granted to one of its waiting requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_events_new(events: *mut forebay_events) -> c_int {
    call_done(|| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(events, "events")? };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(std::io::Error::from)?;
        out.fill(insert(Events(Mutex::new(Some(Queue { fd, ready: VecDeque::new() })))))
    })
}

/// Gets the descriptor that is readable while the queue has events, for `poll` and `epoll`. The program
/// must not read or close it. The library closes it when the queue is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_events_fd(events: forebay_events, fd: *mut c_int) -> c_int {
    call_done(|| {
        let events = get::<Events>(events)?;
        // SAFETY: the caller's.
        let out = unsafe { Out::new(fd, "fd")? };
        let freed = || Failure::new(FOREBAY_E_HANDLE, "the queue of events was freed");
        out.set(events.lock().as_ref().ok_or_else(freed)?.fd.as_raw_fd());
        Ok(())
    })
}

/// Takes the first event out of the queue. Returns `FOREBAY_E_AGAIN` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_events_next(
    events: forebay_events,
    event: *mut forebay_event,
) -> c_int {
    call_done(|| {
        let events = get::<Events>(events)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(event, "event")? };
        let none =
            || Failure::new(FOREBAY_E_AGAIN, "no event: wait until the descriptor is readable");
        let Ready { waiting, user_data, result } = events.pop().ok_or_else(none)?;
        let (code, permit) = match result.and_then(insert_permit) {
            Ok(permit) => (FOREBAY_OK, permit),
            Err(failure) => (note(failure), 0),
        };
        out.set(&forebay_event { size: 0, user_data, waiting, permit, code });
        Ok(())
    })
}
