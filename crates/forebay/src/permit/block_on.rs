//! Waiting for a future on a thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::parking::Parking;
use crate::sys::library_thread::is_library_thread;
use crate::sys::sync::Clock;
use crate::sys::waker::with_own;

/// Blocks the calling thread until `future` is ready, and returns its output. A thread of the
/// library would wait for itself. There `future` is polled once, and the result is `None` if it is
/// not ready.
pub(crate) fn block_on<R>(future: impl Future<Output = R>) -> Option<R> {
    let mut future = pin!(future);
    let parking = Parking::take_place();
    let waker = Waker::from(Arc::clone(&parking));
    loop {
        let polled = with_own(&waker, |context| future.as_mut().poll(context));
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        if is_library_thread() {
            return None;
        }
        parking.park(Clock::of_process(), None);
    }
}
