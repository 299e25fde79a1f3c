//! Shards, clients and a disk on a virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_core::{
    ClassId, Control, DiskModel, DiskRates, DiskTime, GroupConfig, IoGroup, IoQueue, Op, Outcome,
    Policy, Ticket, Time,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLI: u64 = 1_000_000;

pub(crate) fn rates(iops: u64, bandwidth: u64) -> DiskRates {
    DiskRates {
        read_iops: iops,
        write_iops: iops,
        read_bandwidth: bandwidth,
        write_bandwidth: bandwidth,
    }
}

pub(crate) fn model(iops: u64, bandwidth: u64) -> DiskModel {
    DiskModel::from_rates(&rates(iops, bandwidth)).unwrap()
}

/// The next pseudo-random number of 31 bits.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// A closed loop of one request at a time, with `pause` nanoseconds in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) shard: usize,
    pub(crate) class: ClassId,
    pub(crate) op: Op,
    pub(crate) len: u64,
    pub(crate) pause: u64,
}

/// The behaviour of the disk. It serves one request after the other in `slowness` percent of their
/// cost, and answers `latency` nanoseconds later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub(crate) slowness: u64,
    pub(crate) latency: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival(usize),
    Completion(usize, usize),
    Poll(usize),
    Tick(usize, u64),
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    ticket: Ticket,
    client: usize,
}

pub(crate) struct Shard {
    pub(crate) queue: IoQueue,
    flights: Vec<Option<Flight>>,
    timer: Option<u64>,
    stalled_until: u64,
}

pub(crate) struct World {
    pub(crate) group: IoGroup,
    pub(crate) shards: Vec<Shard>,
    pub(crate) clients: Vec<Client>,
    pub(crate) disk: Disk,
    pub(crate) now: u64,
    /// If set, polls happen only at multiples of this tick, and not on every event.
    pub(crate) tick: Option<u64>,
    /// One poll in `.0` of shard `.1` stalls that shard for `.2` nanoseconds.
    pub(crate) stall: Option<(u64, usize, u64)>,
    /// The times in queue of the requests of one client, if they are recorded.
    pub(crate) watched: Option<(usize, Vec<u64>)>,
    /// Wake-ups of other shards, turns, and the delay of timers and wake-ups.
    pub(crate) wakes: u64,
    pub(crate) turns: u64,
    pub(crate) late: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    disk_free_at: u64,
    random: u64,
}

/// A group with pace and window by the figures, which these tests are about.
pub(crate) fn by_figures(model: DiskModel, policy: Policy) -> GroupConfig {
    GroupConfig { control: Control::Rates, ..GroupConfig::new(model, policy) }
}

impl World {
    pub(crate) fn new(model: DiskModel, policy: Policy, shards: usize) -> Self {
        Self::with_config(by_figures(model, policy), shards)
    }

    pub(crate) fn with_config(mut config: GroupConfig, shards: usize) -> Self {
        config.shards_max = shards;
        let group = IoGroup::new(config);
        let shards = (0..shards)
            .map(|_| Shard {
                queue: group.join().unwrap(),
                flights: Vec::new(),
                timer: None,
                stalled_until: 0,
            })
            .collect();
        Self {
            group,
            shards,
            clients: Vec::new(),
            disk: Disk { slowness: 100, latency: 50_000 },
            now: 1,
            tick: None,
            stall: None,
            watched: None,
            wakes: 0,
            turns: 0,
            late: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            disk_free_at: 0,
            random: 7,
        }
    }

    pub(crate) fn clients(&mut self, count: usize, client: Client) {
        for _ in 0..count {
            self.clients.push(client);
            let index = self.clients.len() - 1;
            self.at(self.now, Event::Arrival(index));
        }
    }

    pub(crate) fn run_until(&mut self, end: u64) {
        if let Some(tick) = self.tick {
            let shards = self.shards.len();
            for shard in 0..shards {
                let first = self.now + tick * shard as u64 / shards as u64;
                self.at(first, Event::Tick(shard, tick));
            }
        }
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = self.now.max(at);
            self.handle(event);
        }
        self.now = end;
    }

    /// The disk time dispatched for a class, over all shards.
    pub(crate) fn consumption(&self, class: ClassId) -> f64 {
        self.shards.iter().map(|shard| consumption(shard, class)).sum()
    }

    pub(crate) fn total(&self) -> f64 {
        self.shards.iter().map(|s| s.queue.counters().consumption.units() as f64).sum()
    }

    /// The fraction of the time up to now that was dispatched as disk time.
    pub(crate) fn utilisation(&self) -> f64 {
        self.total() / DiskTime::from_nanos(self.now).units() as f64
    }

    pub(crate) fn random(&mut self) -> u64 {
        next_random(&mut self.random)
    }

    fn at(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival(client) => {
                let Client { shard, class, op, len, .. } = self.clients[client];
                let now = self.time();
                let ticket = self.shards[shard].queue.enqueue(now, class, op, len).unwrap();
                let slots = &mut self.shards[shard];
                let flights = slots.flights.len().max(ticket.index() + 1);
                slots.flights.resize(flights, None);
                slots.flights[ticket.index()] = Some(Flight { ticket, client });
                self.poll_if_free(shard);
            }
            Event::Completion(shard, index) => {
                let now = self.time();
                if now.as_nanos() < self.shards[shard].stalled_until {
                    let until = self.shards[shard].stalled_until;
                    self.at(until, event);
                    return;
                }
                let flight = self.shards[shard].flights[index].take().unwrap();
                let done = self.shards[shard].queue.complete(now, flight.ticket, Outcome::Done);
                let queue_nanos = done.unwrap().queue_nanos;
                if let Some((watched, seen)) = &mut self.watched
                    && *watched == flight.client
                {
                    seen.push(queue_nanos);
                }
                let pause = self.clients[flight.client].pause;
                if pause == 0 {
                    self.handle(Event::Arrival(flight.client));
                } else {
                    self.at(self.now + pause, Event::Arrival(flight.client));
                }
                self.poll_if_free(shard);
            }
            Event::Poll(shard) => {
                if self.shards[shard].timer.is_some_and(|timer| timer <= self.now) {
                    self.shards[shard].timer = None;
                    self.poll(shard);
                }
            }
            Event::Tick(shard, tick) => {
                self.at(self.now + tick, Event::Tick(shard, tick));
                self.poll(shard);
            }
        }
    }

    fn poll_if_free(&mut self, shard: usize) {
        if self.tick.is_none() {
            self.poll(shard);
        }
    }

    fn poll(&mut self, shard: usize) {
        if self.now < self.shards[shard].stalled_until {
            return;
        }
        if let Some((one_in, stalling, nanos)) = self.stall
            && shard == stalling
            && self.random().is_multiple_of(one_in)
        {
            self.shards[shard].stalled_until = self.now + nanos;
            let until = self.now + nanos;
            self.shards[shard].timer = Some(until);
            self.at(until, Event::Poll(shard));
            return;
        }
        self.turns += 1;
        let now = self.time();
        while let Some(ticket) = self.shards[shard].queue.poll_dispatch(now) {
            self.start(shard, ticket);
        }
        let mut woken = Vec::new();
        while let Some(other) = self.shards[shard].queue.poll_wake() {
            self.wakes += 1;
            woken.push(other.index());
        }
        if self.tick.is_some() {
            return;
        }
        for other in woken {
            self.set_timer(other, self.now + self.late);
        }
        if let Some(at) = self.shards[shard].queue.poll_timeout(now) {
            self.set_timer(shard, at.as_nanos() + self.late);
        }
    }

    fn set_timer(&mut self, shard: usize, at: u64) {
        let timer = &mut self.shards[shard].timer;
        if timer.is_none_or(|old| old > at || old <= self.now) {
            *timer = Some(at);
            self.at(at, Event::Poll(shard));
        }
    }

    fn start(&mut self, shard: usize, ticket: Ticket) {
        let flight = self.shards[shard].flights[ticket.index()].unwrap();
        let client = self.clients[flight.client];
        let cost = self.group.model().cost(client.op, client.len).units();
        let service = cost * self.disk.slowness / 100;
        let now = self.now * 64;
        self.disk_free_at = self.disk_free_at.max(now) + service;
        let done = self.disk_free_at.div_ceil(64) + self.disk.latency;
        self.at(done, Event::Completion(shard, ticket.index()));
    }
}

pub(crate) fn consumption(shard: &Shard, class: ClassId) -> f64 {
    shard.queue.class(class).map_or(0.0, |counters| counters.consumption.units() as f64)
}

/// The largest relative error of `values` from the proportions of `shares`.
pub(crate) fn share_error(values: &[f64], shares: &[u32]) -> f64 {
    let total: f64 = values.iter().sum();
    let weights: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    values
        .iter()
        .zip(shares)
        .map(|(value, &share)| (value / total / (f64::from(share) / weights) - 1.0).abs())
        .fold(0.0, f64::max)
}
