//! Requests that many threads send to one, before they are in its I/O queue.

use forebay_core::Op;
use slab::Slab;

use crate::class::QueueClass;
use crate::deficit_round_robin::{DeficitRoundRobin, Link, Links};

/// Requests of a class in the I/O queue at once: as few as keep it from
/// running dry between two dispatches, for there they are served in the order
/// in which they came, by all submitters.
const QUEUED_PER_CLASS_MAX: u32 = 8;

/// A turn of a submitter is worth a request of this many bytes.
const TURN_BYTES: u64 = 128 << 10;

/// What an I/O thread was sent and has not put into its I/O queue: those of a
/// class in turns of their submitters, which get equal disk time.
///
/// The owner [pushes](Self::push) what it is sent, and after each push, each
/// dispatch and each cancellation takes with [`pop`](Self::pop), until that
/// returns `None`, what is to be submitted to its driver. Memory is bounded by
/// what the owner pushes.
#[derive(Debug)]
pub struct Submitters<R> {
    waiting: Slab<Waiting<R>>,
    /// By [`QueueClass::index`].
    classes: Vec<DeficitRoundRobin>,
    /// What a turn is worth, in nanoseconds of disk time.
    quantum: u64,
}

#[derive(Debug)]
struct Waiting<R> {
    request: R,
    class: usize,
    link: Option<Link>,
}

impl<R> Links for Slab<Waiting<R>> {
    fn link(&mut self, key: usize) -> Option<&mut Link> {
        self.get_mut(key)?.link.as_mut()
    }
}

impl<R> Submitters<R> {
    /// Without requests; `cost` says what one of this many bytes costs, in
    /// nanoseconds of disk time: a turn is worth 128 KiB in the dearer direction.
    pub fn new(cost: impl Fn(Op, u64) -> u64) -> Self {
        let quantum = cost(Op::Read, TURN_BYTES).max(cost(Op::Write, TURN_BYTES));
        Self { waiting: Slab::new(), classes: Vec::new(), quantum }
    }

    /// Puts a request of `class` behind the others of its submitter, which has
    /// this number; it costs this many nanoseconds of disk time. What it is
    /// [removed](Self::remove) by as long as it waits here.
    pub fn push(&mut self, class: QueueClass, submitter: u64, cost: u64, request: R) -> usize {
        let index = class.index();
        if self.classes.len() <= index {
            self.classes.resize_with(index + 1, DeficitRoundRobin::default);
        }
        let key = self.waiting.insert(Waiting { request, class: index, link: None });
        let queue = &mut self.classes[index];
        let link = queue.push(&mut self.waiting, key, (submitter, cost), class.holder);
        self.waiting[key].link = Some(link);
        key
    }

    /// The request of `class` that is to be put into the I/O queue now, which
    /// has `queued` of that class: a few, and whatever is before one whose
    /// submitter holds a permit, for only there does it get on.
    pub fn pop(&mut self, class: QueueClass, queued: u32) -> Option<R> {
        let queue = self.classes.get_mut(class.index())?;
        if queued >= QUEUED_PER_CLASS_MAX && !queue.has_holders() {
            return None;
        }
        let key = queue.pop(&mut self.waiting, self.quantum)?;
        self.waiting.try_remove(key).map(|waiting| waiting.request)
    }

    /// Takes a request out that waits here.
    pub fn remove(&mut self, key: usize) -> Option<R> {
        let class = self.waiting.get(key)?.class;
        self.classes.get_mut(class)?.remove(&mut self.waiting, key);
        self.waiting.try_remove(key).map(|waiting| waiting.request)
    }

    /// How often their own state was impossible: each is a bug.
    pub fn bugs(&self) -> u64 {
        self.classes.iter().map(DeficitRoundRobin::bugs).sum()
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DiskModel, DiskRates, GroupConfig, IoGroup, Policy};

    use super::*;

    fn class(holder: bool) -> QueueClass {
        let rates = DiskRates {
            read_iops: 1000,
            write_iops: 1000,
            read_bandwidth: 10_000_000,
            write_bandwidth: 10_000_000,
        };
        let model = DiskModel::from_rates(&rates).unwrap();
        let group = IoGroup::new(GroupConfig::new(model, Policy::Unlimited));
        QueueClass { queue: 0, id: group.add_class(None, 100).unwrap(), holder }
    }

    #[test]
    fn a_few_go_on_and_more_where_one_holds_a_permit() {
        let mut submitters = Submitters::new(|_, _| 10);
        for request in 0..20 {
            submitters.push(class(false), 1, 10, request);
        }
        let mut queued = 0;
        while submitters.pop(class(false), queued).is_some() {
            queued += 1;
        }
        assert_eq!(queued, QUEUED_PER_CLASS_MAX);
        submitters.push(class(true), 1, 10, 20);
        let rest: Vec<i32> = std::iter::from_fn(|| submitters.pop(class(false), queued)).collect();
        assert_eq!(rest.last(), Some(&20));
    }

    #[test]
    fn removed_entries_are_not_popped() {
        let mut submitters = Submitters::new(|_, _| 10);
        let keys: Vec<usize> =
            (0..4).map(|request| submitters.push(class(false), request, 10, request)).collect();
        assert_eq!(submitters.remove(keys[2]), Some(2));
        assert_eq!(submitters.remove(keys[2]), None);
        let mut rest: Vec<u64> = std::iter::from_fn(|| submitters.pop(class(false), 0)).collect();
        rest.sort_unstable();
        assert_eq!((rest, submitters.bugs()), (vec![0, 1, 3], 0));
    }
}
