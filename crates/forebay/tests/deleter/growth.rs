//! Files that grow while they are deleted.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use forebay::{DeletedHow, DeleterOptions, UnlinkReason};

use crate::fixture::{Bed, MIB};

/// The writer has the file open: it is unlinked, and the writer keeps all that it wrote.
#[test]
fn a_file_that_its_writer_makes_longer_is_unlinked_and_the_writer_has_it_all() {
    for in_place in [false, true] {
        let bed = Bed::new();
        let path = bed.file("grows", 4 * MIB);
        let options = DeleterOptions::new().always_in_steps(true).rate(8 * MIB);
        let deleter = bed.deleter_with(options.in_place(in_place));
        let mut file = File::options().read(true).append(true).open(&path).unwrap();
        let is_over = AtomicBool::new(false);
        let written = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = 4 * MIB;
                while !is_over.load(Relaxed) && written < 256 * MIB {
                    file.write_all(&[7; 64 << 10]).unwrap();
                    written += 64 << 10;
                }
                written
            });
            let deleted = deleter.delete(&path).wait().unwrap();
            is_over.store(true, Relaxed);
            assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::OpenElsewhere));
            writer.join().unwrap()
        });
        assert!(!path.exists() && written > 4 * MIB);
        let mut data = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut data).unwrap();
        assert!(data.len() as u64 == written && data.iter().all(|byte| *byte == 7));
        deleter.drain().wait().unwrap();
        assert_eq!(bed.names(), [""; 0]);
    }
}

/// Somebody finds it in the trash and appends to it between two steps: the delete ends, and nobody
/// waits for longer than a step.
#[test]
fn a_file_that_is_opened_between_steps_and_grows_is_unlinked() {
    let bed = Bed::new();
    if !bed.has_leases() {
        return eprintln!("skipped: this file system has no leases");
    }
    let options = DeleterOptions::new().always_in_steps(true).rate(4 * MIB);
    let deleter = bed.deleter_with(options.backlog_age_max(None));
    let deletion = deleter.delete(bed.file("grows", 64 * MIB));
    while deletion.progress().bytes_freed == 0 {
        thread::yield_now();
    }
    let entry = fs::read_dir(bed.path(".forebay-trash")).unwrap().next();
    let found: PathBuf = entry.unwrap().unwrap().path();
    let mut file = File::options().append(true).open(&found).unwrap();
    file.write_all(&[8; 1 << 20]).unwrap();
    let deleted = deletion.wait().unwrap();
    assert_eq!(deleted.how, DeletedHow::Unlinked(UnlinkReason::OpenElsewhere));
    assert!(deleted.bytes < 64 * MIB && !found.exists(), "{deleted:?}");
    file.write_all(&[8; 1 << 20]).unwrap();
}
