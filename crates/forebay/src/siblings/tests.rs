//! Several processes, each with a queue, on one simulated disk in virtual time.

use std::collections::BTreeMap;

use forebay_core::{
    Blocked, ClassId, DiskModel, DiskRates, DiskTime, GroupConfig, IoGroup, IoQueue, Op, Outcome,
    Policy, Ticket, Time,
};

use super::{Demand, Siblings, Slot};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLI;
const STEP: u64 = 200_000;
const LOOK: u64 = 50 * MILLI;

#[derive(Clone, Copy)]
struct Load {
    shares: u32,
    depth: usize,
    op: Op,
    len: u64,
    /// The time at which it starts, and the time at which its process ends.
    from: u64,
    to: u64,
}

const SMALL: (Op, u64) = (Op::Read, 4096);
const LARGE: (Op, u64) = (Op::Write, 131_072);

impl Load {
    const fn of(shares: u32, depth: usize, (op, len): (Op, u64)) -> Self {
        Self { shares, depth, op, len, from: 0, to: u64::MAX }
    }
}

struct Process {
    load: Load,
    group: IoGroup,
    queue: IoQueue,
    class: ClassId,
    siblings: Siblings,
    slot: Slot,
    running: usize,
    consumed: f64,
    waited: u64,
    wants_until: Time,
    used: f64,
    served: f64,
    part: Option<u32>,
}

struct World {
    processes: Vec<Process>,
    now: u64,
    /// The time that the disk takes for 100 units of work by its figures.
    slowness: u64,
    free_at: u64,
    busy: u64,
    in_disk: BTreeMap<(u64, u64), (usize, Ticket)>,
    sequence: u64,
}

impl World {
    fn new(slowness: u64, loads: &[Load]) -> Self {
        let rates = DiskRates {
            read_iops: 8_000,
            write_iops: 5_400,
            read_bandwidth: 100_000_000,
            write_bandwidth: 50_000_000,
        };
        let process = |load: &Load| {
            let model = DiskModel::from_rates(&rates).unwrap();
            let group = IoGroup::new(GroupConfig::new(model, Policy::pace_window()));
            let (queue, class) =
                (group.join().unwrap(), group.add_class(None, load.shares).unwrap());
            Process {
                load: *load,
                group,
                queue,
                class,
                siblings: Siblings::default(),
                slot: Slot::default(),
                running: 0,
                consumed: 0.0,
                waited: 0,
                wants_until: Time::ZERO,
                used: 0.0,
                served: 0.0,
                part: None,
            }
        };
        let processes = loads.iter().map(process).collect();
        let in_disk = BTreeMap::new();
        Self { processes, now: STEP, slowness, free_at: 0, busy: 0, in_disk, sequence: 0 }
    }

    /// Runs from `from` to `to`. Returns the fraction of the work that each process got, and the
    /// fraction of the time in which the disk was busy.
    fn run(&mut self, from: u64, to: u64) -> (Vec<f64>, f64) {
        self.run_until(from);
        let (busy, served) = (self.busy, self.served());
        self.run_until(to);
        let more: Vec<f64> =
            self.served().iter().zip(served).map(|(now, then)| now - then).collect();
        let all: f64 = more.iter().sum();
        (more.iter().map(|of| of / all).collect(), (self.busy - busy) as f64 / (to - from) as f64)
    }

    fn served(&self) -> Vec<f64> {
        self.processes.iter().map(|process| process.served).collect()
    }

    fn run_until(&mut self, end: u64) {
        while self.now < end {
            self.step();
            self.now += STEP;
        }
    }

    fn step(&mut self) {
        let now = Time::from_nanos(self.now);
        while let Some(entry) = self.in_disk.first_entry()
            && entry.key().0 <= self.now
        {
            let (number, ticket) = entry.remove();
            let process = &mut self.processes[number];
            let done = process.queue.complete(now, ticket, Outcome::Done).unwrap();
            let cost = process.group.model().cost(done.op, done.len);
            process.served += cost.units() as f64;
            process.running -= 1;
        }
        for number in 0..self.processes.len() {
            let process = &mut self.processes[number];
            let Load { from, to, depth, op, len, .. } = process.load;
            if !(from..to).contains(&self.now) {
                continue;
            }
            while process.running < depth {
                process.queue.enqueue(now, process.class, op, len).unwrap();
                process.running += 1;
            }
            let cost = process.group.model().cost(op, len).as_nanos_ceil() * self.slowness / 100;
            while let Some(ticket) = process.queue.poll_dispatch(now) {
                self.free_at = self.free_at.max(self.now) + cost;
                self.busy += cost;
                self.sequence += 1;
                self.in_disk.insert((self.free_at, self.sequence), (number, ticket));
            }
            // The exchanges of the processes are at different times.
            if (self.now / STEP + 37 * number as u64).is_multiple_of(LOOK / STEP) {
                self.look(number, now);
            }
        }
    }

    fn look(&mut self, number: usize, now: Time) {
        let slots: Vec<(usize, Slot)> =
            self.processes.iter().map(|of| of.slot).enumerate().collect();
        let process = &mut self.processes[number];
        let counters = process.queue.counters();
        let waited = [Blocked::Pace, Blocked::Window, Blocked::PaceDiskIdle]
            .map(|reason| counters.blocked_nanos[reason.index()]);
        let waited: u64 = waited.iter().sum();
        let consumed = counters.consumption.units() as f64;
        let used = (consumed - process.consumed) / DiskTime::from_nanos(LOOK).units() as f64;
        let is_idle = used == 0.0 && process.running == 0;
        process.used = if is_idle { 0.0 } else { process.used + (used - process.used) / 6.0 };
        let window = process.group.window_in_force().units();
        let fills = process.group.in_flight().units() >= window / 2;
        if fills || waited - process.waited > LOOK / 8 {
            process.wants_until = now.plus_nanos(200 * MILLI);
        }
        let demand = Demand {
            weight: if is_idle { 0 } else { process.load.shares },
            used: (process.used * 1e6) as u32,
            wants: now < process.wants_until,
            trim: process.siblings.trims()[0],
        };
        (process.consumed, process.waited) = (consumed, waited);
        process.slot = Slot { sequence: process.slot.sequence + 1, demands: [demand, demand] };
        let others: Vec<_> = slots.into_iter().filter(|(of, _)| *of != number).collect();
        let others: Vec<_> = others.into_iter().filter(|(_, slot)| slot.sequence > 0).collect();
        let part = process.siblings.look(now, [demand; 2], &others, |_| true)[0];
        process.part = part;
        process.group.set_part(now, part);
    }
}

fn assert_shares(got: &(Vec<f64>, f64), shares: &[f64], what: &str) {
    let all: f64 = shares.iter().sum();
    for (got, due) in got.0.iter().zip(shares) {
        assert!((got / (due / all) - 1.0).abs() < 0.05, "{what}: {got:?} of {shares:?}");
    }
    assert!(got.1 > 0.97, "{what}: {got:?}");
}

#[test]
fn processes_share_a_disk_by_their_shares_whatever_it_does_of_its_figures() {
    let loads = [(SMALL, SMALL), (SMALL, LARGE), (LARGE, SMALL)];
    for slowness in [60, 100, 160] {
        for shares in [[400, 100], [1000, 50]] {
            for (one, two) in loads {
                let loads = [Load::of(shares[0], 256, one), Load::of(shares[1], 256, two)];
                let got = World::new(slowness, &loads).run(6 * SECOND, 10 * SECOND);
                let what = format!("{slowness} %, {shares:?}, {one:?} {two:?}");
                assert_shares(&got, &shares.map(f64::from), &what);
            }
        }
    }
}

#[test]
fn many_processes_share_a_disk() {
    let loads: Vec<_> = (0..40).map(|_| Load::of(100, 32, SMALL)).collect();
    let got = World::new(100, &loads).run(3 * SECOND, 6 * SECOND);
    assert_shares(&got, &[1.0; 40], "forty");
}

#[test]
fn an_unused_part_goes_to_others_within_a_second_and_comes_back() {
    for (dies, load) in [(true, SMALL), (true, LARGE), (false, SMALL), (false, LARGE)] {
        let loads = [Load::of(1000, 256, SMALL), Load::of(50, 256, load)];
        let mut world = World::new(100, &loads);
        world.run_until(5 * SECOND);
        let idle = &mut world.processes[0].load;
        if dies {
            idle.to = world.now;
        } else {
            idle.depth = 0;
        }
        let got = world.run(5 * SECOND + 400 * MILLI, 7 * SECOND);
        assert!(got.0[1] > 0.99 && got.1 > 0.97, "{dies}, {load:?}: {got:?}");
        world.run_until(8 * SECOND);
        assert_eq!(world.processes[1].part, None, "nobody else uses it");
        let back = &mut world.processes[0].load;
        (back.to, back.depth) = (u64::MAX, 256);
        let got = world.run(12 * SECOND, 20 * SECOND);
        assert_shares(&got, &[1000.0, 50.0], "again");
    }
}

#[test]
fn the_unused_part_of_a_process_with_few_requests_is_used() {
    let loads = [Load::of(1000, 2, SMALL), Load::of(100, 256, LARGE)];
    let got = World::new(100, &loads).run(5 * SECOND, 10 * SECOND);
    // Its two requests wait for those of the other in the disk: one or two writes of 2.6 ms.
    assert!(got.0[0] > 0.03 && got.1 > 0.97, "{got:?}");
}

#[test]
fn requests_that_all_fit_into_the_disk_have_their_share_of_it() {
    let loads = [Load::of(400, 32, SMALL), Load::of(100, 8, LARGE)];
    let got = World::new(100, &loads).run(5 * SECOND, 10 * SECOND);
    assert_shares(&got, &[4.0, 1.0], "32 reads");
}
