//! The thread that keeps time when all who wait are tasks.

use std::io;
use std::sync::{Arc, Weak};

use forebay_core::Time;

use super::disk_group::DiskGroup;
use super::parking::Parking;
use super::queue::PermitQueue;
use super::state::{State, Timekeeper};
use super::wakeups::Wakeups;
use crate::group::GroupState;
use crate::sys::library_thread;
use crate::sys::sync::Builder;

/// Starts the timer thread, if there is none. It sleeps unless it keeps time,
/// and ends with the group.
pub(super) fn start(state: &mut State, group: &Arc<DiskGroup>) -> io::Result<()> {
    if !state.has_timer {
        let group = Arc::downgrade(group);
        let builder = Builder::new().name(String::from("forebay-timer"));
        builder.spawn(move || run(&group))?;
        state.has_timer = true;
    }
    Ok(())
}

fn run(group: &Weak<DiskGroup>) {
    library_thread::begin();
    let parking = Arc::new(Parking::of_this_thread());
    loop {
        let Some(group) = group.upgrade() else { return };
        let Some(permits) = group.permits_if_used() else { return };
        let clock = permits.clock;
        let until = permits.poll_as_timer(&group, &parking);
        drop(group);
        parking.park(clock, until);
    }
}

impl PermitQueue {
    /// Grants what may go; returns until when the timer thread sleeps, whose
    /// place is `parking`.
    fn poll_as_timer(&self, group: &GroupState, parking: &Arc<Parking>) -> Option<Time> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        state.timer.get_or_insert_with(|| Arc::clone(parking));
        state.settle(now, None, &mut wakeups);
        let until = state.keep_time_between(now, (Timekeeper::Timer, parking), &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        parking.come_back();
        group.tell_overdue(now);
        until
    }
}

impl Drop for PermitQueue {
    fn drop(&mut self) {
        if let Some(timer) = self.lock().timer.take() {
            timer.unpark();
        }
    }
}
