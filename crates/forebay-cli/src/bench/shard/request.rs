//! The requests under way on a shard.

use std::io;

use forebay_core::{Join, Op, Ticket, Time};

/// A request of a job, from its enqueueing until all of its parts are done.
#[derive(Debug)]
pub(super) struct Request {
    /// The position of the job among those of the shard.
    pub(super) job: usize,
    pub(super) fiber: u32,
    pub(super) op: Op,
    /// Where it begins, from the beginning of the job's data; for an unlink the number of the file.
    pub(super) place: u64,
    pub(super) len: u64,
    pub(super) intended: Time,
    pub(super) enqueued: Time,
    /// When its last part was dispatched: what comes after is the disk's time alone.
    pub(super) dispatched: Time,
    pub(super) join: Join<io::Error>,
}

/// A part of a request, which the scheduler and the disk take for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) ticket: Ticket,
    /// The key of its request.
    pub(super) request: usize,
    /// Where in the request it begins.
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Names a part to the engine: the lane it came from, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) lane: usize,
    pub(super) index: usize,
}

impl Token {
    /// Tickets have 32-bit numbers.
    pub(super) const fn to_bits(self) -> u64 {
        (self.lane as u64) << 32 | self.index as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { lane: (bits >> 32) as usize, index: (bits & u32::MAX as u64) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_engine() {
        let token = Token { lane: 1, index: u32::MAX as usize };
        assert_eq!(Token::from_bits(token.to_bits()), token);
    }
}
