//! Grants for those who hold one already: past queue and window, at the pace.

use std::sync::Arc;
use std::task::Waker;

use forebay_core::{NotNow, Ticket, Time};

use super::parking::sleep;
use super::state::{Keeper, State};
use super::wakeups::Wakeups;
use super::{Admission, Asked, NoGrant, timer};
use crate::disk::DiskGroup;

impl Admission {
    /// A grant past the window, for which the thread sleeps until `deadline`
    /// at most.
    pub(super) fn admit_past_window(
        &self,
        mut now: Time,
        asked: Asked,
        deadline: Option<Time>,
    ) -> Result<(Ticket, Time), NoGrant> {
        loop {
            let until = match pass(&mut self.lock(), now, asked) {
                Ok(ticket) => return Ok((ticket, now)),
                Err(NotNow::Refused(error)) => return Err(NoGrant::Refused(error)),
                Err(NotNow::Until(until)) => until,
            };
            let until = deadline.map_or(until, |deadline| until.min(deadline));
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Err(NoGrant::TimedOut);
            }
            sleep(self.clock, Some(until));
            now = self.clock.now();
        }
    }

    /// A grant past the window if there can be one now; else `waker` is woken
    /// when there may be one, under the number returned.
    pub(super) fn poll_past_window(
        &self,
        group: &Arc<DiskGroup>,
        asked: Asked,
        waker: Waker,
    ) -> Result<Result<Ticket, u64>, NoGrant> {
        let now = self.clock.now();
        let mut wakeups = Wakeups::new();
        let mut state = self.lock();
        let until = match pass(&mut state, now, asked) {
            Ok(ticket) => return Ok(Ok(ticket)),
            Err(NotNow::Refused(error)) => return Err(NoGrant::Refused(error)),
            Err(NotNow::Until(until)) => until,
        };
        timer::start(&mut state, group).map_err(NoGrant::Timer)?;
        let number = state.alarms.set(until, waker);
        state.keep_time(now, Keeper::Nobody, &mut wakeups);
        self.release(group, state, now, &mut wakeups);
        Ok(Err(number))
    }

    /// Forgets who was to be woken under a number.
    pub(super) fn take_back_alarm(&self, number: u64) {
        // What it returns is dropped after the lock is released.
        let _waker = self.lock().alarms.take_back(number);
    }
}

fn pass(state: &mut State, now: Time, asked: Asked) -> Result<Ticket, NotNow> {
    let Asked { class, op, len } = asked;
    state.queue.dispatch_past_window(now, class, op, len)
}
