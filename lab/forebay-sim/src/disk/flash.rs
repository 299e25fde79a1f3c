//! A solid state disk, kept simple: a controller, dies and a write buffer.

use std::time::Duration;

use forebay_core::{CostCurve, DiskRates, DiskTime, Op, Time};
use forebay_load::Rng;

use super::Command;
use super::arbiter::Batches;
use super::partial_sectors::{Incomplete, PartialSectors};
use super::servers::{LARGE, SMALL, Server, Service, moment, per_second, span, time, transfer};

/// In the background the map is written at this part of the speed.
const IN_BACKGROUND: u64 = 10;

/// What a solid state disk is made of.
///
/// Every command passes the controller, one after the other. A read then needs
/// the dies that hold its pages, and waits behind other reads there. A write is
/// answered once it is in the write buffer, which all dies drain side by side;
/// when the buffer is full, writes are answered as fast as it drains. A read
/// that meets a draining buffer waits until a program operation is suspended,
/// and takes its time from the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flash {
    /// How long a read keeps the controller busy, whatever its size.
    pub read_command: Duration,
    /// How long a write or a flush does.
    pub write_command: Duration,
    /// Bytes per second through the controller, on top of that.
    pub bandwidth: u64,
    /// What the answer to a read takes beyond all else.
    pub read_latency: Duration,
    /// How much longer it takes at the most: any time up to it is as likely.
    pub read_jitter: Duration,
    /// What any other answer does.
    pub write_latency: Duration,
    /// Dies that work side by side.
    pub dies: u32,
    /// Bytes that a die reads in one operation, neighbours on different dies.
    pub page: u64,
    /// How long a die reads a page.
    pub page_read: Duration,
    /// Bytes per second that all dies together program.
    pub program_bandwidth: u64,
    /// The longest that a read waits for a program operation to be suspended.
    pub suspend: Duration,
    /// Bytes that one die programs at a time, which reads on it wait for; 0 where program
    /// operations are suspended for them.
    pub program: u64,
    /// Bytes that the write buffer holds.
    pub write_buffer: u64,
    /// Bytes of the smallest unit that is written; a write of a part of one
    /// reads the rest first.
    pub physical_sector: u64,
    /// How such units are completed; the rest is read at once if not given.
    pub partial_sectors: Option<PartialSectors>,
    /// After this many written bytes garbage is collected; 0 for never.
    pub collect_every: u64,
    /// How long the controller then pauses: from half of it to half as much
    /// again, at random.
    pub collect_pause: Duration,
    /// How long a discard keeps the controller busy, whatever its size.
    pub discard_command: Duration,
    /// Discarded bytes per second, on top of that.
    pub discard_bandwidth: u64,
    /// What a discard changes in the map of the disk is written later: after discards that kept
    /// the controller busy for so long; never for 0. Meanwhile it is written in the background, at
    /// a tenth of the speed.
    pub discard_log: Duration,
    /// How long the controller then pauses: from half of it to half as much again, at random.
    pub discard_log_write: Duration,
    /// How discards take turns with all else; not at all, but in the order of arrival, if not
    /// given.
    pub discard_batches: Option<Batches>,
}

impl Flash {
    /// How long the controller is busy with a command.
    fn in_controller(&self, op: Op, len: u64) -> DiskTime {
        match op {
            Op::Read => span(self.read_command).plus(transfer(len, self.bandwidth)),
            Op::Write => span(self.write_command).plus(transfer(len, self.bandwidth)),
            Op::Discard => span(self.discard_command).plus(transfer(len, self.discard_bandwidth)),
            Op::Flush => span(self.write_command),
        }
    }

    /// Commands of `len` aligned bytes per second in the long run.
    fn rate(&self, op: Op, len: u64) -> u64 {
        let controller = per_second(1, self.in_controller(op, len));
        let dies = match op {
            Op::Read => {
                let pages = len.div_ceil(self.page).max(1);
                per_second(u64::from(self.dies), span(self.page_read)) / pages
            }
            _ => self.program_bandwidth / len.next_multiple_of(self.physical_sector),
        };
        controller.min(dies).max(1)
    }
}

/// A solid state disk at work.
pub(crate) struct FlashDisk {
    parameters: Flash,
    controller: Server,
    dies: Vec<Server>,
    /// Empties the write buffer.
    drain: Server,
    /// Bytes that no die has been given yet, and the die that is next.
    unprogrammed: u64,
    next_die: usize,
    incomplete: Incomplete,
    until_collection: u64,
    /// Work of discards that is not written to the map, and as of when.
    unwritten: (DiskTime, DiskTime),
    chance: Rng,
}

impl FlashDisk {
    pub(crate) fn new(parameters: Flash, seed: u64) -> Self {
        Self {
            controller: Server::default(),
            dies: vec![Server::default(); parameters.dies as usize],
            drain: Server::default(),
            unprogrammed: 0,
            next_die: 0,
            incomplete: Incomplete::default(),
            until_collection: parameters.collect_every,
            unwritten: (DiskTime::ZERO, DiskTime::ZERO),
            chance: Rng::new(seed, &[]),
            parameters,
        }
    }

    /// Has the dies read the pages of a range; says when the last one is done.
    fn read_pages(&mut self, at: DiskTime, offset: u64, len: u64) -> DiskTime {
        let (page, read) = (self.parameters.page, span(self.parameters.page_read));
        let pages = offset / page..=offset.saturating_add(len.max(1) - 1) / page;
        let dies = self.dies.len() as u64;
        let mut done = at;
        for page in pages {
            let mut start = at;
            if self.parameters.program == 0 && self.drain.free_at > at {
                let longest = span(self.parameters.suspend).units();
                start = at.plus(DiskTime::from_units(self.chance.below(longest)));
                self.drain.serve(at, DiskTime::from_units(read.units() / dies));
            }
            if let Some(die) = self.dies.get_mut((spread(page) % dies) as usize) {
                done = done.max(die.serve(start, read));
            }
        }
        done
    }

    /// Buffers the sectors that a range touches; says when they are in.
    fn write(&mut self, now: DiskTime, offset: u64, len: u64) -> DiskTime {
        let sector = self.parameters.physical_sector;
        let end = offset.saturating_add(len);
        let (first, behind) = (offset / sector, end.div_ceil(sector));
        let mut done = self.controller.serve(now, self.parameters.in_controller(Op::Write, len));
        let head = (!offset.is_multiple_of(sector)).then_some(first);
        let tail = (!end.is_multiple_of(sector)).then(|| behind - 1).filter(|&s| head != Some(s));
        let arrived = done;
        let mut sectors = behind.saturating_sub(first);
        self.incomplete.write(len);
        for partial in [head, tail].into_iter().flatten() {
            match self.parameters.partial_sectors {
                // the buffer has the other part, and that one counts
                Some(_) if self.incomplete.completes(partial) => sectors -= 1,
                Some(_) => {}
                None => done = done.max(self.read_rest(arrived, partial)),
            }
        }
        if let Some(PartialSectors { kept, cost }) = self.parameters.partial_sectors {
            while let Some(late) = self.incomplete.late(kept) {
                self.read_rest(arrived, late);
                self.drain.serve(arrived, span(cost));
            }
        }
        self.buffer(done, sectors.saturating_mul(sector))
    }

    /// Reads what is missing of a sector; says when it is there.
    fn read_rest(&mut self, at: DiskTime, partial: u64) -> DiskTime {
        let sector = self.parameters.physical_sector;
        let asked = self.controller.serve(at, self.parameters.in_controller(Op::Read, sector));
        self.read_pages(asked, partial.saturating_mul(sector), sector)
    }

    fn buffer(&mut self, at: DiskTime, bytes: u64) -> DiskTime {
        let Flash { program_bandwidth, write_buffer, .. } = self.parameters;
        let drained = self.drain.serve(at, transfer(bytes, program_bandwidth));
        let drained = drained.max(self.program(at, bytes));
        self.collect(at, bytes);
        at.max(drained.minus(transfer(write_buffer, program_bandwidth)))
    }

    /// Gives dies in turn what they program of these bytes; says when the last one is done.
    fn program(&mut self, at: DiskTime, bytes: u64) -> DiskTime {
        let Flash { program, program_bandwidth, dies, .. } = self.parameters;
        let mut done = at;
        if program == 0 {
            return done;
        }
        self.unprogrammed += bytes;
        let takes = transfer(program * u64::from(dies), program_bandwidth);
        while self.unprogrammed >= program {
            self.unprogrammed -= program;
            self.next_die = (self.next_die + 1) % self.dies.len().max(1);
            if let Some(die) = self.dies.get_mut(self.next_die) {
                done = done.max(die.serve(at, takes));
            }
        }
        done
    }

    fn collect(&mut self, at: DiskTime, written: u64) {
        if self.parameters.collect_every == 0 {
            return;
        }
        self.until_collection = self.until_collection.saturating_sub(written);
        if self.until_collection == 0 {
            let pause = self.pause(self.parameters.collect_pause);
            self.controller.serve(at, pause);
            self.drain.serve(at, pause);
            self.until_collection = self.parameters.collect_every;
        }
    }
}

impl FlashDisk {
    /// From half of it to half as much again.
    fn pause(&mut self, mean: Duration) -> DiskTime {
        let mean = span(mean).units();
        DiskTime::from_units(mean / 2 + self.chance.below(mean))
    }

    /// Discards a range; says when that is done.
    fn discard(&mut self, now: DiskTime, len: u64) -> DiskTime {
        let work = self.parameters.in_controller(Op::Discard, len);
        let done = self.controller.serve(now, work);
        let log = span(self.parameters.discard_log);
        if log > DiskTime::ZERO {
            let (unwritten, since) = self.unwritten;
            let idle = now.max(since).minus(since).units() / IN_BACKGROUND;
            let unwritten = unwritten.minus(DiskTime::from_units(idle)).plus(work);
            self.unwritten = (unwritten, now.max(since));
            if unwritten >= log {
                let pause = self.pause(self.parameters.discard_log_write);
                self.controller.serve(now, pause);
                self.unwritten.0 = DiskTime::ZERO;
            }
        }
        done
    }
}

impl Service for FlashDisk {
    fn serve(&mut self, now: Time, command: Command) -> Time {
        let (now, Command { op, offset, len }) = (moment(now), command);
        let done = match op {
            Op::Write if len > 0 => self.write(now, offset, len),
            Op::Discard => self.discard(now, len),
            _ => {
                let busy = self.parameters.in_controller(op, len);
                let passed = self.controller.serve(now, busy);
                if op == Op::Read { self.read_pages(passed, offset, len) } else { passed }
            }
        };
        let Flash { read_latency, read_jitter, write_latency, .. } = self.parameters;
        if op != Op::Read {
            return time(done.plus(span(write_latency)));
        }
        let jitter = span(read_jitter).units();
        let jitter = if jitter == 0 { 0 } else { self.chance.below(jitter) };
        time(done.plus(span(read_latency)).plus(DiskTime::from_units(jitter)))
    }

    fn rates(&self) -> DiskRates {
        let flash = &self.parameters;
        DiskRates {
            read_iops: flash.rate(Op::Read, SMALL),
            write_iops: flash.rate(Op::Write, SMALL),
            read_bandwidth: flash.rate(Op::Read, LARGE).saturating_mul(LARGE),
            write_bandwidth: flash.rate(Op::Write, LARGE).saturating_mul(LARGE),
        }
    }

    fn discards(&self) -> Option<CostCurve> {
        let Flash { discard_command, discard_bandwidth, .. } = self.parameters;
        // one that takes no time for bytes has no cost that a model could state: none was given
        let commands = per_second(1, span(discard_command));
        CostCurve::sum(commands, discard_bandwidth).ok()
    }

    fn base_latency(&self) -> Duration {
        let controller = self.parameters.in_controller(Op::Read, SMALL);
        let all = controller.plus(span(self.parameters.page_read));
        let answer = self.parameters.read_latency + self.parameters.read_jitter / 2;
        Duration::from_nanos(all.plus(span(answer)).as_nanos_ceil())
    }
}

/// Which die has a page: neighbours go to different dies, and a stride that is
/// a multiple of the dies does not go to one alone.
fn spread(page: u64) -> u64 {
    page.wrapping_add((page >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32)
}
