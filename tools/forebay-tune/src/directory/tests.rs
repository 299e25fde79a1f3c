//! Files in a directory, measured.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::phase::{Bound, Pattern};

fn phase(work: Work, file: FileState, pattern: Pattern) -> Phase {
    let bound = Bound { seconds: 0.02, requests_min: 8, bytes_max: 8 << 20 };
    Phase { work, file, pattern, depth: 3, bound, ..Phase::probe() }
}

#[test]
fn a_directory_is_written_and_read_and_nothing_is_left() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
    let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    let samples = target.run(&Phase { request_bytes: 1 << 20, ..blank }).unwrap();
    assert!((1..=8 << 20).contains(&samples.bytes_written), "{samples:?}");
    for (work, file) in [
        (Work::Read, FileState::Written),
        (Work::Write, FileState::Fresh),
        (Work::Write, FileState::Truncated),
        (Work::Write, FileState::Allocated),
        (Work::Discard, FileState::Allocated),
    ] {
        let samples = target.run(&phase(work, file, Pattern::Sequential)).unwrap();
        assert!(samples.latency.count > 0, "{work:?} {file:?}: {samples:?}");
    }
    let flush = phase(Work::Flush, FileState::Written, Pattern::Random);
    let flush = Phase { depth: 1, ..flush };
    assert!(target.run(&flush).unwrap().latency.count > 0);
    let reads = phase(Work::Read, FileState::Written, Pattern::Random);
    let discards = phase(Work::Discard, FileState::Filled, Pattern::Sequential);
    for phase in [flush, Phase { depth: 1, ..discards }] {
        let (first, second) = target.run_concurrently(&reads, &phase).unwrap();
        assert!(first.requests > 0 && second.requests > 0, "{first:?} {second:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_machine_that_sleeps_during_a_phase_is_noticed() {
    static SECONDS: AtomicU64 = AtomicU64::new(0);
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
    target.slept = || Duration::from_secs(SECONDS.fetch_add(60, Relaxed));
    let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    let error = target.run(&blank).unwrap_err();
    assert!(matches!(&error, Error::Incomplete(text) if text.contains("the machine slept")));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_file_is_filled_with_no_more_than_may_be_written() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
    let mut blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    (blank.request_bytes, blank.bound.seconds) = (1 << 20, 60.0);
    target.run(&blank).unwrap();
    let reads = phase(Work::Read, FileState::Written, Pattern::Random);
    for (bytes_max, written) in [(SEGMENT_UNIT - 1, 0), (SEGMENT_UNIT + 1, SEGMENT_UNIT)] {
        let mut discards = phase(Work::Discard, FileState::Filled, Pattern::Sequential);
        discards.bound.bytes_max = bytes_max;
        let (_, samples) = target.run_concurrently(&reads, &discards).unwrap();
        assert_eq!(samples.bytes_written, written);
    }
    target.interrupt.store(true, Relaxed);
    let filled = Files::single(dir.path(), FileState::Filled, 1 << 30, &target.interrupt);
    assert!(matches!(filled, Err(Error::Interrupted)));
}

#[test]
fn little_data_is_in_few_files_that_are_full() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
    (target.info.threads, target.info.rotational) = (16, None);
    let mut blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    blank.depth = 16;
    (blank.request_bytes, blank.bound.seconds) = (1 << 20, 60.0);
    target.run(&blank).unwrap();
    assert_eq!(target.files.files.len(), 2);
    let reads = phase(Work::Read, FileState::Written, Pattern::Random);
    target.run(&Phase { request_bytes: 1 << 20, ..reads }).unwrap();
    blank.bound.bytes_max = 1 << 20;
    let error = target.run(&blank).unwrap_err().to_string();
    assert!(error.contains("less than 4 MiB of data"), "{error}");
}

#[test]
fn small_requests_of_a_disk_that_seeks_go_all_over_its_free_space() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
    target.info.rotational = Some(true);
    let mut blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    (blank.request_bytes, blank.bound.bytes_max) = (1 << 20, 128 << 20);
    let samples = target.run(&blank).unwrap();
    assert!(samples.bytes_written <= blank.bound.bytes_max * 3 / 2);
    let Some(places) = target.files.places else { return };
    let room = room_in(dir.path()).unwrap() * FREE_PART;
    assert!(places.count * places.apart > room, "what is left is less than what is reserved");
    let largest =
        Phase { request_bytes: 4 << 20, ..phase(Work::Read, FileState::Written, Pattern::Random) };
    assert!(target.run(&largest).unwrap().latency.count > 0);
}

#[test]
fn an_interrupted_phase_ends() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
    let interrupt = Arc::new(AtomicBool::new(true));
    let mut target = DirectoryTarget::open(&disks[0], interrupt).unwrap();
    let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
    assert!(matches!(target.run(&blank), Err(Error::Interrupted)));
}
