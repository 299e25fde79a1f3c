//! A hard disk: one head over one spinning platter.

use std::collections::VecDeque;
use std::time::Duration;

use forebay_core::{DiskRates, Op, Time};
use forebay_load::Rng;

use super::servers::{SMALL, span, time, transfer};
use super::{Command, Completion, SimDisk, Status};

/// An old command goes before nearer ones.
const PATIENCE_NANOS: u64 = 1_000_000_000;

/// What a hard disk is made of.
///
/// It serves one command at a time: the head seeks, waits until the platter has
/// turned to the place, and transfers. Of the queued commands it takes the one
/// that it can reach first, or one that has waited for a second. A command that
/// begins where the last one ended needs neither seek nor turn, as if the disk
/// had a cache. A flush writes what the cache holds: it waits for one turn of
/// the platter, or seeks first where the head has moved since the last write.
/// A flush takes no time if nothing was written since the last one, and a
/// discard never takes any. Flushes and discards are taken before other commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hdd {
    /// Turns of the platter per minute.
    pub rpm: u32,
    /// Seek to the next track.
    pub seek_min: Duration,
    /// Seek over the whole disk; in between it grows with the square root of
    /// the distance.
    pub seek_max: Duration,
    /// Bytes per second under the head.
    pub bandwidth: u64,
    /// From how many queued commands it chooses, in the order of arrival.
    pub queue: u32,
}

impl Hdd {
    fn turn_nanos(&self) -> u64 {
        60_000_000_000 / u64::from(self.rpm.max(1))
    }
}

/// A hard disk at work.
pub(crate) struct HddDisk {
    parameters: Hdd,
    capacity: u64,
    queued: VecDeque<Queued>,
    current: Option<Completion>,
    finished: VecDeque<Completion>,
    /// Where the last command ended.
    head: u64,
    /// Where the last write ended, if no flush followed it.
    held: Option<u64>,
}

#[derive(Clone, Copy)]
struct Queued {
    id: u64,
    since: Time,
    command: Command,
}

impl HddDisk {
    pub(crate) fn new(parameters: Hdd, capacity: u64) -> Self {
        Self {
            parameters,
            capacity: capacity.max(1),
            queued: VecDeque::new(),
            current: None,
            finished: VecDeque::new(),
            head: 0,
            held: None,
        }
    }

    /// Nanoseconds from `now` until the head is where `command` begins.
    fn reach(&self, now: Time, command: Command) -> u64 {
        if matches!(command.op, Op::Flush | Op::Discard) {
            0
        } else {
            self.seek(now, command.offset)
        }
    }

    /// Nanoseconds from `now` until the head is at `offset`.
    fn seek(&self, now: Time, offset: u64) -> u64 {
        if offset == self.head {
            return 0;
        }
        let Hdd { seek_min, seek_max, bandwidth, .. } = self.parameters;
        let distance = offset.abs_diff(self.head) as f64 / self.capacity as f64;
        let growth = seek_max.saturating_sub(seek_min).as_nanos() as f64;
        let seek = seek_min.as_nanos() as u64 + (growth * distance.min(1.0).sqrt()) as u64;
        let turn = self.parameters.turn_nanos();
        let angle = span_nanos(offset, bandwidth) % turn;
        let arrival = now.plus_nanos(seek).as_nanos() % turn;
        seek + (angle + turn - arrival) % turn
    }

    /// Starts the best queued command, the disk being free at `now`.
    fn start(&mut self, now: Time) {
        let choice = self.queued.iter().take(self.parameters.queue as usize).enumerate();
        let patient = |since: Time| now.nanos_since(since) < PATIENCE_NANOS;
        let best =
            choice.map(|(place, q)| (patient(q.since), self.reach(now, q.command), place)).min();
        let Some((_, reach, place)) = best else { return };
        let Some(Queued { id, command, .. }) = self.queued.remove(place) else { return };
        let nanos = match command.op {
            Op::Read | Op::Write => {
                self.head = command.offset.saturating_add(command.len);
                reach + span_nanos(command.len, self.parameters.bandwidth)
            }
            Op::Flush => self.write_held(now),
            Op::Discard => 0,
        };
        if command.op == Op::Write {
            self.held = Some(self.head);
        }
        self.current = Some(Completion { id, at: now.plus_nanos(nanos), status: Status::Done });
    }

    /// Writes what the cache holds; how many nanoseconds that takes from `now` on.
    fn write_held(&mut self, now: Time) -> u64 {
        let Some(end) = self.held.take() else { return 0 };
        let seek = self.seek(now, end);
        self.head = end;
        if seek == 0 { self.parameters.turn_nanos() } else { seek }
    }

    /// Does what happens until `now`.
    fn advance(&mut self, now: Time) {
        while let Some(done) = self.current.take_if(|done| done.at <= now) {
            self.finished.push_back(done);
            self.start(done.at);
        }
    }
}

/// Whole nanoseconds that `bytes` take at `rate` per second.
fn span_nanos(bytes: u64, rate: u64) -> u64 {
    time(transfer(bytes, rate)).as_nanos()
}

impl SimDisk for HddDisk {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.advance(now);
        self.queued.push_back(Queued { id, since: now, command });
        if self.current.is_none() {
            self.start(now);
        }
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.finished.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        self.finished.front().or(self.current.as_ref()).map(|done| done.at)
    }

    fn rates(&self) -> DiskRates {
        let Hdd { bandwidth, queue, .. } = self.parameters;
        let mut idle = Self::new(self.parameters, self.capacity);
        let iops = small_commands_per_second(&mut idle, self.capacity, queue.into());
        DiskRates {
            read_iops: iops,
            write_iops: iops,
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
        }
    }

    fn seeks(&self) -> bool {
        true
    }

    fn flush(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.parameters.turn_nanos()))
    }

    fn base_latency(&self) -> Duration {
        // The median distance between two random places is 0.29 of the disk.
        let Hdd { seek_min, seek_max, .. } = self.parameters;
        let growth = seek_max.saturating_sub(seek_min).as_nanos() as f64 * 0.29_f64.sqrt();
        let half_a_turn = self.parameters.turn_nanos() / 2;
        let seek = span(seek_min).as_nanos_ceil() + growth as u64;
        Duration::from_nanos(seek + half_a_turn)
    }
}

/// Enough for two digits.
const COMMANDS: u64 = 4000;

/// How many small reads per second at random places an idle `disk` does with
/// `depth` in flight.
fn small_commands_per_second(disk: &mut dyn SimDisk, capacity: u64, depth: u64) -> u64 {
    let mut places = Rng::new(1, &[]);
    let mut read = |disk: &mut dyn SimDisk, now, id| {
        let offset = places.below(capacity / SMALL) * SMALL;
        disk.submit(now, id, Command { op: Op::Read, offset, len: SMALL });
    };
    for id in 0..depth.max(1) {
        read(disk, Time::ZERO, id);
    }
    let mut id = depth.max(1);
    let mut done = 0;
    let mut now = Time::ZERO;
    while done < COMMANDS {
        let Some(event) = disk.next_event() else { break };
        now = event;
        while disk.poll_completion(now).is_some() {
            read(disk, now, id);
            id += 1;
            done += 1;
        }
    }
    (done * 1_000_000_000 / now.as_nanos().max(1)).max(1)
}
