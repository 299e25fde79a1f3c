//! A disk of equal channels and one bus.

use std::time::Duration;

use forebay_core::{DiskRates, DiskTime, Op, Time};

use super::Command;
use super::servers::{
    LARGE, Pool, SMALL, Server, Service, moment, per_second, span, time, transfer,
};

/// What an ideal disk is made of.
///
/// Each channel serves one command at a time, first come, first served, and
/// takes at least the latency of its direction. The bytes of all commands pass
/// one bus at the bandwidth of their direction, alongside that latency. So the
/// disk does `channels / latency` small commands per second, and a deeper
/// queue adds waiting alone (Little's law). Flushes and discards take a channel
/// as a write without bytes does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// How many commands it serves at once.
    pub channels: u32,
    /// How long a channel is busy with a read, at least.
    pub read_latency: Duration,
    /// How long a channel is busy with any other command, at least.
    pub write_latency: Duration,
    /// Bytes per second over the bus while it carries reads.
    pub read_bandwidth: u64,
    /// Bytes per second over the bus while it carries writes.
    pub write_bandwidth: u64,
}

impl Ideal {
    fn latency(&self, op: Op) -> DiskTime {
        span(if op.is_write() { self.write_latency } else { self.read_latency })
    }

    /// Bytes per second over the bus.
    fn bus(&self, op: Op) -> u64 {
        if op.is_write() { self.write_bandwidth } else { self.read_bandwidth }
    }

    /// Commands per second, as far as channels go.
    fn commands(&self, op: Op) -> u64 {
        per_second(u64::from(self.channels), self.latency(op))
    }
}

/// An ideal disk at work.
pub(crate) struct IdealDisk {
    parameters: Ideal,
    channels: Pool,
    bus: Server,
}

impl IdealDisk {
    pub(crate) fn new(parameters: Ideal) -> Self {
        Self { parameters, channels: Pool::new(parameters.channels), bus: Server::default() }
    }
}

impl Service for IdealDisk {
    fn serve(&mut self, now: Time, command: Command) -> Time {
        let Command { op, len, .. } = command;
        let start = self.channels.take(moment(now));
        let mut done = start.plus(self.parameters.latency(op));
        if matches!(op, Op::Read | Op::Write) && len > 0 {
            let transfer = transfer(len, self.parameters.bus(op));
            done = done.max(self.bus.serve(start, transfer));
        }
        self.channels.release(done);
        time(done)
    }

    fn rates(&self) -> DiskRates {
        let ideal = &self.parameters;
        let iops = |op| ideal.commands(op).min(ideal.bus(op) / SMALL).max(1);
        let bandwidth = |op| ideal.commands(op).saturating_mul(LARGE).min(ideal.bus(op)).max(1);
        DiskRates {
            read_iops: iops(Op::Read),
            write_iops: iops(Op::Write),
            read_bandwidth: bandwidth(Op::Read),
            write_bandwidth: bandwidth(Op::Write),
        }
    }

    fn base_latency(&self) -> Duration {
        let least = self.parameters.latency(Op::Read);
        let least = least.max(transfer(SMALL, self.parameters.read_bandwidth));
        Duration::from_nanos(least.as_nanos_ceil())
    }
}
