//! Record locks (`fcntl`) of an engine, which end when a descriptor of the file is closed in its
//! descriptor table.

use std::ffi::CString;
use std::fs::File;
use std::future::{Future, IntoFuture};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{AlignedBuf, FileOptions, Op};
use rustix::fs::FlockOperation::NonBlockingLockExclusive;

use crate::{Bed, MIB, contents, pattern, record_lock};

/// A lock may be lost that long after a writer was dropped: more than four times as long as the
/// library has the file open.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// Whether another process sees a lock on the file. It opens the file itself: to close it here would
/// end the lock.
fn is_locked(path: &Path) -> bool {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a string of C, and lives longer than the call.
    record_lock::is_locked(|| unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })
}

/// A file that is locked, and checked after each call: what is lost does not come back.
struct Locked {
    path: PathBuf,
    file: File,
}

impl Locked {
    fn new(bed: &Bed) -> Self {
        let path = bed.dir.path().join("database");
        let file = bed.file("database");
        assert!(!is_locked(&path));
        rustix::fs::fcntl_lock(&file, NonBlockingLockExclusive).unwrap();
        let locked = Self { path, file };
        locked.check("the lock itself");
        locked
    }

    fn check(&self, call: &str) {
        assert!(is_locked(&self.path), "lost by {call}");
    }

    /// Watches it for a while, too.
    fn check_afterwards(&self, call: &str) {
        let begin = Instant::now();
        while begin.elapsed() < AFTERWARDS {
            self.check(call);
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Begins something and drops it.
fn poll_once(future: impl Future) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn a_record_lock_outlives_every_call_of_a_writer_and_its_drop() {
    let bed = Bed::limited(64 * MIB);
    let locked = Locked::new(&bed);
    let mut writer = bed.class.buffered_writer(&locked.file).unwrap().with_dirty_max(8 * MIB);
    locked.check("buffered_writer");
    let data = pattern(3 << 20);
    writer.write_all(&data).unwrap();
    locked.check("write_all");
    writer.write_at(&data, 0).unwrap();
    writer.write_all_at(&data, 5 * MIB).unwrap();
    locked.check("write_all_at");
    smol::block_on(writer.write_at_async(&data, 9 * MIB)).unwrap();
    locked.check("write_at_async");
    writer.write_back().unwrap();
    writer.flush().unwrap();
    writer.seek(SeekFrom::End(-1)).unwrap();
    writer.dirty();
    locked.check("write_back");
    writer.sync_data().unwrap();
    writer.sync_all().unwrap();
    locked.check("sync_all");
    writer.write_all_at(&data, 0).unwrap();
    smol::block_on(writer.sync_data_async()).unwrap();
    smol::block_on(writer.sync_all_async()).unwrap();
    locked.check("sync_all_async");
    writer.write_all_at(&data, 0).unwrap();
    poll_once(writer.sync_data_async());
    locked.check("a flush that was dropped");
    let second = bed.class.buffered_writer(&locked.file).unwrap();
    second.write_all_at(&data, 0).unwrap();
    second.into_inner().unwrap();
    locked.check("into_inner");
    drop(writer);
    locked.check_afterwards("drop");
}

#[test]
fn a_record_lock_outlives_what_a_writer_left_to_the_kernel() {
    let bed = Bed::stopped();
    let locked = Locked::new(&bed);
    for _ in 0..4 {
        let mut writer = bed.class.buffered_writer(&locked.file).unwrap();
        writer.write_all(&pattern(3 << 20)).unwrap();
    }
    locked.check_afterwards("drop");
    assert!(bed.class.page_cache_counters().left_to_kernel > 0);
}

#[test]
fn a_record_lock_outlives_every_call_of_a_class_and_a_scheduler() {
    let bed = Bed::new();
    let locked = Locked::new(&bed);
    let file = &locked.file;
    for _ in 0..2 {
        Write::write_all(&mut &*file, &pattern(3 << 20)).unwrap();
        bed.class.sync_data(file).unwrap();
        locked.check("Class::sync_data");
        bed.class.sync_all(file).unwrap();
        locked.check("Class::sync_all");
        bed.class.read_at(file, &mut [0; 10], 0).unwrap();
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        bed.class.read_at(file, &mut [0; 10], 0).unwrap();
        locked.check("Class::read_at");
    }
    drop(bed.class.admit_for(file, Op::Read, 4096).wait().unwrap());
    drop(smol::block_on(bed.class.admit_for(file, Op::Write, 4096).into_future()).unwrap());
    for (_, part) in bed.class.admit_for(file, Op::Read.at(0), 4 * MIB).in_parts().unwrap() {
        drop(part.wait().unwrap());
    }
    locked.check("admit_for");
    drop(bed.scheduler.disk_of(&locked.path).unwrap());
    drop(bed.scheduler.disk_of_file(file).unwrap());
    locked.check("disk_of_file");
    locked.check_afterwards("a class");
}

/// The engine has given its descriptor away, and closes it with the file.
#[test]
fn a_record_lock_lasts_as_long_as_the_file_of_a_scheduler() {
    let bed = Bed::new();
    let path = bed.dir.path().join("database");
    let options = FileOptions::new().read(true).write(true).create(true).direct(false);
    for from_fd in [true, false] {
        let file = if from_fd {
            bed.scheduler.file_from_fd(bed.file("database")).unwrap()
        } else {
            bed.scheduler.open(&path, &options).unwrap()
        };
        rustix::fs::fcntl_lock(file.direct_file(), NonBlockingLockExclusive).unwrap();
        let check = |call: &str| assert!(is_locked(&path), "lost by {call}");
        let block = || AlignedBuf::new(4096, 4096).unwrap();
        let (written, block) = file.write_at(&bed.class, block(), 0).wait().into_result().unwrap();
        assert_eq!(written, 4096);
        check("File::write_at");
        file.read_at(&bed.class, block, 0).wait().into_result().unwrap();
        check("File::read_at");
        file.sync_data(&bed.class).wait().unwrap();
        check("File::sync_data");
        drop(file.clone());
        check("a clone that was dropped");
        drop(file);
    }
}

/// From now on the system refuses the calling thread, and those that it starts, tables of their own.
fn refuse_tables() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let refused = SeccompFilter::new(
        [(libc::SYS_close_range, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    seccompiler::apply_filter(&BpfProgram::try_from(refused.unwrap()).unwrap()).unwrap();
}

#[test]
fn without_a_table_of_its_own_a_writer_uses_the_engines_descriptor_and_leaves_the_lock() {
    let refused = || {
        refuse_tables();
        let bed = Bed::limited(MIB);
        let locked = Locked::new(&bed);
        let mut writer = bed.class.buffered_writer(&locked.file).unwrap();
        writer.write_all(&pattern(64 << 10)).unwrap();
        writer.sync_data().unwrap();
        assert_eq!(bed.admitted(), 64 << 10);
        writer.write_all(&pattern(8 << 20)).unwrap();
        drop(writer);
        locked.check("drop");
        // What waits has no descriptor to be written with.
        assert!(bed.class.page_cache_counters().left_to_kernel >= 4 * MIB);
        assert_eq!(bed.class.permit_counters().queued, 0);
        let Locked { path, file } = locked;
        drop(file);
        // Its number is another file's now.
        let other = bed.file("other");
        thread::sleep(Duration::from_secs(1));
        assert!(!is_locked(&path), "something holds the file that its engine has closed");
        drop(other);
        assert_eq!(contents(&path), [pattern(64 << 10), pattern(8 << 20)].concat());
    };
    thread::spawn(refused).join().unwrap();
}
