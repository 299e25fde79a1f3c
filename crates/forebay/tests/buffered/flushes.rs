//! What a flush is charged with.

use std::os::unix::fs::FileExt;

use forebay::Op;

use crate::{Bed, MIB, contents, pattern};

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
