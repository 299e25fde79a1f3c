//! Tasks that wait for a time and not for a turn.

use std::task::Waker;

use forebay_core::Time;

use super::wakeups::{Wakeup, Wakeups};

/// A few tasks, each under a number of its own.
pub(super) struct Alarms {
    set: Vec<(u64, Time, Waker)>,
    next: u64,
}

impl Alarms {
    pub(super) const fn new() -> Self {
        Self { set: Vec::new(), next: 0 }
    }

    /// Wakes `waker` at `at`. Returns the number to take it back with.
    pub(super) fn set(&mut self, at: Time, waker: Waker) -> u64 {
        self.next += 1;
        self.set.push((self.next, at, waker));
        self.next
    }

    /// Takes an alarm back, if it has not gone off.
    pub(super) fn take_back(&mut self, number: u64) -> Option<Waker> {
        let at = self.set.iter().position(|(other, ..)| *other == number)?;
        Some(self.set.swap_remove(at).2)
    }

    /// When the next one goes off.
    pub(super) fn earliest(&self) -> Option<Time> {
        self.set.iter().map(|(_, at, _)| *at).min()
    }

    /// Moves those that are due into `wakeups`, as far as there is room.
    pub(super) fn go_off(&mut self, now: Time, wakeups: &mut Wakeups) {
        let mut at = 0;
        while let Some((_, due, _)) = self.set.get(at) {
            if *due > now {
                at += 1;
            } else if wakeups.has_room() {
                wakeups.push(Wakeup::Task(self.set.swap_remove(at).2));
            } else {
                return;
            }
        }
    }
}
