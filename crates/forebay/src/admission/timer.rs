//! The thread that keeps time when all who wait are tasks.

use std::io;
use std::sync::{Arc, Weak};

use forebay_core::Time;

use super::Admission;
use super::parking::Parking;
use super::state::{Keeper, State};
use super::wakeups::Wakeups;
use crate::disk::DiskGroup;
use crate::sync::Builder;

/// Starts the timer thread, if there is none. It sleeps unless it keeps time,
/// and ends with the group.
pub(super) fn start(state: &mut State, group: &Arc<DiskGroup>) -> io::Result<()> {
    if state.timer.is_none() {
        let group = Arc::downgrade(group);
        let builder = Builder::new().name(String::from("forebay-timer"));
        let handle = builder.spawn(move || run(&group))?;
        state.timer = Some(Arc::new(Parking::of(handle.thread().clone())));
    }
    Ok(())
}

fn run(group: &Weak<DiskGroup>) {
    loop {
        let Some(group) = group.upgrade() else { return };
        let Some(admission) = group.admission_if_used() else { return };
        let (now, until) = admission.poll_as_timer(&group);
        drop(group);
        Parking::park(now, until);
    }
}

impl Admission {
    /// Grants what may go; returns until when the timer thread sleeps.
    fn poll_as_timer(&self, group: &DiskGroup) -> (Time, Option<Time>) {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        state.settle(now, None, &mut wakeups);
        let until = state.keep_time(now, Keeper::Timer, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        group.tell_overdue(now);
        (now, until)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(timer) = self.lock().timer.take() {
            timer.unpark();
        }
    }
}
