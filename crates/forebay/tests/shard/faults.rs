//! Requests that the disk does not answer: reads of an empty pipe, which only
//! io_uring takes. The tests of files have a disk that hangs for every backend.

use std::io::Write;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::{AlignedBuf, Class, DirectFile, DiskRates, Op};

use crate::backends::is_available;
use crate::fixture::{BLOCK, Bed, config, endless, filled};

const RATES: DiskRates = DiskRates {
    read_iops: 10_000,
    write_iops: 10_000,
    read_bandwidth: 200_000_000,
    write_bandwidth: 200_000_000,
};

/// Cost of a block at these rates.
const COST: Duration = Duration::from_micros(100);
/// Where nothing completes, one request more is tried after this time.
const PROBE: Duration = Duration::from_millis(10);

/// A bed on io_uring, if there is any.
fn bed() -> Option<Bed> {
    let backend = BackendChoice::IoUring;
    let shutdown_timeout = Duration::from_millis(50);
    let engine = EngineConfig { depth_max: 1024, shutdown_timeout, ..config(backend) };
    is_available(backend).then(|| Bed::with(RATES, &engine))
}

#[test]
fn a_disk_that_hangs_gets_no_more_than_two_windows_and_probes() {
    let Some(mut bed) = bed() else { return };
    let (pipe, _writer) = endless();
    for _ in 0..1000 {
        bed.submit(Operation::read(pipe.clone(), 0, filled(BLOCK, 0)));
    }
    let window = 2 * bed.disk().effective_goal().unwrap();
    let start = Instant::now();
    while start.elapsed() < 20 * PROBE {
        bed.shard.run_once(Some(PROBE)).unwrap();
    }
    let probes = start.elapsed().div_duration_f64(PROBE).ceil();
    // The window overshoots by one request.
    let most = 2.0 * (window.div_duration_f64(COST) + 1.0) + probes;
    let counters = bed.shard.queue().counters();
    assert!(f64::from(counters.in_disk) <= most, "{} in the disk, {most}", counters.in_disk);
    assert!(counters.overdue > 0, "the window gave nothing up");
    assert!(bed.shard.pop().is_none());
    // The engine waits for what hangs, and not for ever.
    let disk = bed.disk();
    drop(bed.shard);
    assert_eq!(disk.in_flight(), Duration::ZERO);
}

#[test]
fn some_that_hang_do_not_stop_the_others() {
    const HANGING: usize = 20;
    let Some(mut bed) = bed() else { return };
    let file = bed.file();
    bed.write(&file, 0, filled(BLOCK, 7));
    let other = bed.scheduler.add_class("other", 10).unwrap();
    let (pipe, _writer) = endless();
    for _ in 0..HANGING {
        bed.submit(Operation::read(pipe.clone(), 0, filled(BLOCK, 0)));
    }
    read_in(&mut bed, &other, &file, 500);
    assert_eq!(bed.shard.len(), HANGING, "only these are left");
    assert_eq!(bed.shard.queue().classes()[2].operations[Op::Read.index()], 500);
}

/// Where something hangs no thread is asked what came back while it was away.
#[test]
fn completions_during_an_absence_are_taken_before_requests_are_given_up() {
    let Some(mut bed) = bed() else { return };
    std::mem::forget(bed.class.admit(Op::Read, 4096).unwrap().detach());
    let start = Instant::now();
    while bed.class.permit_counters().overdue == 0 {
        drop(bed.class.admit(Op::Read, 4096).unwrap());
        assert!(start.elapsed() < Duration::from_secs(60), "the window gave nothing up");
    }
    let (pipe, mut writer) = endless();
    for away_ms in [20, 100, 300] {
        for _ in 0..4 {
            bed.submit(Operation::read(pipe.clone(), 0, filled(BLOCK, 0)));
        }
        bed.shard.run_once(Some(Duration::ZERO)).unwrap();
        writer.write_all(&[7; 4 * BLOCK]).unwrap();
        std::thread::sleep(Duration::from_millis(away_ms));
        (0..4).for_each(|_| assert_eq!(bed.next().result.unwrap(), BLOCK));
        assert_eq!(bed.shard.queue().counters().overdue, 0, "{away_ms} ms");
    }
}

/// Reads a block this many times in `class`, some at once.
fn read_in(bed: &mut Bed, class: &Class, file: &DirectFile, count: usize) {
    let read = |bed: &mut Bed, buffer| {
        bed.shard.submit(class, Operation::read(file.clone(), 0, buffer)).unwrap();
    };
    (0..8).for_each(|_| read(bed, filled(BLOCK, 0)));
    for ended in 1..=count {
        let finished = bed.next();
        assert_eq!(finished.result.unwrap(), BLOCK);
        if ended + 8 <= count {
            read(bed, finished.operation.into_buffer::<AlignedBuf>().unwrap());
        }
    }
}
