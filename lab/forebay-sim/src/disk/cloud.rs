//! A cloud volume: a provisioned rate, burst credits, and a network.

use std::time::Duration;

use forebay_core::{DiskRates, DiskTime, Op, Time};
use forebay_load::Rng;

use super::Command;
use super::servers::{LARGE, SMALL, Server, Service, moment, per_second, span, time, transfer};

/// What a cloud volume is made of.
///
/// Commands and bytes are admitted at the provisioned rates, whichever is
/// slower, and answered a network latency later. With burst credits the volume
/// admits commands faster as long as credits last; an idle or slower use earns
/// them back at the provisioned rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cloud {
    /// Operations per second for ever.
    pub iops: u64,
    /// Operations per second while there are credits; not below `iops`.
    pub burst_iops: u64,
    /// The most credits; each is one operation.
    pub burst_credits: u64,
    /// Those at the beginning.
    pub burst_credits_left: u64,
    /// Bytes per second.
    pub bandwidth: u64,
    /// A command counts as one operation for each part of this many bytes.
    pub operation_bytes: u64,
    /// What an answer takes at least once it was admitted.
    pub latency: Duration,
    /// The mean of what it takes beyond that, exponentially distributed.
    pub jitter: Duration,
}

/// A cloud volume at work.
pub(crate) struct CloudDisk {
    parameters: Cloud,
    operations: Server,
    bytes: Server,
    /// When all credits are back, if nothing more is asked.
    repaid_at: DiskTime,
    chance: Rng,
}

impl CloudDisk {
    pub(crate) fn new(parameters: Cloud, seed: u64) -> Self {
        let Cloud { iops, burst_credits, burst_credits_left, .. } = parameters;
        Self {
            parameters,
            operations: Server::default(),
            bytes: Server::default(),
            repaid_at: transfer(burst_credits.saturating_sub(burst_credits_left), iops),
            chance: Rng::new(seed, &[]),
        }
    }

    /// Pays for `operations`, and says from when on there are credits for them.
    fn pay(&mut self, at: DiskTime, operations: u64) -> DiskTime {
        let Cloud { iops, burst_credits, .. } = self.parameters;
        let paid = self.repaid_at.max(at).minus(transfer(burst_credits, iops));
        self.repaid_at = self.repaid_at.max(at).plus(transfer(operations, iops));
        paid
    }

    fn jitter(&mut self) -> DiskTime {
        let mean = self.parameters.jitter.as_nanos().max(1);
        let rate = u32::try_from(1_000_000_000 / mean).unwrap_or(u32::MAX);
        if self.parameters.jitter.is_zero() {
            return DiskTime::ZERO;
        }
        DiskTime::from_nanos(self.chance.gap_ns(rate))
    }
}

impl Service for CloudDisk {
    fn serve(&mut self, now: Time, command: Command) -> Time {
        let at = moment(now);
        let Cloud { burst_iops, bandwidth, operation_bytes, latency, .. } = self.parameters;
        let moves = matches!(command.op, Op::Read | Op::Write);
        let len = if moves { command.len } else { 0 };
        let operations = len.div_ceil(operation_bytes).max(1);
        // A command goes as soon as those before it are paid for.
        let turn = self.operations.free_at.max(at);
        let moved = self.bytes.free_at.max(at);
        self.operations.serve(at, transfer(operations, burst_iops));
        self.bytes.serve(at, transfer(len, bandwidth));
        let admitted = turn.max(moved).max(self.pay(at, operations));
        time(admitted.plus(span(latency)).plus(self.jitter()))
    }

    fn rates(&self) -> DiskRates {
        let Cloud { iops, bandwidth, operation_bytes, .. } = self.parameters;
        let small = per_second(1, transfer(1, iops)).min(bandwidth / SMALL).max(1);
        let large = iops / LARGE.div_ceil(operation_bytes);
        let bytes = large.saturating_mul(LARGE).min(bandwidth).max(1);
        DiskRates {
            read_iops: small,
            write_iops: small,
            read_bandwidth: bytes,
            write_bandwidth: bytes,
        }
    }

    fn base_latency(&self) -> Duration {
        // The median of an exponential distribution is ln 2 of its mean.
        self.parameters.latency.saturating_add(self.parameters.jitter * 693 / 1000)
    }
}
