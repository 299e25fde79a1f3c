//! Files of a program that opens them itself.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use forebay::engine::BackendChoice;
use forebay::{BufResult, FileOptions};
use rustix::fs::OFlags;

use crate::fixture::{BLOCK, Bed, filled};

fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

#[test]
fn a_descriptor_is_a_file_on_its_disk_direct_or_buffered_as_it_is() {
    let bed = Bed::new(BackendChoice::Auto);
    let direct_here = bed.file().direct_file().is_direct();
    for direct in [false, true] {
        let mut options = File::options();
        options.read(true).write(true).create(true);
        if direct {
            options.custom_flags(bits(OFlags::DIRECT));
        }
        let Ok(opened) = options.open(bed.path("data")) else {
            eprintln!("skipped: no direct I/O here");
            continue;
        };
        let file = bed.scheduler.file_from_fd(opened).unwrap();
        assert_eq!(file.disk().name(), "disk");
        assert_eq!(file.direct_file().is_direct(), direct && direct_here);
        let BufResult(written, _) = file.write_at(&bed.class, filled(BLOCK, 7), 0).wait();
        assert_eq!(written.unwrap(), BLOCK);
        let BufResult(read, data) = file.read_at(&bed.class, filled(BLOCK, 0), 0).wait();
        assert_eq!((read.unwrap(), data[BLOCK - 1]), (BLOCK, 7));
        // What is not aligned is refused where it has to be, and only there.
        let BufResult(odd, _) = file.read_at(&bed.class, vec![0; 7], 1).wait();
        assert_eq!(odd.is_err(), file.direct_file().is_direct());
    }
}

#[test]
fn a_descriptor_that_ignores_offsets_is_refused() {
    let bed = Bed::new(BackendChoice::Auto);
    let log = || File::options().append(true).create(true).open(bed.path("log")).unwrap();
    let error = bed.scheduler.file_from_fd(log()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = bed.disk().file_from_fd(OwnedFd::from(log())).unwrap_err();
    assert!(error.to_string().contains("O_APPEND"), "{error}");
}

#[test]
fn a_disk_takes_a_descriptor_as_its_own() {
    let bed = Bed::new(BackendChoice::Auto);
    let opened = File::create(bed.path("data")).unwrap();
    let disk = bed.scheduler.default_disk();
    let file = disk.file_from_fd(opened).unwrap();
    assert_eq!(file.disk().name(), disk.name());
    file.write_at(&bed.class, vec![7; 5], 0).wait().into_result().unwrap();
    assert_eq!(std::fs::read(bed.path("data")).unwrap(), [7; 5]);
}

#[test]
fn a_file_without_a_name_is_opened_with_custom_flags() {
    let bed = Bed::new(BackendChoice::Auto);
    let options = FileOptions::new().read(true).write(true).mode(0o600);
    let file = bed.scheduler.open(bed.dir(), &options.custom_flags(bits(OFlags::TMPFILE)));
    let Ok(file) = file else {
        eprintln!("skipped: no O_TMPFILE here");
        return;
    };
    file.write_at(&bed.class, filled(BLOCK, 1), 0).wait().into_result().unwrap();
    assert_eq!(file.disk().name(), "disk");
    assert_eq!(bed.dir().read_dir().unwrap().count(), 0);
}

/// Its path leads nowhere any more when its disk is looked up.
#[test]
fn the_disk_of_a_file_is_that_of_its_descriptor_whatever_its_path_is_now() {
    let bed = Bed::new(BackendChoice::Auto);
    let kept = File::create(bed.path("data")).unwrap();
    std::fs::remove_file(bed.path("data")).unwrap();
    let path = format!("/proc/self/fd/{}", kept.as_raw_fd());
    let file = bed.scheduler.open(path, &FileOptions::new().read(true).write(true)).unwrap();
    assert_eq!(file.disk().name(), "disk");
    let BufResult(written, _) = file.write_at(&bed.class, filled(BLOCK, 7), 0).wait();
    assert_eq!(written.unwrap(), BLOCK);
}
