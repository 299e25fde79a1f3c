//! Permits for what is on a disk.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use forebay::{AdmitError, AdmitFor, DirectFile, Disk, FileOptions, Op, Scheduler};

use crate::{disk, two_disks};

/// Permits that have ended on a disk.
fn ended(disk: &Disk) -> u64 {
    disk.permit_counters().completed
}

#[test]
fn a_permit_is_charged_to_the_disk_of_what_it_is_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    fs::write(&path, "data").unwrap();
    let builder = Scheduler::builder().disk(disk("first"));
    let scheduler = builder.disk(disk("second").mountpoint(dir.path())).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let [first, second] = ["first", "second"].map(|name| scheduler.disk(name).unwrap());

    let opened = fs::File::open(&path).unwrap();
    let owned = OwnedFd::from(opened.try_clone().unwrap());
    let direct = DirectFile::options().read(true).direct(false).open(&path).unwrap();
    let file = scheduler.open(&path, &FileOptions::new().read(true).direct(false)).unwrap();
    let ask = |n: usize| -> AdmitFor {
        match n {
            0 => class.admit_for(&opened, Op::Read, 4096),
            1 => class.admit_for(&owned, Op::Read, 4096),
            2 => class.admit_for(&opened.as_fd(), Op::Read, 4096),
            3 => class.admit_for(&direct, Op::Read, 4096),
            4 => class.admit_for(&file, Op::Read, 4096),
            5 => scheduler.admit_for(&file, Op::Read, 4096),
            // Whatever disk the class means otherwise.
            _ => class.on(&first).unwrap().admit_for(&second, Op::Read, 4096),
        }
    };
    for n in 0..7 {
        let before = ended(&second);
        drop(ask(n).wait().unwrap());
        drop(ask(n).wait_timeout(Duration::from_secs(60)).unwrap());
        drop(ask(n).try_now().unwrap().unwrap());
        drop(smol::block_on(ask(n).into_future()).unwrap());
        assert_eq!(ended(&second) - before, 4, "{n}");
    }
    drop(class.admit_for(&first, Op::Read, 4096).wait().unwrap());
    assert_eq!(ended(&first), 1);
    let unlisted = class.admit_for(&fs::File::open("/proc/version").unwrap(), Op::Read, 1);
    drop(unlisted.wait().unwrap());
    assert_eq!(ended(&scheduler.default_disk()), 1);
}

#[test]
fn a_permit_that_goes_on_where_one_ended_pays_its_bytes_where_the_disk_seeks() {
    const LEN: u64 = 128 << 10;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    fs::write(&path, "data").unwrap();
    let other = fs::File::create(dir.path().join("other")).unwrap();
    for (seeks, sequential) in [(true, 1_310_720), (false, 5_000_000)] {
        let text = format!(
            "disks:\n  - mountpoint: {}\n    read_iops: 200\n    write_iops: 200\n    \
             read_bandwidth: 100000000\n    write_bandwidth: 100000000\n    seeks: {seeks}\n",
            dir.path().display()
        );
        let scheduler: Scheduler = text.parse().unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let opened = fs::File::options().write(true).open(&path).unwrap();
        let owned = OwnedFd::from(opened.try_clone().unwrap());
        let direct = DirectFile::options().read(true).direct(false).open(&path).unwrap();
        let file = scheduler.open(&path, &FileOptions::new().read(true).direct(false)).unwrap();
        let ask = |n: u64| {
            let access = Op::Write.at(n * LEN);
            match n % 4 {
                0 => class.admit_for(&opened, access, LEN),
                1 => class.admit_for(&owned, access, LEN),
                2 => class.admit_for(&direct, access, LEN),
                _ => scheduler.admit_for(&file, access, LEN),
            }
        };
        let disk = scheduler.disk_of_file(&opened).unwrap();
        let charged = |asked: AdmitFor| {
            let permit = asked.wait().unwrap();
            let charged = disk.in_flight().as_nanos() as u64;
            drop(permit);
            charged
        };
        // a window of 10 ms, in which the disk may have had something else
        let mut prices = vec![charged(ask(0))];
        std::thread::sleep(Duration::from_millis(20));
        prices.extend((1..40).map(|n| charged(ask(n))));
        assert_eq!((prices[0], prices[39]), (5_000_000, sequential), "{prices:?}");
        assert_eq!(charged(class.admit_for(&other, Op::Write.at(40 * LEN), LEN)), 5_000_000);
        assert_eq!(charged(ask(40)), 5_000_000, "the head was elsewhere");
        assert_eq!(charged(class.admit_for(&opened, Op::Write, LEN)), 5_000_000);
    }
}

#[test]
fn a_disk_must_be_the_schedulers() {
    let scheduler = two_disks().build().unwrap();
    let other = two_disks().build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let ask = || class.admit_for(&other.default_disk(), Op::Read, 4096);
    for refused in [ask().wait().map(drop), smol::block_on(ask().into_future()).map(drop)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, AdmitError::OtherScheduler { .. }), "{error}");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput);
    }
    assert!(matches!(ask().try_now().unwrap_err(), AdmitError::OtherScheduler { .. }));
    let empty = class.admit_for(&scheduler.default_disk(), Op::Read, 0);
    assert!(matches!(empty.wait().unwrap_err(), AdmitError::ZeroLength { .. }));
}
