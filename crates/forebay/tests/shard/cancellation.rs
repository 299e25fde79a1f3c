//! Operations that are not wanted any more.

use std::time::Duration;

use forebay::AlignedBuf;
use forebay::engine::{BackendChoice, Operation};

use crate::fixture::{BLOCK, Bed, RATES, STUCK, config, endless, filled, is_cancelled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    waiting_requests_end_at_once,
    a_split_request_is_cancelled_with_all_its_parts,
    an_ended_operation_cannot_be_cancelled,
    a_class_with_work_queued_stays_until_the_work_is_cancelled,
    a_shard_dropped_busy_gives_everything_back,
}

fn waiting_requests_end_at_once(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    let ids: Vec<_> = (0..1000)
        .map(|n| bed.submit(Operation::write(file.clone(), n * BLOCK as u64, filled(BLOCK, 1))))
        .collect();
    for id in &ids {
        assert!(bed.shard.cancel(*id));
        assert!(!bed.shard.cancel(*id), "it has ended");
    }
    for id in ids {
        let finished = bed.shard.pop().unwrap();
        assert_eq!(finished.id, id);
        assert!(is_cancelled(&finished.result));
        assert_eq!(finished.operation.into_buffer::<AlignedBuf>().unwrap().len(), BLOCK);
    }
    assert!(bed.shard.is_empty() && bed.shard.queue().is_empty());
    assert_eq!(bed.path("data").metadata().unwrap().len(), 0);
}

fn a_split_request_is_cancelled_with_all_its_parts(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    for turns in 0..20 {
        let id = bed.submit(Operation::write(file.clone(), 0, filled(1 << 20, 1)));
        for _ in 0..turns {
            bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        }
        bed.shard.cancel(id);
        let finished = bed.next();
        match &finished.result {
            Ok(written) => assert_eq!(written % BLOCK, 0),
            error => assert!(is_cancelled(error), "{error:?}"),
        }
        assert_eq!(finished.operation.into_buffer::<AlignedBuf>().unwrap().len(), 1 << 20);
        assert!(bed.shard.is_empty() && bed.shard.queue().is_empty());
    }
}

fn an_ended_operation_cannot_be_cancelled(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    let first = bed.submit(Operation::write(file.clone(), 0, filled(BLOCK, 1)));
    assert_eq!(bed.next().id, first);
    let second = bed.submit(Operation::write(file, 0, filled(BLOCK, 2)));
    assert_eq!(second.index(), first.index(), "the same place");
    assert!(!bed.shard.cancel(first));
    assert_eq!(bed.next().result.unwrap(), BLOCK);
}

fn a_class_with_work_queued_stays_until_the_work_is_cancelled(backend: BackendChoice) {
    let mut bed = Bed::with(STUCK, &config(backend));
    let file = bed.file();
    let ids: Vec<_> = (0..10)
        .map(|n| bed.submit(Operation::write(file.clone(), n * BLOCK as u64, filled(BLOCK, 1))))
        .collect();
    let refused = bed.scheduler.remove_class(&bed.class).unwrap_err().to_string();
    assert!(refused.contains("`class`") && refused.contains("still has work queued"), "{refused}");
    assert!(refused.contains("cancel it"), "what to do: {refused}");
    assert!(ids.into_iter().all(|id| bed.shard.cancel(id)));
    bed.scheduler.remove_class(&bed.class).unwrap();
}

fn a_shard_dropped_busy_gives_everything_back(backend: BackendChoice) {
    let mut bed = Bed::new(backend);
    let file = bed.file();
    for n in 0..100 {
        bed.submit(Operation::write(file.clone(), n << 20, filled(1 << 20, 1)));
    }
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    let disk = bed.disk();
    assert!(disk.in_flight() > Duration::ZERO);
    drop(bed.shard);
    assert_eq!(disk.in_flight(), Duration::ZERO);
    bed.scheduler.remove_class(&bed.class).unwrap();
}

#[test]
fn a_read_without_end_is_cancelled_in_the_kernel() {
    if !crate::backends::is_available(BackendChoice::IoUring) {
        return;
    }
    let mut bed = Bed::with(RATES, &config(BackendChoice::IoUring));
    let (pipe, _writer) = endless();
    let id = bed.submit(Operation::read(pipe, 0, filled(BLOCK, 0)));
    bed.shard.run_once(Some(Duration::ZERO)).unwrap();
    assert!(bed.shard.cancel(id));
    assert!(is_cancelled(&bed.next().result));
}
