//! Permits for event loops: requests that wait without blocking a thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use forebay::{AdmitError, AdmitFuture, Permit};

use crate::admit::{forebay_permit, op};
use crate::call::{call, note};
use crate::class::forebay_class;
use crate::code::{FOREBAY_OK, FOREBAY_PENDING};
use crate::events::{Events, Ready, forebay_events, forebay_waiting};
use crate::failure::Failure;
use crate::memory::Out;
use crate::object::{Kind, Shared, get, insert_permit, insert_shared, take, with_class};

/// Receives the result of a request: `FOREBAY_OK` and a granted permit, or an error whose message is the
/// last error of the calling thread. It is called once, by a thread of the library or by a thread that
/// completes a permit, which holds no lock. It may call all functions. One that would wait for the thread
/// that runs it returns `FOREBAY_E_DEADLOCK`. Requests that it gives room are called back after it.
pub type forebay_admit_callback_fn =
    Option<unsafe extern "C" fn(context: *mut c_void, code: c_int, permit: forebay_permit)>;

/// How the end of a request is reported.
pub(crate) enum Report {
    Callback { callback: unsafe extern "C" fn(*mut c_void, c_int, u64), context: *mut c_void },
    Event { events: Arc<Events>, user_data: u64 },
}

// SAFETY: the header asks for a function and a context that any thread may use.
unsafe impl Send for Report {}
// SAFETY: as above.
unsafe impl Sync for Report {}

/// A waiting request.
pub(crate) struct Waiting {
    handle: AtomicU64,
    report: Report,
    state: Mutex<State>,
    /// The number of wake-ups since the future was last polled.
    wakes: AtomicU32,
}

impl Shared for Waiting {
    const KIND: Kind = Kind::Waiting;
}

enum State {
    Waits(AdmitFuture),
    /// A thread polls the future without the lock, because wakers may call back into this request.
    Polled,
    Ended,
}

impl Waiting {
    /// Cancels the request.
    pub(crate) fn cancel(&self) {
        let state = std::mem::replace(&mut *self.lock(), State::Ended);
        drop(state);
    }

    /// Polls the request, and again for each wake-up during a poll. Only one thread polls at a time.
    fn poll_until_quiet(self: &Arc<Self>) -> Option<Result<Permit, AdmitError>> {
        if self.wakes.fetch_add(1, Ordering::AcqRel) > 0 {
            return None;
        }
        let waker = Waker::from(Arc::clone(self));
        loop {
            let seen = self.wakes.load(Ordering::Acquire);
            if let Poll::Ready(result) = self.poll(&waker) {
                return Some(result);
            }
            let (acquire, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
            if self.wakes.compare_exchange(seen, 0, acquire, relaxed).is_ok() {
                return None;
            }
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<Permit, AdmitError>> {
        let state = std::mem::replace(&mut *self.lock(), State::Polled);
        let State::Waits(mut future) = state else {
            *self.lock() = State::Ended;
            return Poll::Pending;
        };
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(waker));
        let mut state = self.lock();
        match &*state {
            State::Polled if polled.is_pending() => *state = State::Waits(future),
            // It was cancelled during the poll, so the future is dropped here, without the lock.
            _ => {
                *state = State::Ended;
                drop(state);
                drop(future);
            }
        }
        polled
    }

    /// Reports the result. If the request was cancelled, the permit ends instead.
    fn finish(self: Arc<Self>, result: Result<Permit, AdmitError>) {
        let (waiting, result) =
            (self.handle.load(Ordering::Acquire), result.map_err(Failure::from));
        let Report::Event { events, user_data } = &self.report else {
            return in_turn(Box::new(move || self.call_back(waiting, result)));
        };
        let event = Ready { waiting, user_data: *user_data, result };
        if let Some(unheard) = events.push(event, || take(waiting).is_ok()) {
            in_turn(Box::new(|| drop(unheard)));
        }
    }

    fn call_back(&self, waiting: u64, result: Result<Permit, Failure>) {
        let Report::Callback { callback, context } = &self.report else { return };
        if take(waiting).is_err() {
            return;
        }
        let (code, permit) = match result.and_then(insert_permit) {
            Ok(permit) => (FOREBAY_OK, permit),
            Err(failure) => (note(failure), 0),
        };
        // SAFETY: as it was promised for `forebay_admit_callback`.
        unsafe { callback(*context, code, permit) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        if let Some(result) = self.poll_until_quiet() {
            self.finish(result);
        }
    }
}

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// What waits for the end of the work that the thread is in. It is there also while the thread's
    /// other variables are dropped.
    static LATER: ManuallyDrop<RefCell<Option<VecDeque<Work>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Does `work`, which may give room back, and so lead here again: that is done after it. Thousands of
/// requests, each granted by the end of the one before, would need the whole stack otherwise.
fn in_turn(work: Work) {
    let mut next = LATER.with(|later| match &mut *later.borrow_mut() {
        Some(later) => {
            later.push_back(work);
            None
        }
        none => {
            *none = Some(VecDeque::new());
            Some(work)
        }
    });
    while let Some(work) = next {
        let _ = catch_unwind(AssertUnwindSafe(work));
        next = LATER.with(|later| {
            let mut later = later.borrow_mut();
            let next = later.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *later = None;
            }
            next
        });
    }
}

/// The requested permit: a class, an operation and its length in bytes.
type Demand = (u64, c_int, u64);

/// Requests a permit. If it has to wait, its end is reported later.
///
/// # Safety
/// Both pointers are null, or the caller may write handles to them.
unsafe fn ask(
    (class, op, len): Demand,
    report: Report,
    permit: *mut forebay_permit,
    waiting: *mut forebay_waiting,
) -> Result<c_int, Failure> {
    with_class(class, |class| {
        // SAFETY: the caller's.
        let (granted, waits) =
            unsafe { (Out::new(permit, "permit")?, Out::new(waiting, "waiting")?) };
        let future = class.admit_async(self::op(op)?, len);
        let state = Mutex::new(State::Waits(future));
        let (handle, wakes) = (AtomicU64::new(0), AtomicU32::new(0));
        let waiting = Arc::new(Waiting { handle, report, state, wakes });
        let handle = insert_shared(Arc::clone(&waiting))?;
        waiting.handle.store(handle, Ordering::Release);
        // The end may be reported before this returns.
        granted.set(0);
        waits.set(handle);
        let Some(result) = waiting.poll_until_quiet() else { return Ok(FOREBAY_PENDING) };
        take(handle)?;
        waits.set(0);
        granted.set(insert_permit(result?)?);
        Ok(FOREBAY_OK)
    })
}

/// `forebay_admit` without waiting. If the permit is granted at once, it returns `FOREBAY_OK` and the
/// permit, and does not call `callback`. Otherwise it returns `FOREBAY_PENDING` and a handle of the
/// waiting request, and `callback` is called later, possibly before this function returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit_callback(
    class: forebay_class,
    op: c_int,
    len: u64,
    callback: forebay_admit_callback_fn,
    context: *mut c_void,
    permit: *mut forebay_permit,
    waiting: *mut forebay_waiting,
) -> c_int {
    call(|| {
        let request = (class, op, len);
        // A wrong handle is reported before a null callback.
        let Some(callback) = callback else {
            let refuse = |_: &_| Err(Failure::invalid("`callback` is a null pointer"));
            return with_class(class, refuse);
        };
        // SAFETY: the caller's.
        unsafe { ask(request, Report::Callback { callback, context }, permit, waiting) }
    })
}

/// `forebay_admit_callback` that puts an event with the number `user_data` into `events`, instead of
/// calling a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_admit_event(
    class: forebay_class,
    op: c_int,
    len: u64,
    events: forebay_events,
    user_data: u64,
    permit: *mut forebay_permit,
    waiting: *mut forebay_waiting,
) -> c_int {
    call(|| {
        let events = get::<Events>(events)?;
        // SAFETY: the caller's.
        unsafe { ask((class, op, len), Report::Event { events, user_data }, permit, waiting) }
    })
}
