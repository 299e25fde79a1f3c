//! In steady state the scheduler allocates nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use forebay_core::{DiskModel, DiskRates, GroupConfig, IoGroup, Limits, Op, Outcome, Policy, Time};

struct Counting;

thread_local! {
    /// Allocations of this thread. The thread that runs the tests has some of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is that of `GlobalAlloc::alloc`.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is that of `GlobalAlloc::dealloc`.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn steady_state_allocates_nothing() {
    let model = DiskModel::from_rates(&DiskRates {
        read_iops: 100_000,
        write_iops: 50_000,
        read_bandwidth: 1_000_000_000,
        write_bandwidth: 500_000_000,
    });
    let mut config = GroupConfig::new(model.unwrap(), Policy::pace_window());
    config.shards_max = 2;
    let group = IoGroup::new(config);
    let parent = group.add_class_group(None, 10).unwrap();
    let classes: Vec<_> = (0..100)
        .map(|index| group.add_class((index % 3 == 0).then_some(parent), 1 + index).unwrap())
        .collect();
    let limits = Limits { bytes_per_second: None, operations_per_second: Some(5_000) };
    group.set_limits(classes[7], &limits).unwrap();
    let mut queues = [group.join().unwrap(), group.join().unwrap()];
    let mut in_disk = [Vec::with_capacity(1_000), Vec::with_capacity(1_000)];

    let mut turn = |round: u64| {
        for step in 0..1_000 {
            let now = Time::from_nanos(round * 1_000_000_000 + step * 20_000);
            for (queue, in_disk) in queues.iter_mut().zip(&mut in_disk) {
                let class = classes[(step * 37 % 100) as usize];
                let op = Op::ALL[step as usize % 4];
                let ticket = queue.enqueue(now, class, op, 4096).unwrap();
                if step % 5 == 0 {
                    queue.cancel(now, ticket);
                }
                in_disk.extend(std::iter::from_fn(|| queue.poll_dispatch(now)));
                if step % 3 > 0
                    && let Some(ticket) = in_disk.pop()
                {
                    queue.complete(now, ticket, Outcome::Done).unwrap();
                }
                while queue.poll_wake().is_some() {}
            }
        }
        let end = Time::from_nanos(round * 1_000_000_000 + 900_000_000);
        for (queue, in_disk) in queues.iter_mut().zip(&mut in_disk) {
            while !queue.is_empty() {
                in_disk.extend(std::iter::from_fn(|| queue.poll_dispatch(end)));
                for ticket in in_disk.drain(..) {
                    queue.complete(end, ticket, Outcome::Done).unwrap();
                }
                if let Some(at) = queue.poll_timeout(end) {
                    let later = at.plus_nanos(50_000_000);
                    in_disk.extend(std::iter::from_fn(|| queue.poll_dispatch(later)));
                }
            }
        }
    };
    (1..4).for_each(&mut turn);
    let before = ALLOCATIONS.get();
    (4..14).for_each(&mut turn);
    assert_eq!(ALLOCATIONS.get(), before);
}
