//! A line of the kernel's trace.

use std::time::Duration;

use crate::block_event::BlockEvent;

/// The event of io_uring, below `events/io_uring`.
pub(crate) const ASYNC_WORK: &str = "io_uring_queue_async_work";

/// What the kernel says in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// Of a request at a block device.
    Block(BlockEvent),
    /// io_uring gives a request to a thread of the kernel, because it would have to wait.
    AsyncWork {
        /// When, by the clock of the trace.
        time: Duration,
        /// What the request does, such as `WRITE`; empty where an old kernel does not say it.
        operation: String,
    },
}

impl KernelEvent {
    /// An event by its name, with what follows the name.
    pub(crate) fn named(time: Duration, name: &str, fields: &str) -> Option<Self> {
        if name != ASYNC_WORK {
            return BlockEvent::named(time, name, fields).map(Self::Block);
        }
        let operation = fields.split_once("opcode ").map_or("", |(_, rest)| rest);
        let end = operation.find([',', ' ']).unwrap_or(operation.len());
        Some(Self::AsyncWork { time, operation: operation[..end].to_owned() })
    }

    /// When, by the clock of the trace.
    pub fn time(&self) -> Duration {
        match self {
            Self::Block(event) => event.time,
            Self::AsyncWork { time, .. } => *time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_the_kernel_gives_to_a_thread_are_read() {
        let read = |fields: &str| {
            KernelEvent::parse(&format!(
                "x-1 [001] ..... 12.5: io_uring_queue_async_work: {fields}"
            ))
        };
        let of = |operation: &str| {
            let (time, operation) = (Duration::from_millis(12_500), operation.to_owned());
            Some(KernelEvent::AsyncWork { time, operation })
        };
        let new =
            "ring 0f, request 1f, user_data 0x2, opcode WRITE, flags 0x8, normal queue, work 3";
        assert_eq!(read(new), of("WRITE"));
        assert_eq!(read("ring 0f, request 1f, flags 8, normal queue, work 3"), of(""));
        assert_eq!(KernelEvent::parse("io_uring_queue_async_work: ring 0f"), None);
    }
}
