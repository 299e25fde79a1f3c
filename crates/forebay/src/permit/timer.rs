//! The threads that own the deadline when only tasks wait.

use std::io;
use std::sync::{Arc, Weak};

use forebay_core::Time;

use super::disk_group::DiskGroup;
use super::parking::Parking;
use super::queue::PermitQueue;
use super::state::{DeadlineOwner, State, TIMERS_MAX};
use super::wakeups::Wakeups;
use crate::sys::library_thread;
use crate::sys::signals;
use crate::sys::sync::Builder;

/// Starts a timer thread, if there is none. It sleeps while it does not own the deadline, and ends
/// with the group.
pub(super) fn start(state: &mut State, group: &Arc<DiskGroup>) -> io::Result<()> {
    if state.timers_started == 0 { start_another(state, group) } else { Ok(()) }
}

fn start_another(state: &mut State, group: &Arc<DiskGroup>) -> io::Result<()> {
    let group = Arc::downgrade(group);
    let builder = Builder::new().name(String::from("forebay-timer"));
    signals::blocked(|| builder.spawn(move || run(&group)))?;
    state.timers_started += 1;
    Ok(())
}

fn run(group: &Weak<DiskGroup>) {
    library_thread::begin();
    let parking = Arc::new(Parking::of_this_thread());
    let mut number = None;
    loop {
        let Some(group) = group.upgrade() else { return };
        let Some(permits) = group.permits_if_used() else { return };
        let clock = permits.clock;
        let until = permits.poll_as_timer(&group, &parking, &mut number);
        drop(group);
        parking.park(clock, until);
    }
}

impl PermitQueue {
    /// Grants all requests that may be dispatched. Returns the time until which the timer thread at
    /// `parking` sleeps. The first call adds the thread to the list of timers.
    fn poll_as_timer(
        &self,
        group: &Arc<DiskGroup>,
        parking: &Arc<Parking>,
        number: &mut Option<usize>,
    ) -> Option<Time> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let number = *number.get_or_insert_with(|| {
            state.timers.push(Arc::clone(parking));
            state.timers.len() - 1
        });
        state.grant_ready(now, None, &mut wakeups);
        let me = (DeadlineOwner::Timer(number), &**parking);
        let until = state.arm_deadline_between(now, me, &mut wakeups);
        // All timer threads run wakers of others, which may block. Another one has to own the
        // deadline.
        if state.timers.iter().all(|timer| timer.is_away()) && state.timers_started < TIMERS_MAX {
            // If it cannot be started, this thread owns the deadline again when it is back.
            let _ = start_another(&mut state, group);
        }
        self.release(group, state, now, &mut wakeups);
        parking.come_back();
        group.report_overdue(now);
        until
    }
}

impl Drop for PermitQueue {
    fn drop(&mut self) {
        let timers = std::mem::take(&mut self.lock().timers);
        timers.iter().for_each(|timer| timer.unpark());
    }
}
