//! What a flush is charged with.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use forebay::Op;

use crate::{Bed, MIB, contents, pattern, until};

#[test]
fn a_flush_of_an_engines_own_is_charged_with_what_is_dirty() {
    let bed = Bed::new();
    let file = bed.file("data");
    let flushes = || bed.class.permit_counters().operations[Op::Flush.index()];
    for round in 1..=5 {
        file.write_all_at(&vec![round as u8; 3 << 20], 5 * MIB).unwrap();
        file.write_all_at(&[9; 4096], 100 * MIB).unwrap();
        let before = bed.admitted();
        bed.class.sync_data(&file).unwrap();
        let charged = bed.admitted() - before;
        // nothing where the kernel does not say what is dirty; a large page is dirty as a whole
        assert!(charged == 0 || (3 * MIB..=4 * MIB + 8192).contains(&charged), "{charged}");
        bed.class.sync_all(&file).unwrap();
        assert_eq!(bed.admitted() - before, charged, "nothing is dirty any more");
        assert_eq!(flushes(), 2 * round);
    }
}

#[test]
fn a_flush_of_the_callers_comes_after_the_dirt_and_its_error_is_returned() {
    let bed = Bed::new();
    let file = bed.file("data");
    let writer = bed.class.buffered_writer(&file).unwrap();
    let flushes = || bed.class.permit_counters().operations[Op::Flush.index()];
    writer.write_all_at(&pattern(3 << 20), 0).unwrap();
    let flush = || {
        assert_eq!((writer.dirty(), flushes(), bed.admitted()), (0, 0, 3 * MIB));
        file.sync_data()
    };
    writer.sync_with(flush).unwrap();
    assert_eq!(flushes(), 1);
    let error = writer.sync_with(|| Err(std::io::Error::from_raw_os_error(libc::EIO))).unwrap_err();
    let failed = error.get_ref().and_then(|inner| inner.downcast_ref::<forebay::WriteBackError>());
    assert_eq!(failed.and_then(forebay::WriteBackError::raw_os_error), Some(libc::EIO));
}

#[test]
fn parts_that_wait_move_to_the_class_that_the_writer_is_given() {
    let bed = Bed::stopped();
    let before = bed.admitted();
    let file = bed.file("data");
    let writer = bed.class.buffered_writer(&file).unwrap();
    writer.write_all_at(&pattern(5 << 20), 0).unwrap();
    let higher = bed.scheduler.add_class("higher", 1000).unwrap();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| writer.sync_data());
        until("a part", || bed.class.permit_counters().queued > 0);
        writer.set_class(&higher).unwrap();
        flush.join().unwrap().unwrap();
    });
    assert_eq!(higher.permit_counters().bytes[Op::Write.index()], 5 * MIB);
    assert_eq!(bed.admitted(), before);
    let other = forebay::Scheduler::builder().build().unwrap();
    assert!(writer.set_class(&other.default_class()).is_err());
}

#[test]
fn writes_that_reach_the_disk_at_once_are_of_the_class_that_the_writer_is_given() {
    let bed = Bed::new();
    let mut options = File::options();
    options.write(true).create(true).custom_flags(libc::O_DSYNC);
    let file = options.open(bed.dir.path().join("data")).unwrap();
    let writer = bed.class.buffered_writer(file).unwrap();
    let higher = bed.scheduler.add_class("higher", 1000).unwrap();
    writer.write_all_at(&[7; 4096], 0).unwrap();
    writer.set_class(&higher).unwrap();
    writer.write_all_at(&[7; 8192], 4096).unwrap();
    assert_eq!(higher.permit_counters().bytes[Op::Write.index()], 8192);
    assert_eq!(bed.admitted(), 4096);
}

/// In a process of its own, as old filters and sandboxes do it.
#[test]
fn files_are_flushed_whole_where_ranges_cannot_be_written_back() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    const CHILD: &str = "FOREBAY_TEST_WITHOUT_RANGES";
    let name = "flushes::files_are_flushed_whole_where_ranges_cannot_be_written_back";
    let Some(errno) = std::env::var(CHILD).ok().and_then(|errno| errno.parse().ok()) else {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let status = child.args(["--exact", name]).env(CHILD, errno.to_string()).status();
            assert!(status.unwrap().success(), "errno {errno}");
        }
        return;
    };
    let refused = SeccompFilter::new(
        [(libc::SYS_sync_file_range, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let refused = BpfProgram::try_from(refused.unwrap()).unwrap();
    seccompiler::apply_filter(&refused).unwrap();
    let bed = Bed::new();
    let data = pattern(4 << 20);
    let file = bed.file("data");
    let writer = bed.class.buffered_writer(&file).unwrap().with_dirty_max(MIB);
    writer.write_all_at(&data, 0).unwrap();
    writer.sync_data().unwrap();
    assert_eq!(writer.dirty(), 0);
    file.write_all_at(&data, 0).unwrap();
    bed.class.sync_data(&file).unwrap();
    assert_eq!(contents(&bed.dir.path().join("data")), data);
}
