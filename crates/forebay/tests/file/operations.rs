//! Operations sent to I/O threads as they are, where their time went, and how
//! many I/O threads there are.

use std::cell::RefCell;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;

use forebay::engine::{BackendChoice, Operation};
use forebay::{AlignedBuf, Class, DirectFile, DiskConfig, DiskRates, File, Op, Scheduler};

use crate::fixture::{BLOCK, Bed, RATES, filled};

tests_of!(Auto io_uring, LinuxAio linux_aio, Threads threads; operations_come_back_to_be_used_again);

fn operations_come_back_to_be_used_again(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let path = bed.path("data");
    let file = DirectFile::options().read(true).write(true).create(true).open(&path).unwrap();
    let mut operation = Operation::write(file.clone(), 0, filled(BLOCK, 7));
    for _ in 0..2 {
        let (result, same) = bed.disk().submit(&bed.class, operation).wait();
        assert_eq!(result.unwrap(), BLOCK);
        operation = same;
    }
    let read = Operation::read(file, 0, filled(BLOCK, 0));
    let (result, read) = bed.disk().submit(&bed.class, read).wait();
    assert_eq!(result.unwrap(), BLOCK);
    assert_eq!(read.into_buffer::<AlignedBuf>().unwrap()[..], filled(BLOCK, 7)[..]);
    let unlink = Operation::unlink(&path, 0).unwrap();
    let (result, _) = bed.disk().submit(&bed.class, unlink).wait();
    assert_eq!(result.unwrap(), 0);
    assert!(!path.exists());
}

#[test]
fn an_unsupported_operation_is_returned_with_the_error() {
    let bed = Bed::new(BackendChoice::Null);
    let null = DirectFile::options().read(true).open("/dev/null").unwrap();
    let read = Operation::read(null, u64::MAX, filled(BLOCK, 0));
    let (result, read) = bed.disk().submit(&bed.class, read).wait();
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(read.into_buffer::<AlignedBuf>().unwrap().len(), BLOCK);
}

#[test]
fn a_request_says_where_its_time_went() {
    let bed = Bed::new(BackendChoice::Auto);
    let file = bed.file();
    let class = &bed.class;
    // More than the window: the write waits in the queue as long as it is held.
    let held = class.on(file.disk()).unwrap().admit(Op::Write, 64 << 20).unwrap().detach();
    let writes: Vec<_> =
        (0..32).map(|_| file.write_at(class, filled(BLOCK, 1), 0).timed()).collect();
    let held_for = std::time::Duration::from_millis(20);
    thread::sleep(held_for);
    drop(held);
    for write in writes {
        let (written, timing) = write.wait();
        assert_eq!(written.into_result().unwrap().0, BLOCK);
        // Also those that waited before the I/O queue, for others of their class.
        assert!(timing.queue_nanos >= held_for.as_nanos() as u64, "{timing:?}");
        assert!(timing.disk_nanos > 0, "{timing:?}");
    }
}

#[test]
fn a_disk_has_no_more_io_threads_than_it_keeps_busy() {
    let io_queues = |rates, asked| {
        let disk = DiskConfig::new("disk", rates);
        let scheduler = Scheduler::builder().disk(disk).io_queues(asked).build().unwrap();
        scheduler.disk("disk").unwrap().io_queues()
    };
    assert_eq!(io_queues(RATES, 8), 8);
    // A window of 9 requests of 4 KiB, of 167 us each.
    let slow = DiskRates { read_iops: 6_000, write_iops: 6_000, ..RATES };
    assert_eq!(io_queues(slow, 8), 2);
    assert_eq!(io_queues(slow, 1), 1);
    let unknown = Scheduler::builder().io_queues(8).build().unwrap();
    assert_eq!(unknown.default_disk().io_queues(), 8);
}

thread_local! {
    static LAST: RefCell<Option<AtItsEnd>> = const { RefCell::new(None) };
}

/// What a thread does when it ends.
struct AtItsEnd {
    file: File,
    class: Class,
    read: Sender<usize>,
}

impl Drop for AtItsEnd {
    fn drop(&mut self) {
        let read = self.file.read_at(&self.class, filled(BLOCK, 0), 0).wait();
        self.read.send(read.into_result().unwrap().0).unwrap();
    }
}

#[test]
fn a_thread_can_wait_for_a_request_while_it_ends() {
    let bed = Bed::new(BackendChoice::Auto);
    let (file, class) = (bed.file(), bed.class.clone());
    file.write_at(&class, filled(BLOCK, 1), 0).wait().into_result().unwrap();
    let (read, answer) = mpsc::channel();
    let thread = thread::spawn(move || {
        // What a thread uses first is gone last.
        LAST.set(Some(AtItsEnd { file: file.clone(), class: class.clone(), read }));
        file.sync_all(&class).wait().unwrap();
    });
    thread.join().unwrap();
    assert_eq!(answer.recv().unwrap(), BLOCK);
}
