//! Waiting for a future on a thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::permit::Parking;
use crate::sys::sync::Clock;

/// What `future` resolves to; the calling thread sleeps meanwhile.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parking = Parking::take_place();
    let waker = Waker::from(Arc::clone(&parking));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        parking.park(Clock::of_process(), None);
    }
}
