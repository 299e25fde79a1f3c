//! A disk that behaves like a measured latency surface.

use std::time::Duration;

use forebay_core::{DiskModel, DiskRates, DiskTime, Op, Time};
use forebay_load::Rng;

use super::servers::{LARGE, SMALL, Server, Service, Timed, moment, span, time, transfer};
use super::{Command, SimDisk};
use crate::surface::{Grid, Price, Region, SurfaceModel, fit};

/// The mix of reads and writes is that of the last this many large requests.
const MIX_REQUESTS: u64 = 16;
/// The most program operations of a write; more would be a disk file gone wrong.
const PROGRAMS_MAX: u32 = 4096;

/// A disk that follows a [`SurfaceModel`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// The queueing model.
    pub model: SurfaceModel,
    /// Bytes read per second, which a surface does not tell.
    pub read_bandwidth: u64,
    /// Small writes per second, which it does not tell either.
    pub write_iops: u64,
    /// What a write takes beyond waiting, once for all sizes.
    pub write_latency: Duration,
}

impl Surface {
    /// The disk that comes nearest to a measured surface; takes about a second.
    pub fn fitted(grid: &Grid) -> Self {
        Self::new(fit(grid))
    }

    /// The disk of a model. What a surface does not tell is made up: reads as
    /// fast as writes where the bytes decide (but each is one operation), writes
    /// as fast as reads where the operations do, and answered as soon.
    pub fn new(model: SurfaceModel) -> Self {
        let Region { write_bandwidth, read_iops, .. } = model.region;
        let large = write_bandwidth / LARGE as f64;
        let bytes = write_bandwidth.max(read_iops * SMALL as f64).min(read_iops * LARGE as f64);
        let writes = read_iops.max(large).min(write_bandwidth / SMALL as f64);
        Self {
            read_bandwidth: bytes.max(1.0) as u64,
            write_iops: writes.max(1.0) as u64,
            write_latency: Duration::from_nanos((model.latency_us * 1e3) as u64),
            model,
        }
    }

    /// A disk of this kind, idle. What is random about it depends on `seed` alone.
    pub fn build(self, seed: u64) -> Box<dyn SimDisk> {
        Box::new(Timed::new(SurfaceDisk::new(self, seed)))
    }

    fn rates(&self) -> DiskRates {
        DiskRates {
            read_iops: self.model.region.read_iops.max(1.0) as u64,
            read_bandwidth: self.read_bandwidth,
            write_iops: self.write_iops,
            write_bandwidth: self.model.region.write_bandwidth.max(1.0) as u64,
        }
    }
}

/// The state of a [`Surface`] disk.
struct SurfaceDisk {
    surface: Surface,
    costs: DiskModel,
    price: Price,
    mix: Mix,
    gate: Server,
    slack: DiskTime,
    dies: Vec<Server>,
    reads: Reads,
    writes: Writes,
    exponential: Exponential,
    rng: Rng,
}

/// What reads take, and the reads so far.
#[derive(Clone, Copy)]
struct Reads {
    latency: DiskTime,
    jitter: DiskTime,
    on_die: DiskTime,
    turn: DiskTime,
    lull: DiskTime,
    lull_extra: DiskTime,
    last: DiskTime,
}

/// What writes take, and the writes so far.
#[derive(Clone, Copy)]
struct Writes {
    latency: DiskTime,
    program: DiskTime,
    /// This many bytes written take a second of a die's time.
    on_die: u64,
    /// Time on dies for the bytes so far, and at how much of it the next
    /// program operation is: at random, but as long as the operations are.
    programs: DiskTime,
    next_program: DiskTime,
    /// The last request was not a read.
    last: bool,
}

impl SurfaceDisk {
    fn new(surface: Surface, seed: u64) -> Self {
        let (model, rates) = (surface.model, surface.rates());
        let us = |us: f64| DiskTime::from_nanos((us * 1e3).round() as u64);
        let costs = DiskModel::from_rates(&rates).unwrap_or_else(|_| DiskModel::unmeasured());
        let window = costs.max_cost(LARGE).units().saturating_mul(MIX_REQUESTS);
        let on_die = model.region.write_bandwidth / (model.program_share * f64::from(model.dies));
        let on_die = if on_die.is_finite() { on_die.max(1.0) as u64 } else { u64::MAX };
        Self {
            price: Price::new(model.region.exponent),
            mix: Mix { read: 0.0, write: 0.0, window: window as f64 },
            gate: Server::default(),
            slack: us(model.slack_us),
            dies: vec![Server::default(); model.dies.max(1) as usize],
            reads: Reads {
                latency: us(model.latency_us),
                jitter: us(model.jitter_us),
                on_die: us(model.die_read_us),
                turn: us(model.turn_us),
                lull: us(model.lull_us),
                lull_extra: us(model.lull_extra_us),
                last: DiskTime::ZERO,
            },
            writes: Writes {
                latency: span(surface.write_latency),
                program: us(model.program_us),
                on_die,
                programs: DiskTime::ZERO,
                next_program: us(model.program_us),
                last: false,
            },
            exponential: Exponential::new(),
            rng: Rng::new(seed, &[]),
            costs,
            surface,
        }
    }

    /// A read that arrives at `at` and passes the gate at `start`: when it is done.
    fn read(&mut self, at: DiskTime, start: DiskTime, price: f64) -> DiskTime {
        let Reads { latency, jitter, on_die, turn, lull, lull_extra, last } = self.reads;
        let turn = if self.writes.last { turn } else { DiskTime::ZERO };
        let waking = if at.minus(last) > lull { lull_extra } else { DiskTime::ZERO };
        let latency = [jitter, turn, waking]
            .into_iter()
            .fold(latency, |latency, mean| latency.plus(self.random(mean)));
        let on_die = priced(self.random(on_die.plus(turn)), price);
        self.reads.last = at;
        let free = self.a_die().serve(start, on_die);
        free.minus(on_die).plus(latency)
    }

    /// Written bytes keep dies busy, one program operation after the other.
    fn program(&mut self, start: DiskTime, len: u64, price: f64) {
        let Writes { program, on_die, .. } = self.writes;
        self.writes.programs = self.writes.programs.plus(transfer(len, on_die));
        for _ in 0..PROGRAMS_MAX {
            if program == DiskTime::ZERO || self.writes.programs < self.writes.next_program {
                return;
            }
            let gap = self.random(program).max(DiskTime::from_units(1));
            self.writes.next_program = self.writes.next_program.plus(gap);
            let time = self.random(program);
            self.a_die().serve(start, priced(time, price));
        }
        self.writes.next_program = self.writes.programs.plus(program);
    }

    fn random(&mut self, mean: DiskTime) -> DiskTime {
        self.exponential.draw(&mut self.rng, mean)
    }

    fn a_die(&mut self) -> &mut Server {
        let index = self.rng.below(self.dies.len() as u64) as usize;
        &mut self.dies[index]
    }
}

impl Service for SurfaceDisk {
    fn serve(&mut self, now: Time, command: Command) -> Time {
        let Command { op, len, .. } = command;
        let at = moment(now);
        let cost = self.costs.cost(op, len);
        self.mix.add(op, cost);
        let price = self.price.of(self.mix.write_part());
        let start = self.gate.free_at.minus(self.slack).max(at);
        let work = self.random(priced(cost, price));
        self.gate.serve(at, work);
        // a large request takes longer than a small one by its transfer
        let moving = cost.minus(self.costs.cost(op, 0));
        let done = if op == Op::Read {
            self.read(at, start, price)
        } else {
            if op == Op::Write {
                self.program(start, len, price);
            }
            start.plus(self.writes.latency)
        };
        self.writes.last = op != Op::Read;
        time(done.plus(moving))
    }

    fn rates(&self) -> DiskRates {
        self.surface.rates()
    }

    fn base_latency(&self) -> Duration {
        // the median of an exponential distribution is 0.69 means
        let SurfaceModel { latency_us, jitter_us, .. } = self.surface.model;
        Duration::from_nanos(((latency_us + 0.69 * jitter_us) * 1e3) as u64)
    }
}

fn priced(time: DiskTime, price: f64) -> DiskTime {
    DiskTime::from_units((time.units() as f64 * price) as u64)
}

/// How much of the recent work was reads and how much writes.
#[derive(Clone, Copy, Debug)]
struct Mix {
    read: f64,
    write: f64,
    /// Work counts for about so much more work.
    window: f64,
}

impl Mix {
    fn add(&mut self, op: Op, cost: DiskTime) {
        let cost = cost.units() as f64;
        let kept = (1.0 - cost / self.window).max(0.0);
        self.read = self.read * kept + if op.is_write() { 0.0 } else { cost };
        self.write = self.write * kept + if op.is_write() { cost } else { 0.0 };
    }

    fn write_part(&self) -> f64 {
        self.write / (self.read + self.write).max(1.0)
    }
}

const QUANTILES: usize = 4096;

/// An exponential distribution of mean 1, as a table: a draw costs no
/// logarithm. The longest is 9 means.
#[derive(Clone, Debug)]
struct Exponential {
    /// The mean of each part of the distribution, times 2^16.
    quantiles: Vec<u32>,
}

impl Exponential {
    fn new() -> Self {
        let share = 1.0 / QUANTILES as f64;
        // the integral of the quantile function from 0 to `tail` below the end
        let beyond = |tail: f64| if tail > 0.0 { tail * (1.0 - libm::log(tail)) } else { 0.0 };
        let quantile = |index: usize| {
            let (from, to) = (1.0 - index as f64 * share, 1.0 - (index + 1) as f64 * share);
            ((beyond(from) - beyond(to)) / share * 65_536.0).round() as u32
        };
        Self { quantiles: (0..QUANTILES).map(quantile).collect() }
    }

    /// A random length of time with this mean.
    fn draw(&self, rng: &mut Rng, mean: DiskTime) -> DiskTime {
        let quantile = self.quantiles[(rng.next_u64() >> 52) as usize];
        let units = (u128::from(mean.units()) * u128::from(quantile)) >> 16;
        DiskTime::from_units(units as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_deviation_of_an_exponential_distribution() {
        let (exponential, mut rng) = (Exponential::new(), Rng::new(1, &[]));
        let mean = DiskTime::from_nanos(100_000);
        let mut draw = || exponential.draw(&mut rng, mean).units() as f64 / mean.units() as f64;
        let draws: Vec<f64> = (0..200_000).map(|_| draw()).collect();
        let average = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / draws.len() as f64;
        assert!((average - 1.0).abs() < 0.01, "mean {average}");
        assert!((square - 2.0).abs() < 0.05, "second moment {square}");
    }
}
