//! What can go wrong with a disk.

use std::time::Duration;

use forebay_core::{Time, saturating_nanos};

use crate::disk::Command;

/// Something that goes wrong. Moments count from the epoch of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk goes on at `percent` of its speed: all that it does takes
    /// longer. Its rates, as it states them, stay.
    Slow {
        /// When it begins.
        from: Duration,
        /// When it ends, if it does.
        to: Option<Duration>,
        /// 1 to 99.
        percent: u32,
    },
    /// Commands that touch these bytes take their time, and fail.
    Error(Range),
    /// The disk stands still, with all that is under way; or, with a range,
    /// commands that touch it are not begun.
    Hang {
        /// When it begins.
        from: Duration,
        /// When it ends, if it does; the disk then goes on.
        to: Option<Duration>,
        /// Which commands hang; all without a range.
        range: Option<Range>,
    },
    /// Answers are late by up to so much, at random, and so out of order.
    Reorder {
        /// The longest delay.
        spread: Duration,
    },
}

/// Some of the bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first one.
    pub offset: u64,
    /// How many.
    pub len: u64,
}

impl Range {
    pub(super) fn touches(&self, command: Command) -> bool {
        let end = self.offset.saturating_add(self.len);
        command.len > 0
            && command.offset < end
            && self.offset < command.offset.saturating_add(command.len)
    }
}

/// The moment that is so long after the epoch.
pub(super) fn moment(since_epoch: Duration) -> Time {
    Time::from_nanos(saturating_nanos(since_epoch))
}
