//! A block device that hangs under direct requests, which no thread has to wait
//! for: dropping their engine ends all the same.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use forebay::DirectFile;
use forebay::engine::{BackendChoice, Engine, Operation};

use crate::backends::skipped;
use crate::bench::{BLOCK, Bench, ends, filled};
use crate::disk::{Disk, HANGS};

tests_of! { IoUring io_uring, LinuxAio linux_aio, Threads threads;
    an_engine_on_a_device_that_hangs,
}

/// A loop device, which is detached when it is dropped.
struct Device(String);

impl Device {
    /// `None` where this system makes none; it says why.
    fn of(path: &Path) -> Option<Self> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on", "--sector-size", "4096"]);
        match losetup.arg(path).output() {
            Ok(made) if made.status.success() => {
                Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
            }
            Ok(refused) => {
                skipped(String::from_utf8_lossy(&refused.stderr));
                None
            }
            Err(error) => {
                skipped(error);
                None
            }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

fn an_engine_on_a_device_that_hangs(backend: BackendChoice) {
    let Some(bench) = Bench::new(backend, Disk::default()) else { return };
    let Some(device) = Device::of(bench.served.path()) else { return };
    let file = DirectFile::options().read(true).open(&device.0).unwrap();
    assert!(file.is_direct());
    let mut engine = Engine::new(&bench.engine).unwrap();
    for block in 0..4 {
        let offset = HANGS.start + block * BLOCK as u64;
        engine.push(block, Operation::read(file.clone(), offset, filled(0))).unwrap();
    }
    engine.push(4, Operation::read(file.clone(), 0, filled(0))).unwrap();
    let completed = loop {
        engine.submit_and_wait(None).unwrap();
        if let Some(completed) = engine.pop() {
            break completed;
        }
    };
    assert_eq!((completed.token, completed.result.unwrap()), (4, BLOCK));
    engine.submit_and_wait(Some(Duration::from_millis(10))).unwrap();
    assert_eq!(engine.in_flight(), 4);
    ends("dropping the engine", || drop(engine));
    // The reads fail, and the device can go.
    drop((bench, file));
}
