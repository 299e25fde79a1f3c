//! Several disks side by side, chunk by chunk.

use std::collections::HashMap;
use std::time::Duration;

use forebay_core::{DiskRates, Op, Time};

use super::{Command, Completion, MembersInFlight, SimDisk, Status};

/// Disks that take turns by chunks of equal size.
///
/// A command is split at the borders of chunks, and done when its last part
/// is; it fails if a part fails. A flush goes to all members, and a discard
/// once to each member that it touches.
pub struct Raid0 {
    chunk: u64,
    members: Vec<Member>,
    /// Commands that have unfinished parts.
    whole: HashMap<u64, Whole>,
    /// What was in flight until `counted`.
    in_flight: MembersInFlight,
    counted: Time,
}

struct Member {
    disk: Box<dyn SimDisk>,
    /// Which command each unfinished part belongs to, by the part's number.
    parts: HashMap<u64, u64>,
    next_part: u64,
}

struct Whole {
    parts_left: u64,
    status: Status,
}

impl Raid0 {
    /// Members that hold chunks of this many bytes in turn.
    pub fn new(chunk: u64, disks: Vec<Box<dyn SimDisk>>) -> Self {
        let member = |disk| Member { disk, parts: HashMap::new(), next_part: 0 };
        let in_flight = MembersInFlight { nanos: vec![0; disks.len()], fullest_nanos: 0 };
        let members = disks.into_iter().map(member).collect();
        let (whole, counted) = (HashMap::new(), Time::ZERO);
        Self { chunk: chunk.max(1), members, whole, in_flight, counted }
    }

    /// The parts of a command, each with the place of its member.
    fn parts(&self, command: Command) -> Vec<(usize, Command)> {
        let Command { op, offset, len } = command;
        if op == Op::Flush {
            return (0..self.members.len()).map(|member| (member, command)).collect();
        }
        let members = self.members.len().max(1) as u64;
        let mut parts: Vec<(usize, Command)> = Vec::new();
        let (mut at, end) = (offset, offset.saturating_add(len));
        loop {
            let chunk = at / self.chunk;
            let within = at % self.chunk;
            let len = (self.chunk - within).min(end - at);
            let member = (chunk % members) as usize;
            let part = Command { op, offset: chunk / members * self.chunk + within, len };
            let earlier = parts.iter_mut().find(|(of, _)| op == Op::Discard && *of == member);
            match earlier {
                Some((_, earlier)) => earlier.len += len,
                None => parts.push((member, part)),
            }
            at += len;
            if at >= end {
                return parts;
            }
        }
    }

    /// The member whose next event comes first.
    fn soonest(&self) -> Option<(Time, usize)> {
        let events = self.members.iter().enumerate();
        events.filter_map(|(place, member)| Some((member.disk.next_event()?, place))).min()
    }

    /// Counts what is in flight, before that changes.
    fn count(&mut self, now: Time) {
        if now > self.counted {
            self.in_flight = self.members(now);
            self.counted = now;
        }
    }

    /// Ends a part; the command, if that was its last.
    fn part_done(&mut self, place: usize, part: Completion) -> Option<Completion> {
        self.count(part.at);
        let id = self.members.get_mut(place)?.parts.remove(&part.id)?;
        let whole = self.whole.get_mut(&id)?;
        whole.parts_left -= 1;
        if part.status == Status::Failed {
            whole.status = Status::Failed;
        }
        if whole.parts_left > 0 {
            return None;
        }
        let status = self.whole.remove(&id)?.status;
        Some(Completion { id, at: part.at, status })
    }
}

impl SimDisk for Raid0 {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.count(now);
        let parts = self.parts(command);
        let parts_left = parts.len() as u64;
        self.whole.insert(id, Whole { parts_left, status: Status::Done });
        for (place, part) in parts {
            if let Some(member) = self.members.get_mut(place) {
                member.parts.insert(member.next_part, id);
                member.disk.submit(now, member.next_part, part);
                member.next_part += 1;
            }
        }
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        loop {
            let (at, place) = self.soonest().filter(|&(at, _)| at <= now)?;
            let part = self.members.get_mut(place)?.disk.poll_completion(at);
            if let Some(whole) = part.and_then(|part| self.part_done(place, part)) {
                return Some(whole);
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.soonest().map(|(at, _)| at)
    }

    fn rates(&self) -> DiskRates {
        let members: Vec<DiskRates> = self.members.iter().map(|m| m.disk.rates()).collect();
        // Load spreads evenly, so the slowest member decides.
        let all = |rate: fn(&DiskRates) -> u64| {
            let slowest = members.iter().map(rate).min().unwrap_or(1);
            slowest.saturating_mul(members.len() as u64)
        };
        DiskRates {
            read_iops: all(|rates| rates.read_iops),
            write_iops: all(|rates| rates.write_iops),
            read_bandwidth: all(|rates| rates.read_bandwidth),
            write_bandwidth: all(|rates| rates.write_bandwidth),
        }
    }

    fn members(&self, now: Time) -> MembersInFlight {
        let nanos = now.nanos_since(self.counted);
        let of = |member: &Member| nanos.saturating_mul(member.parts.len() as u64);
        let before = self.in_flight.nanos.iter().zip(&self.members);
        let fullest = self.members.iter().map(of).max().unwrap_or(0);
        MembersInFlight {
            nanos: before.map(|(before, member)| before.saturating_add(of(member))).collect(),
            fullest_nanos: self.in_flight.fullest_nanos.saturating_add(fullest),
        }
    }

    fn seeks(&self) -> bool {
        self.members.iter().any(|member| member.disk.seeks())
    }

    fn flush(&self) -> Option<Duration> {
        self.members.iter().filter_map(|member| member.disk.flush()).max()
    }

    fn base_latency(&self) -> Duration {
        self.members.iter().map(|member| member.disk.base_latency()).max().unwrap_or_default()
    }
}
