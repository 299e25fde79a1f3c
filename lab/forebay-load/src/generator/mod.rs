//! The load of one job on one shard, as a state machine without clock and without I/O.
//!
//! A [`Generator`] stands for the fibers of the job. Its owner drives it, on a real or a virtual
//! clock, asks [`Generator::poll`] what to do now, does it, and says [`Generator::completed`]
//! when it is done; [`Generator::next_event`] says when to ask again if nothing completes before.
//!
//! In an open loop every request has an *intended* start, fixed in advance by the rate. A fiber
//! whose requests take longer than its gap does not skip the starts it has missed: it sends them
//! as soon as it can, and their latency counts from the intended start. A stall of the disk is
//! thus seen by as many requests as a real client would have sent meanwhile, instead of by one.
//! Starts not made up for by the end of the run are told by [`Generator::overdue`]. Only to repeat
//! what other tools measured are they [skipped](crate::job_file::Rate::skips_missed).

mod fiber;
mod offsets;
mod requests;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::{from_fn, repeat_n};

use forebay_core::{Op, Time, saturating_nanos};

use crate::job_file::{Job, Pace};
use crate::rng::Rng;
use fiber::{Fiber, FlushCounter, Step};
use requests::RequestSource;
pub use requests::Work;

/// Something that a generator wants done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The fiber that does it, to be named to [`Generator::completed`].
    pub fiber: u32,
    /// When it should have begun; its latency counts from here.
    ///
    /// In an open loop the time given by the rate. In a closed loop the time of the poll, and for
    /// a flush between writes the time at which the write before it completed.
    pub intended: Time,
    /// What is to be done.
    pub work: Work,
}

/// The load of one job on one shard.
///
/// A poll takes a time logarithmic in the number of fibers, and nothing is allocated after the
/// generator is made.
#[derive(Clone, Debug)]
pub struct Generator {
    requests: RequestSource,
    flushes: Option<FlushCounter>,
    pace: Pace,
    /// Where requests are in steps, the bytes of a tick's request.
    whole: Option<u32>,
    start: Time,
    fibers: Vec<Fiber>,
    /// The fibers with nothing in flight, by the time at which they go on.
    idle: BinaryHeap<Reverse<(Time, u32)>>,
    burst: Option<Burst>,
    /// Requests that may still be sent.
    left: u64,
    in_flight: u64,
    stopped: bool,
}

/// The requests of one tick that are still to be sent; at least one.
#[derive(Clone, Copy, Debug)]
struct Burst {
    fiber: u32,
    intended: Time,
    remaining: u32,
}

impl Generator {
    /// The load of `job`, number `job_index` of its file, on `shard`, beginning at `start`, or as much
    /// later as the job itself does.
    ///
    /// Offsets and random gaps follow from `seed`, `job_index` and `shard`, and the gaps of a
    /// fiber do not depend on how long its requests take: two runs with one seed are offered the
    /// same load.
    pub fn new(job: &Job, job_index: usize, shard: u32, seed: u64, start: Time) -> Self {
        let start = start.plus_nanos(saturating_nanos(job.start));
        let (job_index, shard) = (job_index as u64, u64::from(shard));
        let fibers: Vec<Fiber> = (0..job.parallelism)
            .map(|fiber| {
                let gaps = Rng::new(seed, &[job_index, shard, u64::from(fiber)]);
                Fiber::new(job, fiber, start, gaps)
            })
            .collect();
        let idle = (0..).zip(&fibers).map(|(index, fiber)| Reverse((fiber.due, index))).collect();
        let mut generator = Self {
            requests: RequestSource::new(job, Rng::new(seed, &[job_index, shard])),
            flushes: job.fsync_every.map(FlushCounter::new),
            pace: job.pace,
            whole: job.steps.as_ref().map(|_| job.reqsize),
            start,
            fibers,
            idle,
            burst: None,
            left: RequestSource::most(job),
            in_flight: 0,
            stopped: false,
        };
        if generator.left == 0 {
            generator.exhaust();
        }
        generator
    }

    /// What is to be done at `now`; to be asked again until it answers `None`.
    ///
    /// `None` can change when the time of [`Generator::next_event`] has come, and after
    /// [`Generator::completed`].
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        if self.burst.is_none() {
            let &Reverse((wake, index)) = self.idle.peek()?;
            if wake > now {
                return None;
            }
            self.idle.pop();
            let fiber = self.fibers.get_mut(index as usize)?;
            if fiber.step == Step::Flush {
                fiber.in_flight += 1;
                self.in_flight += 1;
                return Some(Action { fiber: index, intended: wake, work: Work::FLUSH });
            }
            let (intended, remaining) = fiber.tick(self.pace, now);
            let remaining = if self.whole.is_some() { 1 } else { remaining };
            self.burst = Some(Burst { fiber: index, intended, remaining });
        }
        self.send()
    }

    /// The earliest time at which [`Generator::poll`] has something to do although nothing
    /// completes; in the past if it has something to do already, `None` if it waits for
    /// completions or is done.
    ///
    /// The answer can change with every call of [`Generator::poll`], [`Generator::completed`] and
    /// [`Generator::stop`].
    pub fn next_event(&self) -> Option<Time> {
        let wake = self.idle.peek().map(|&Reverse((wake, _))| wake);
        self.burst.map(|burst| burst.intended).or(wake)
    }

    /// One action of `fiber` has completed at `now`; `ok` tells whether it succeeded.
    ///
    /// Failed writes do not count towards the next flush. A completion of a fiber that has
    /// nothing in flight is ignored.
    pub fn completed(&mut self, now: Time, fiber: u32, ok: bool) {
        let index = fiber;
        let Some(fiber) = self.fibers.get_mut(index as usize) else { return };
        let Some(in_flight) = fiber.in_flight.checked_sub(1) else { return };
        fiber.in_flight = in_flight;
        self.in_flight -= 1;
        match (&mut self.flushes, fiber.step) {
            (Some(flushes), Step::Flush) => flushes.flushed(),
            (Some(flushes), Step::Request) if ok => flushes.written(),
            _ => {}
        }
        let sending = self.burst.is_some_and(|burst| burst.fiber == index);
        if in_flight == 0 && !sending && !self.stopped {
            self.schedule_next(now, index);
        }
    }

    /// Sends nothing from now on.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.idle.clear();
        self.burst = None;
    }

    /// Whether everything is sent and completed: the limit is reached, no file is left to remove,
    /// or the generator was stopped.
    pub fn is_done(&self) -> bool {
        self.in_flight == 0 && self.idle.is_empty() && self.burst.is_none()
    }

    /// Whether a request of the job is a flush that follows others, and not what the job is for.
    pub fn is_flush_between(&self, op: Op) -> bool {
        op == Op::Flush && self.flushes.is_some()
    }

    /// Actions handed out and not completed.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The intended starts before `deadline` of requests that were never sent, because their
    /// fibers were still waiting for earlier ones or nobody polled. To be asked before
    /// [`Generator::stop`].
    ///
    /// A closed loop has none. The time it takes grows with their number.
    pub fn overdue(&self, deadline: Time) -> impl Iterator<Item = Time> {
        let pace = self.pace;
        let batch = match pace {
            Pace::Open(rate) if !self.stopped && !rate.skips_missed => rate.batch.get() as usize,
            _ => 0,
        };
        let begun = self.burst.map(|burst| repeat_n(burst.intended, burst.remaining as usize));
        let fibers = if batch > 0 { self.fibers.as_slice() } else { &[] };
        let ticks = fibers.iter().flat_map(move |fiber| {
            let mut fiber = fiber.clone();
            from_fn(move || (fiber.due < deadline).then(|| fiber.tick(pace, deadline).0))
        });
        let starts = ticks.flat_map(move |tick| repeat_n(tick, batch));
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        begun.into_iter().flatten().chain(starts).take(left)
    }

    /// Sends one request of the burst.
    fn send(&mut self) -> Option<Action> {
        let burst = self.burst.as_mut()?;
        let Burst { fiber, intended, .. } = *burst;
        burst.remaining -= 1;
        if burst.remaining == 0 {
            self.burst = None;
        }
        let work = self.requests.next();
        let of_fiber = self.fibers.get_mut(fiber as usize)?;
        of_fiber.in_flight += 1;
        if let (Some(whole), Pace::Open(rate), Work::Io { len, .. }) = (self.whole, self.pace, work)
        {
            of_fiber.pay(intended, (len, u64::from(whole) * u64::from(rate.batch.get())));
        }
        self.in_flight += 1;
        self.left -= 1;
        if self.left == 0 {
            self.exhaust();
        }
        Some(Action { fiber, intended, work })
    }

    /// Forgets the requests that the limit forbids. FlushCounter may still follow.
    fn exhaust(&mut self) {
        self.burst = None;
        let fibers = &self.fibers;
        let flushes =
            |index: u32| fibers.get(index as usize).is_some_and(|fiber| fiber.step == Step::Flush);
        self.idle.retain(|&Reverse((_, index))| flushes(index));
    }

    /// Queues what a fiber with nothing in flight does next.
    fn schedule_next(&mut self, now: Time, index: u32) {
        let Some(fiber) = self.fibers.get_mut(index as usize) else { return };
        let wrote = fiber.step == Step::Request;
        fiber.step = Step::Request;
        if wrote && self.flushes.as_mut().is_some_and(FlushCounter::take) {
            fiber.step = Step::Flush;
            self.idle.push(Reverse((now, index)));
        } else if self.left > 0 {
            if let Pace::Closed(think) = self.pace {
                fiber.due = think.resume(self.start, now);
            }
            self.idle.push(Reverse((fiber.due, index)));
        }
    }
}
