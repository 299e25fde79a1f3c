//! The way of a request through the scheduler, again and again.

use forebay_core::{
    ClassId, Completion, DiskModel, DiskRates, GroupConfig, IoGroup, IoQueue, Op, Outcome, Policy,
    Time,
};

/// A disk too fast to ever be the bottleneck.
const RATES: DiskRates = DiskRates {
    read_iops: 100_000_000,
    write_iops: 100_000_000,
    read_bandwidth: 1_000_000_000_000,
    write_bandwidth: 1_000_000_000_000,
};
/// Requests of each class that wait all the time.
const BACKLOG: usize = 4;

pub fn group(shards: usize) -> Option<IoGroup> {
    let model = DiskModel::from_rates(&RATES).ok()?;
    let mut config = GroupConfig::new(model, Policy::pace_window());
    config.shards_max = shards;
    Some(IoGroup::new(config))
}

pub fn classes(group: &IoGroup, count: usize) -> Vec<ClassId> {
    (0..count).filter_map(|index| group.add_class(None, 1 + index as u32 % 7 * 100).ok()).collect()
}

/// One shard whose classes always have work waiting.
pub struct Path {
    pub queue: IoQueue,
    pub classes: Vec<ClassId>,
    pub next: usize,
    now: u64,
}

impl Path {
    pub fn new(group: &IoGroup, classes: Vec<ClassId>) -> Option<Self> {
        let mut queue = group.join().ok()?;
        for _ in 0..BACKLOG {
            for class in &classes {
                queue.enqueue(Time::from_nanos(1), *class, Op::Read, 4096).ok()?;
            }
        }
        Some(Self { queue, classes, next: 0, now: 1_000_000 })
    }

    /// `count` requests: enqueue, price, choose, budget, dispatch, complete,
    /// statistics. Returns how many went through.
    pub fn run(&mut self, count: usize) -> usize {
        self.run_and(count, |_| ())
    }

    /// [`Path::run`] with something to do after each completion.
    pub fn run_and(&mut self, count: usize, mut then: impl FnMut(&Completion)) -> usize {
        let mut done = 0;
        for _ in 0..count {
            self.now += 1_000;
            let now = Time::from_nanos(self.now);
            let class = self.classes[self.next];
            self.next = (self.next + 1) % self.classes.len();
            let queued = self.queue.enqueue(now, class, Op::Read, 4096);
            if let (Ok(_), Some(ticket)) = (queued, self.queue.poll_dispatch(now)) {
                let completion = self.queue.complete(now, ticket, Outcome::Done);
                completion.iter().for_each(&mut then);
                done += usize::from(completion.is_ok());
            }
        }
        done
    }
}
