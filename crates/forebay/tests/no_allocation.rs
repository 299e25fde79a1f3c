//! In steady state, permits and requests of files cost no allocation.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use forebay::{
    AdmitFuture, AlignedBuf, BufResult, Class, DiskConfig, DiskRates, File, FileOptions, IoBuf, Op,
    Permit, Policy, Scheduler, Slice,
};

struct Counting;

thread_local! {
    /// Of this thread: what others do at the same time is not counted.
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

const TASKS: usize = 40;

/// A thread's permits, and tasks that wait for each other's, some in vain.
fn turn(class: &Class, held: &mut Vec<Permit>) {
    for _ in 0..8 {
        let outer = class.admit(Op::Read, 4096).unwrap();
        drop(class.try_admit(Op::Write, 512).unwrap());
        outer.complete(&Ok(()));
    }
    let mut tasks: [Option<AdmitFuture>; TASKS] =
        std::array::from_fn(|_| Some(class.admit_async(Op::Read, 4096)));
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..TASKS {
        for (index, slot) in tasks.iter_mut().enumerate() {
            let Some(admit) = slot else { continue };
            if let Poll::Ready(permit) = Pin::new(admit).poll(&mut context) {
                held.push(permit.unwrap());
                *slot = None;
            } else if index % 5 == 4 && round > index {
                *slot = None;
            }
        }
        held.clear();
    }
}

#[test]
fn steady_state_allocates_nothing() {
    let rates = DiskRates {
        read_iops: 10_000_000,
        write_iops: 10_000_000,
        read_bandwidth: 100_000_000_000,
        write_bandwidth: 100_000_000_000,
    };
    let disk = DiskConfig::new("disk", rates).policy(Policy::Concurrency { requests: 3 });
    let scheduler = Scheduler::builder().disk(disk).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let mut held = Vec::with_capacity(TASKS);
    turn(&class, &mut held);
    let before = ALLOCATIONS.get();
    for _ in 0..100 {
        turn(&class, &mut held);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}

/// Buffers of three kinds, each written and read back.
type Buffers = (AlignedBuf, Vec<u8>, Slice<Vec<u8>>);

fn round_trips(file: &File, class: &Class, (aligned, vector, part): Buffers) -> Buffers {
    let BufResult(_, aligned) = file.write_at(class, aligned, 0).wait();
    let BufResult(_, vector) = file.write_at(class, vector, 0).wait();
    let BufResult(_, part) = file.write_at(class, part, 0).wait();
    let BufResult(_, aligned) = file.read_at(class, aligned, 0).wait();
    let BufResult(_, vector) = file.read_at(class, vector, 0).wait();
    let BufResult(_, part) = file.read_at(class, part, 0).wait();
    (aligned, vector, part)
}

#[test]
fn requests_of_files_allocate_nothing_whatever_their_buffers_are() {
    let dir = tempfile::tempdir().unwrap();
    let scheduler = Scheduler::builder().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let options = FileOptions::new().read(true).write(true).create(true).direct(false);
    let file = scheduler.open(dir.path().join("data"), &options).unwrap();
    let part = vec![3; 100].slice(10..90).unwrap();
    let mut buffers = (AlignedBuf::new(100, 1).unwrap(), vec![7; 100], part);
    // the inbox of the I/O thread grows to as many as were ever under way
    let mut allocated = Vec::new();
    for _ in 0..5 {
        let before = ALLOCATIONS.get();
        for _ in 0..1000 {
            buffers = round_trips(&file, &class, buffers);
        }
        allocated.push(ALLOCATIONS.get() - before);
    }
    assert_eq!(allocated.iter().min(), Some(&0), "{allocated:?}");
    assert_eq!(buffers.2.into_inner().len(), 100);
}
