//! What others do on the I/O threads, where their wakers are called.

use std::io::ErrorKind;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use forebay::BufResult;
use forebay::engine::BackendChoice;

use crate::fixture::{BLOCK, Bed, STUCK, filled};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    a_waker_whose_panic_panics_again_leaves_the_disk_usable,
    an_io_thread_that_would_wait_for_itself_is_told_so,
}

const LONG: Duration = Duration::from_secs(60);

/// Does something, once, where it is woken.
struct Does<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        let work = self.0.lock().unwrap().take();
        work.unwrap()();
    }
}

/// Panics when it is dropped, but not while another panic is under way.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("the mistake of a payload");
        }
    }
}

/// Has the I/O thread of the bed's disk do `work`.
fn on_io_thread(bed: &Bed, work: impl FnOnce() + Send + 'static) {
    let file = bed.file();
    let work = Arc::new(Does(Mutex::new(Some(work))));
    // A write may end before anybody asks for its end.
    loop {
        let waker = Waker::from(Arc::clone(&work));
        let mut write = file.write_at(&bed.class, filled(4 << 20, 1), 0);
        if Pin::new(&mut write).poll(&mut Context::from_waker(&waker)).is_pending() {
            // This comes after it, and so after what is done.
            let BufResult(after, _) =
                file.write_at(&bed.class, filled(BLOCK, 1), 0).wait_timeout(LONG).unwrap();
            after.unwrap();
            while work.0.lock().unwrap().is_some() {
                thread::yield_now();
            }
            return;
        }
    }
}

fn a_waker_whose_panic_panics_again_leaves_the_disk_usable(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let (done, ended) = channel();
    on_io_thread(&bed, move || {
        done.send(()).unwrap();
        panic_any(Bomb);
    });
    ended.recv_timeout(LONG).unwrap();
    for _ in 0..3 {
        let BufResult(result, _) =
            bed.file().write_at(&bed.class, filled(BLOCK, 1), 0).wait_timeout(LONG).unwrap();
        assert_eq!(result.unwrap(), BLOCK);
    }
}

fn an_io_thread_that_would_wait_for_itself_is_told_so(backend: BackendChoice) {
    let bed = Bed::new(backend);
    let stuck = Bed::with(backend, STUCK, 1);
    let (done, ended) = channel();
    // Its own disk, and another, which could wait for this one.
    for bed_of_file in [&bed, &stuck] {
        let (file, class, done) = (bed_of_file.file(), bed_of_file.class.clone(), done.clone());
        let write = move || file.write_at(&class, filled(BLOCK, 1), 0);
        // A burst lets 32 through at once; the next ones wait.
        let _before: Vec<_> = (0..64).map(|_| write()).collect();
        on_io_thread(&bed, move || {
            let waited = write().wait();
            let waited_for_a_time = write().wait_timeout(LONG).unwrap();
            assert!(write().wait_timeout(Duration::ZERO).is_none());
            done.send([waited, waited_for_a_time]).unwrap();
        });
        for BufResult(result, _) in ended.recv_timeout(LONG).unwrap() {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Deadlock);
        }
    }
    assert!(bed.file().sync_data(&bed.class).wait_timeout(LONG).unwrap().is_ok());
}
