//! Internal parts of the scheduler for its benchmarks, without a stable interface.

use alloc::sync::Arc;

use crate::class_tree::ClassTree;
use crate::fair_queue::{FairQueue, ServiceOrder};
use crate::peers::Peers;
use crate::requests::Requests;
use crate::{ClassId, DiskTime, Op, Time};

/// The fair queue of one shard and one class, without a budget and counters.
#[derive(Debug)]
pub struct FairQueueAlone {
    fair: FairQueue,
    requests: Requests,
    class: ClassId,
}

impl FairQueueAlone {
    /// An empty queue. `None` would mean a full tree, and does not happen.
    pub fn new() -> Option<Self> {
        let tree = Arc::new(ClassTree::new(true));
        let peers = Arc::new(Peers::new(1, ClassTree::NODES));
        let class = tree.add_class(None, 100).ok()?;
        let fair = FairQueue::new(
            tree,
            Arc::clone(&peers),
            peers.join()?,
            ServiceOrder::StartTime,
            DiskTime::ZERO,
        );
        Some(Self { fair, requests: Requests::new(1 << 20), class })
    }

    /// Queues `count` requests and removes them in order. Returns how many it removed.
    pub fn queue_and_drain(&mut self, count: usize) -> usize {
        for _ in 0..count {
            let cost = DiskTime::from_nanos(1_000);
            let ticket =
                self.requests.insert(Time::ZERO, self.class.node(), Op::Read, 4096, cost, false);
            if let Some(ticket) = ticket {
                let _ = self.fair.push(&mut self.requests, self.class, ticket.slot());
            }
        }
        let mut drained = 0;
        while let Some((class, index)) = self.fair.first(Time::ZERO) {
            self.fair.pop(&mut self.requests, class, index, Time::ZERO);
            self.requests.remove(index);
            drained += 1;
        }
        drained
    }
}
