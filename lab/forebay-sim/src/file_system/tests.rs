use std::sync::{Arc, Mutex};

use super::*;

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// When what was sent to the disk.
type Record = Arc<Mutex<Vec<(u64, Command)>>>;

/// Takes a millisecond for each command, any number side by side.
#[derive(Default)]
struct Recording {
    seen: Record,
    due: Due,
}

impl SimDisk for Recording {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.seen.lock().unwrap().push((now.as_nanos(), command));
        self.due.push(Completion { id, at: now.plus_nanos(1_000_000), status: Status::Done });
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.due.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        self.due.next()
    }

    fn rates(&self) -> DiskRates {
        DiskRates { read_iops: 1, write_iops: 1, read_bandwidth: 1, write_bandwidth: 1 }
    }

    fn base_latency(&self) -> Duration {
        Duration::ZERO
    }
}

/// Ten files of 10 MiB, with extents of 4 MiB: three each.
fn mounted(options: FileSystem) -> (Mounted, Record) {
    let disk = Recording::default();
    let seen = disk.seen.clone();
    let (file_size, extent_size) = (10 * MIB, 4 * MIB);
    let area = Area { start: MIB, end: 101 * MIB, file_size, extent_size };
    (Mounted::new(Box::new(disk), options, Areas::new(vec![area])), seen)
}

fn unlink(mounted: &mut Mounted, now: u64, file: u64) {
    let (now, id) = (Time::from_nanos(now), file);
    let offset = MIB + file * 10 * MIB;
    mounted.submit(now, id, Command { op: Op::Discard, offset, len: 10 * MIB });
    assert_eq!(mounted.poll_completion(now).map(|done| (done.id, done.at)), Some((id, now)));
}

/// What the disk got by then: when, in milliseconds, and the MiB of the file's discards.
fn discards(mounted: &mut Mounted, seen: &Record, until: u64) -> Vec<(u64, u64, u64)> {
    assert_eq!(mounted.poll_completion(Time::from_nanos(until)), None);
    let seen = seen.lock().unwrap();
    let discards = seen.iter().filter(|(_, command)| command.op == Op::Discard);
    discards.map(|(at, c)| (at / 1_000_000, c.offset / MIB - 1, c.len / MIB)).collect()
}

#[test]
fn a_file_is_discarded_by_its_extents_after_the_next_write_of_the_log() {
    let (mut mounted, seen) = mounted(FileSystem::default());
    assert_eq!(mounted.next_event(), None);
    unlink(&mut mounted, SECOND, 0);
    assert_eq!(mounted.next_event(), Some(Time::from_nanos(15 * SECOND)));
    assert_eq!(discards(&mut mounted, &seen, 15 * SECOND), []);
    let first = [(15_001, 0, 4), (15_001, 4, 4), (15_001, 8, 2)];
    assert_eq!(discards(&mut mounted, &seen, 16 * SECOND), first);
    unlink(&mut mounted, 16 * SECOND, 3);
    assert_eq!(discards(&mut mounted, &seen, 45 * SECOND), first);
    let all = discards(&mut mounted, &seen, 46 * SECOND);
    assert_eq!(all[3..], [(45_001, 30, 4), (45_001, 34, 4), (45_001, 38, 2)]);
    assert_eq!(mounted.next_event(), None);
}

#[test]
fn any_flush_has_all_discarded_that_was_freed_before_it() {
    let (mut mounted, seen) = mounted(FileSystem::default());
    unlink(&mut mounted, SECOND, 0);
    let flush = Command { op: Op::Flush, offset: 0, len: 0 };
    mounted.submit(Time::from_nanos(2 * SECOND), 77, flush);
    unlink(&mut mounted, 2 * SECOND, 1);
    let done = mounted.poll_completion(Time::from_nanos(3 * SECOND)).unwrap();
    assert_eq!((done.id, done.at), (77, Time::from_nanos(2_001_000_000)));
    let sent = discards(&mut mounted, &seen, 4 * SECOND);
    assert_eq!(sent, [(2001, 0, 4), (2001, 4, 4), (2001, 8, 2)]);
    assert_eq!(discards(&mut mounted, &seen, 16 * SECOND).len(), 6);
}

#[test]
fn a_hole_is_discarded_by_the_pieces_of_extents_in_it() {
    let (mut mounted, seen) = mounted(FileSystem::with_period(Duration::from_secs(1)));
    let hole = Command { op: Op::Discard, offset: 4 * MIB, len: 10 * MIB };
    mounted.submit(Time::ZERO, 5, hole);
    assert!(mounted.poll_completion(Time::ZERO).is_some());
    let sent = discards(&mut mounted, &seen, SECOND);
    assert_eq!(sent, [(501, 3, 1), (501, 4, 4), (501, 8, 2), (501, 10, 3)]);
}

#[test]
fn too_much_that_was_freed_has_the_log_written_early() {
    let (mut mounted, seen) = mounted(FileSystem { pending_max: 4, ..FileSystem::default() });
    for file in 0..3 {
        unlink(&mut mounted, file * SECOND, file);
    }
    let sent = discards(&mut mounted, &seen, 4 * SECOND);
    // a file counts by what its length has of whole extents: two
    assert_eq!((sent.len(), sent[0].0, sent[5].0), (6, 1001, 1001));
}

#[test]
fn so_many_discards_are_in_the_disk_at_a_time() {
    let (mut mounted, seen) = mounted(FileSystem { in_flight: 2, ..FileSystem::default() });
    unlink(&mut mounted, 0, 0);
    unlink(&mut mounted, 0, 1);
    let sent = discards(&mut mounted, &seen, 16 * SECOND);
    let at: Vec<u64> = sent.iter().map(|sent| sent.0).collect();
    assert_eq!(at, [15_001, 15_001, 15_002, 15_002, 15_003, 15_003]);
}

#[test]
fn without_discard_the_disk_learns_nothing() {
    let (mut mounted, seen) = mounted(FileSystem { discard: false, ..FileSystem::default() });
    unlink(&mut mounted, 0, 0);
    assert_eq!(mounted.next_event(), None);
    assert_eq!(discards(&mut mounted, &seen, 100 * SECOND), []);
}

#[test]
fn deletes_write_metadata_in_pieces_before_the_log_is_flushed_with_or_without_discard() {
    for discard in [false, true] {
        let metadata = 150 << 10;
        let (mut mounted, seen) =
            mounted(FileSystem { discard, metadata, ..FileSystem::default() });
        unlink(&mut mounted, 0, 0);
        unlink(&mut mounted, SECOND, 1);
        assert_eq!(mounted.poll_completion(Time::from_nanos(16 * SECOND)), None);
        let seen = seen.lock().unwrap();
        let sent = |op| seen.iter().filter(move |(_, command)| command.op == op);
        let writes: Vec<_> = sent(Op::Write).map(|(at, c)| (at / 1_000_000, c.len >> 10)).collect();
        // at most eight pieces of 32 KiB at a time
        assert_eq!(writes, [vec![(15_000, 32); 8], vec![(15_001, 32), (15_001, 12)]].concat());
        let flushes: Vec<u64> = sent(Op::Flush).map(|(at, _)| at / 1_000_000).collect();
        assert_eq!(flushes, [15_002]);
        assert_eq!(sent(Op::Discard).count(), if discard { 6 } else { 0 });
    }
}
