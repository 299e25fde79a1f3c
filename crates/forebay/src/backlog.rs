//! Shares that follow a backlog.

use crate::{Class, ClassError, SHARES_MAX};

/// The most points of a [`BacklogController`].
const POINTS_MAX: usize = 16;

/// Why a controller could not be made.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BacklogError {
    /// The number of points is not 2 to 16.
    #[error("{count} points: give 2 to {POINTS_MAX}, from backlog 0 to backlog 1")]
    Count {
        /// The number of points.
        count: usize,
    },
    /// The backlogs do not rise from 0 to 1.
    #[error("backlog {backlog} is out of order: let them rise from 0 to 1")]
    Backlog {
        /// The first backlog that is out of order or range.
        backlog: f64,
    },
    /// Shares are outside 1 to [`SHARES_MAX`].
    #[error("{shares} shares: give 1 to {SHARES_MAX}")]
    Shares {
        /// These shares.
        shares: u32,
    },
}

forebay_core::debug_as_display!(BacklogError);

/// Derives shares from a backlog, so that background work such as compaction or flushing gets as
/// much of the disk as its backlog demands, and no more.
///
/// The backlog is the waiting work as a fraction of the most that may wait: 0 is none, 1 is the
/// limit at which writers would have to stop. Shares are interpolated linearly between the given
/// points. If shares rise with the backlog, it settles where work is done as fast as it comes in.
///
/// ```
/// use forebay::BacklogController;
///
/// // hardly anything until half full, then ever more
/// let controller = BacklogController::new(&[(0.0, 20), (0.5, 100), (1.0, 1000)])?;
/// assert_eq!(controller.shares(0.75), 550);
/// # Ok::<(), forebay::BacklogError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BacklogController {
    points: Vec<(f64, u32)>,
}

impl BacklogController {
    /// A controller through `points`, each a backlog and its shares.
    ///
    /// # Errors
    /// Fewer than 2 or more than 16 points, backlogs that do not rise from 0
    /// to 1, or shares outside 1 to [`SHARES_MAX`].
    pub fn new(points: &[(f64, u32)]) -> Result<Self, BacklogError> {
        let count = points.len();
        if !(2..=POINTS_MAX).contains(&count) {
            return Err(BacklogError::Count { count });
        }
        for (index, &(backlog, shares)) in points.iter().enumerate() {
            let in_order = match index {
                0 => backlog == 0.0,
                _ => backlog > points[index - 1].0 && (index + 1 < count || backlog == 1.0),
            };
            if !in_order {
                return Err(BacklogError::Backlog { backlog });
            }
            if !(1..=SHARES_MAX).contains(&shares) {
                return Err(BacklogError::Shares { shares });
            }
        }
        Ok(Self { points: points.to_vec() })
    }

    /// The shares for a backlog. A backlog below 0 counts as 0. A backlog above 1, or NaN, counts
    /// as 1.
    pub fn shares(&self, backlog: f64) -> u32 {
        let backlog = if backlog.is_nan() { 1.0 } else { backlog.clamp(0.0, 1.0) };
        let above = self.points.iter().position(|point| backlog <= point.0);
        match above {
            Some(0) | None => self.points[0].1,
            Some(above) => {
                let ((b0, s0), (b1, s1)) = (self.points[above - 1], self.points[above]);
                let part = (backlog - b0) / (b1 - b0);
                // It is between two shares, so it fits.
                (f64::from(s0) + part * (f64::from(s1) - f64::from(s0))).round() as u32
            }
        }
    }

    /// Sets the shares of `class` for a backlog. Call it when the backlog has changed noticeably,
    /// or about every 100 ms.
    ///
    /// # Errors
    /// The class was removed.
    pub fn apply(&self, class: &Class, backlog: f64) -> Result<(), ClassError> {
        let shares = self.shares(backlog);
        if class.shares() == shares {
            return Ok(());
        }
        class.set_shares(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use forebay_core::{
        ClassId, Control, DiskModel, DiskRates, GroupConfig, IoGroup, IoQueue, Op, Outcome, Policy,
        Time,
    };

    #[test]
    fn shares_follow_straight_lines_between_the_points() {
        let controller = BacklogController::new(&[(0.0, 10), (0.5, 110), (1.0, 1110)]).unwrap();
        let at = |backlog| controller.shares(backlog);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(at), [10, 60, 110, 610, 1110]);
        assert_eq!([-3.0, 7.0, f64::INFINITY, f64::NAN].map(at), [10, 1110, 1110, 1110]);
    }

    #[test]
    fn points_must_make_a_line_from_0_to_1() {
        let refused = |points: &[(f64, u32)]| BacklogController::new(points).unwrap_err();
        assert_eq!(refused(&[(0.0, 1)]), BacklogError::Count { count: 1 });
        assert_eq!(refused(&[(0.1, 1), (1.0, 2)]), BacklogError::Backlog { backlog: 0.1 });
        assert_eq!(refused(&[(0.0, 1), (0.9, 2)]), BacklogError::Backlog { backlog: 0.9 });
        let back = [(0.0, 1), (0.5, 2), (0.5, 3), (1.0, 4)];
        assert_eq!(refused(&back), BacklogError::Backlog { backlog: 0.5 });
        assert_eq!(refused(&[(0.0, 0), (1.0, 2)]), BacklogError::Shares { shares: 0 });
        assert!(matches!(refused(&[(0.0, 1), (f64::NAN, 2)]), BacklogError::Backlog { .. }));
    }

    const MILLI: u64 = 1_000_000;
    /// The bytes that a flush writes at a time.
    const FLUSH_LEN: u64 = 128 * 1024;
    /// The memory in which new data waits to be flushed.
    const BACKLOG_MAX: u64 = 64 << 20;

    /// A disk of 100 MB/s that queries keep busy, and a class that flushes.
    struct Store {
        queue: IoQueue,
        queries: ClassId,
        flush: ClassId,
        group: IoGroup,
        backlog: u64,
        backlog_max: u64,
        queries_done: u64,
        /// The waiting requests of queries and of the flush.
        queued: [u64; 2],
    }

    impl Store {
        fn new(flush_shares: u32) -> Self {
            let model = DiskModel::from_rates(&DiskRates {
                read_iops: 10_000,
                write_iops: 10_000,
                read_bandwidth: 100_000_000,
                write_bandwidth: 100_000_000,
            })
            .unwrap();
            // Its disk does at once all that it gets, so the figures are its speed.
            let control = Control::Rates;
            let config = GroupConfig { control, ..GroupConfig::new(model, Policy::pace_window()) };
            let group = IoGroup::new(config);
            let queries = group.add_class(None, 1000).unwrap();
            let flush = group.add_class(None, flush_shares).unwrap();
            let queue = group.join().unwrap();
            Self {
                queue,
                queries,
                flush,
                group,
                backlog: 0,
                backlog_max: 0,
                queries_done: 0,
                queued: [0, 0],
            }
        }

        /// Runs from `from` to `to`, in milliseconds, with `incoming` bytes per second of new data.
        /// The controller is applied every 100 ms.
        fn run(
            &mut self,
            from: u64,
            to: u64,
            incoming: u64,
            controller: Option<&BacklogController>,
        ) {
            for milli in from..to {
                self.backlog += incoming / 1000;
                self.step(Time::from_nanos((1_000 + milli) * MILLI));
                self.backlog_max = self.backlog_max.max(self.backlog);
                if milli.is_multiple_of(100)
                    && let Some(controller) = controller
                {
                    let backlog = self.backlog as f64 / BACKLOG_MAX as f64;
                    self.group.set_shares(self.flush, controller.shares(backlog)).unwrap();
                }
            }
        }
    }

    impl Store {
        /// Fills the queue, lets the disk do its work, and notes the results.
        fn step(&mut self, now: Time) {
            while self.queued[0] < 32 {
                self.queue.enqueue(now, self.queries, Op::Read, 4096).unwrap();
                self.queued[0] += 1;
            }
            while self.backlog >= (self.queued[1] + 1) * FLUSH_LEN && self.queued[1] < 8 {
                self.queue.enqueue(now, self.flush, Op::Write, FLUSH_LEN).unwrap();
                self.queued[1] += 1;
            }
            while let Some(ticket) = self.queue.poll_dispatch(now) {
                self.queue.complete(now, ticket, Outcome::Done).unwrap();
            }
            let left = |class| self.queue.class(class).map_or(0, |c| u64::from(c.queued));
            let left = [left(self.queries), left(self.flush)];
            self.queries_done += self.queued[0] - left[0];
            self.backlog -= (self.queued[1] - left[1]) * FLUSH_LEN;
            self.queued = left;
        }
    }

    #[test]
    fn a_backlog_settles_where_work_is_done_as_fast_as_it_comes() {
        let controller = BacklogController::new(&[(0.0, 10), (1.0, 2000)]).unwrap();
        let mut store = Store::new(10);
        // 40 MB/s come in: two fifths of the disk, so 667 shares next to 1000.
        store.run(0, 30_000, 40_000_000, Some(&controller));
        let settled = store.backlog as f64 / BACKLOG_MAX as f64;
        assert!((0.28..=0.38).contains(&settled), "backlog {settled}");
        assert!(store.backlog_max < BACKLOG_MAX / 2, "{}", store.backlog_max);
        // With half the data the shares fall, and queries get the difference.
        let before = store.queries_done;
        store.run(30_000, 60_000, 20_000_000, Some(&controller));
        let settled = store.backlog as f64 / BACKLOG_MAX as f64;
        assert!((0.09..=0.16).contains(&settled), "backlog {settled}");
        assert!(store.queries_done - before > before, "{before} {}", store.queries_done);
    }

    #[test]
    fn fixed_shares_overflow_where_the_controller_does_not() {
        let mut store = Store::new(100);
        store.run(0, 30_000, 40_000_000, None);
        assert!(store.backlog > BACKLOG_MAX, "{}", store.backlog);
    }
}
