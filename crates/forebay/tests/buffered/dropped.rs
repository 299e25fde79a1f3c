//! What becomes of a file whose writer was dropped while parts of it wait.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Bed, MIB, pattern, until};

/// It takes 0.5 s. What waits for a permit of a stopped class waits for a minute.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_file_whose_writer_was_dropped_can_be_executed_soon() {
    let bed = Bed::stopped();
    let path = bed.dir.path().join("program");
    let file =
        File::options().write(true).create(true).truncate(true).mode(0o755).open(&path).unwrap();
    let mut writer = bed.class.buffered_writer(file).unwrap();
    writer.write_all(&fs::read("/bin/true").unwrap()).unwrap();
    writer.write_all(&vec![0; 2 << 20]).unwrap();
    drop(writer);
    let begin = Instant::now();
    until("the program", || Command::new(&path).status().is_ok());
    assert!(begin.elapsed() < SOON, "a stopped class lets nothing through");
}

/// A write lease is granted where nobody else has the file open.
#[test]
fn a_file_whose_writer_was_dropped_can_be_leased_soon() {
    let bed = Bed::stopped();
    let path = bed.dir.path().join("leased");
    let lease = || {
        let file = File::open(&path).unwrap();
        // SAFETY: the call touches no memory, and the descriptor is open.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0 }
    };
    fs::write(&path, "").unwrap();
    if !lease() {
        return eprintln!("skipped: the file system has no leases");
    }
    let writer = bed.class.buffered_writer(bed.file("leased")).unwrap();
    writer.write_all_at(&pattern(3 << 20), 0).unwrap();
    assert!(!lease(), "its writer has it open");
    drop(writer);
    let begin = Instant::now();
    until("the lease", lease);
    assert!(begin.elapsed() < SOON, "a stopped class lets nothing through");
}

/// They waited for their permits, with which they did nothing.
#[test]
fn parts_of_a_dropped_writer_that_get_no_permit_end_and_are_counted() {
    let bed = Bed::stopped();
    let left = || bed.class.page_cache_counters().left_to_kernel;
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    // More parts than ask for a permit at a time, and a beginning of one.
    writer.write_all_at(&pattern(10 << 20), 0).unwrap();
    writer.write_all_at(&pattern(100), 12 * MIB).unwrap();
    assert!(bed.class.permit_counters().queued > 0);
    assert_eq!((writer.dirty(), left()), (10 * MIB + 4096, 0));
    drop(writer);
    let begin = Instant::now();
    until("the end of all parts", || left() == 10 * MIB + 4096);
    until("the end of all that wait", || bed.class.permit_counters().queued == 0);
    assert!(begin.elapsed() < SOON, "a stopped class lets nothing through");
    let told = bed.scheduler.snapshot().page_cache;
    let told = told.iter().find(|of| of.class == "class").unwrap();
    assert_eq!(told.counters.left_to_kernel, 10 * MIB + 4096);
    // There is room for the same again: nothing is counted as dirty any more.
    let writer = bed.class.buffered_writer(bed.file("next")).unwrap().with_dirty_max(64 * MIB);
    writer.write_all_at(&pattern(64 << 20), 0).unwrap();
}

#[test]
fn parts_with_permits_in_time_are_not_left_to_the_kernel() {
    let bed = Bed::new();
    let writer = bed.class.buffered_writer(bed.file("data")).unwrap();
    writer.write_all_at(&pattern(3 << 20), 0).unwrap();
    drop(writer);
    until("the end of all parts", || bed.admitted() == 3 * MIB);
    assert_eq!(bed.class.page_cache_counters().left_to_kernel, 0);
}
