//! What the disk does and no permit was for: by the kernel's counters, against known mixtures.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use forebay::metrics::{DeviceTraffic, Traffic};
use forebay::{AlignedBuf, Class, DiskConfig, Op, Scheduler};
use rustix::fs::{Advice, fadvise};

use crate::loop_mount::{Lab, RATES, listing, mount, system};
use crate::places::overlay;

const MIB: u64 = 1 << 20;

/// Runs this test by itself: what the kernel counts of a process is that of all its threads.
fn is_alone(name: &str) -> bool {
    if std::env::var_os("FOREBAY_TEST_ALONE").is_some() {
        return true;
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", name]).env("FOREBAY_TEST_ALONE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
    eprintln!("{errors}");
    false
}

fn file(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn direct(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.custom_flags(libc::O_DIRECT).open(path).unwrap()
}

fn traffic(scheduler: &Scheduler, disk: &str) -> DeviceTraffic {
    let snapshot = scheduler.snapshot();
    snapshot.disks.into_iter().find(|found| found.name == disk).unwrap().traffic
}

/// A disk with a file system that does nothing by itself.
fn disk() -> (Lab, PathBuf) {
    let lab = Lab::new(512 * MIB);
    let at_once = "lazy_itable_init=0,lazy_journal_init=0";
    system("mkfs.ext4", &["-q", "-E", at_once, &lab.device]);
    let on = lab.dir("disk");
    mount(&["-t", "ext4", &lab.device], &on);
    drain(&on);
    (lab, on)
}

/// Another process, which has done what it had to. Once it was waited for, the kernel counts what
/// it did for this one.
fn another(dd: &[&str]) -> Child {
    let mut child = Command::new("dd").args(dd).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child
}

/// What is dirty there gets to the disk.
fn drain(on: &Path) {
    rustix::fs::syncfs(File::open(on).unwrap()).unwrap();
}

/// This many MiB, written around the page cache with a permit each.
fn write_direct(class: &Class, file: &File, mib: u64) {
    let mut page = AlignedBuf::new(256 << 10, 4096).unwrap();
    page.fill(7);
    for at in 0..mib * 4 {
        let permit = class.admit(Op::Write, 256 << 10).unwrap();
        permit.complete(&file.write_all_at(&page, at % 128 * (256 << 10)));
    }
}

fn close(what: &str, bytes: u64, mib: u64, of: u64) {
    let off = bytes.abs_diff(mib * MIB) as f64 / of as f64;
    eprintln!("{what}: {:.1} MiB for {mib}, {:.2} % off", bytes as f64 / 1048576.0, off * 100.0);
    assert!(off <= 0.05, "{what}: {bytes} bytes for {mib} MiB");
}

/// How many rounds of 600 ms: 6, or for this many seconds as `ESCAPES_SECONDS` says.
fn rounds() -> u64 {
    let seconds = std::env::var("ESCAPES_SECONDS");
    seconds.map_or(6, |seconds| (seconds.parse::<u64>().unwrap() * 10).div_ceil(6).max(2))
}

pub(crate) fn unscheduled_io_is_measured_in_a_known_mixture() {
    if !is_alone("escapes::unscheduled_io_is_measured_in_a_known_mixture") {
        return;
    }
    let (lab, on) = disk();
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let mut others = Vec::new();
    let direct = direct(&on.join("direct"));
    write_direct(&class, &direct, 32);
    let before = traffic(&scheduler, "disk");
    let writer = class.buffered_writer(file(&on.join("writer"))).unwrap();
    let rounds = rounds();
    for round in 0..rounds {
        // what is written again was on the disk long before
        let place = round % 12;
        file(&on.join("plain")).write_all_at(&vec![7; 12 << 20], place * 12 * MIB).unwrap();
        write_direct(&class, &direct, 8);
        writer.write_all_at(&vec![7; 4 << 20], place * 4 * MIB).unwrap();
        let other = format!("of={}", on.join(format!("other-{place}")).display());
        others.push(another(&["if=/dev/zero", &other, "bs=1M", "count=4", "conv=fsync"]));
        thread::sleep(Duration::from_millis(600));
        if round % 2 == 1 {
            drain(&on);
        }
    }
    let live = traffic(&scheduler, "disk");
    writer.sync_data().unwrap();
    drain(&on);
    let after = traffic(&scheduler, "disk");
    eprintln!("{live}\n{after}");
    let written = after.written.since(&before.written);
    let Traffic { done, admitted, unscheduled, of_this_process, .. } = written;
    close("done", done, rounds * 28, done);
    close("admitted", admitted, rounds * 12, done);
    close("in no class", unscheduled, rounds * 16, done);
    close("of this process", of_this_process, rounds * 12, done);
    close("unknown", written.unknown(), rounds * 4, done);
    let name = lab.device.trim_start_matches("/dev/");
    assert_eq!((after.device.as_str(), after.unknown_because), (name, None));
    assert!(after.unattributed < 8 * MIB, "{} after it was drained", after.unattributed);
    others.iter_mut().for_each(|other| assert!(other.wait().unwrap().success()));
}

pub(crate) fn dirty_bytes_are_shown_until_they_are_written() {
    if !is_alone("escapes::dirty_bytes_are_shown_until_they_are_written") {
        return;
    }
    let (_lab, on) = disk();
    let scheduler = listing(&on).build().unwrap();
    let before = traffic(&scheduler, "disk");
    let file = file(&on.join("plain"));
    file.write_all_at(&vec![7; 40 << 20], 0).unwrap();
    let live = traffic(&scheduler, "disk");
    let written = live.written.since(&before.written).of_this_process;
    let bounds = written..=written + live.unattributed;
    assert!(*bounds.end() >= 40 * MIB, "{bounds:?}");
    drain(&on);
    let after = traffic(&scheduler, "disk");
    let written = after.written.since(&before.written).of_this_process;
    assert!(bounds.contains(&(written - written % MIB)), "{written} in {bounds:?}");
    // what is cut off before it is written is not waited for
    file.write_all_at(&vec![8; 40 << 20], 40 * MIB).unwrap();
    file.set_len(40 * MIB).unwrap();
    let cut = traffic(&scheduler, "disk");
    assert!(cut.unattributed < 8 * MIB, "{}", cut.unattributed);
}

/// Permits around buffered writes, while older ones are written back.
fn write_with_permits(class: &Class, on: &Path, flushes: bool) {
    let file = file(&on.join(if flushes { "flushed" } else { "unflushed" }));
    let data = vec![7; 256 << 10];
    let (rounds, later) = if flushes { (16, 0) } else { (16, 10) };
    for round in 0..rounds + later {
        let until = Instant::now() + Duration::from_millis(250);
        for part in 0..if round < rounds { 16 } else { 0 } {
            let permit = class.admit(Op::Write, 256 << 10).unwrap();
            file.write_all_at(&data, (round * 16 + part) * (256 << 10)).unwrap();
            if flushes {
                file.sync_data().unwrap();
            }
            drop(permit);
        }
        // as the kernel does with what has been dirty for some time
        if later > 0 && round >= later {
            write_back(&file, (round - later) * 16 * (256 << 10), 16 * (256 << 10));
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    drain(on);
}

fn write_back(file: &File, at: u64, len: u64) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open, and the call touches no memory.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), at as i64, len as i64, 7) };
    assert_eq!(result, 0);
}

pub(crate) fn permits_that_end_before_the_disk_works_cover_nothing() {
    if !is_alone("escapes::permits_that_end_before_the_disk_works_cover_nothing") {
        return;
    }
    let (_lab, on) = disk();
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    for flushes in [false, true] {
        let before = traffic(&scheduler, "disk");
        write_with_permits(&class, &on, flushes);
        let after = traffic(&scheduler, "disk").written.since(&before.written);
        let part = after.unscheduled as f64 / after.done as f64;
        eprintln!("flushes {flushes}: {after}");
        assert!(after.admitted == 64 * MIB && after.done >= 64 * MIB, "{after}");
        assert!(if flushes { part <= 0.2 } else { part >= 0.75 }, "flushes {flushes}: {part}");
    }
}

pub(crate) fn reads_that_pass_no_class_are_counted_with_whose_they_are() {
    if !is_alone("escapes::reads_that_pass_no_class_are_counted_with_whose_they_are") {
        return;
    }
    let (_lab, on) = disk();
    let path = on.join("data");
    fs::write(&path, vec![7; 64 << 20]).unwrap();
    drain(&on);
    let scheduler = listing(&on).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let (cached, direct) = (file(&path), direct(&path));
    let before = traffic(&scheduler, "disk");
    let mut page = AlignedBuf::new(1 << 20, 4096).unwrap();
    for at in 0..24 {
        let permit = class.admit(Op::Read, MIB).unwrap();
        permit.complete(&direct.read_exact_at(&mut page, at * MIB));
    }
    fadvise(&cached, 0, None, Advice::DontNeed).unwrap();
    (0..64).for_each(|at| cached.read_exact_at(&mut page, at * MIB).unwrap());
    let of = format!("if={}", path.display());
    let mut other = another(&[&of, "of=/dev/null", "bs=1M", "count=16", "iflag=direct"]);
    let after = traffic(&scheduler, "disk").read.since(&before.read);
    close("done", after.done, 24 + 64 + 16, after.done);
    close("in no class", after.unscheduled, 64 + 16, after.done);
    close("of this process", after.of_this_process, 64, after.done);
    other.wait().unwrap();
    // permits around what memory has hide what others do for a moment, and not for long
    let before = traffic(&scheduler, "disk");
    for at in 0..32 {
        let permit = class.admit(Op::Read, MIB).unwrap();
        permit.complete(&cached.read_exact_at(&mut page, at * MIB));
    }
    thread::sleep(Duration::from_millis(2_500));
    let mut other = another(&[&of, "of=/dev/null", "bs=1M", "count=32", "iflag=direct"]);
    let after = traffic(&scheduler, "disk").read.since(&before.read);
    close("alongside reads from memory", after.unscheduled, 32, after.done);
    assert_eq!(after.of_this_process, 0, "{after}");
    other.wait().unwrap();
}

pub(crate) fn two_schedulers_and_a_reload_under_load_lose_nothing_of_a_disk() {
    if !is_alone("escapes::two_schedulers_and_a_reload_under_load_lose_nothing_of_a_disk") {
        return;
    }
    let (_lab, on) = disk();
    let other = DiskConfig::new("other", RATES).mountpoint(&on);
    let schedulers =
        [listing(&on).build().unwrap(), Scheduler::builder().disk(other).build().unwrap()];
    let before = traffic(&schedulers[0], "disk");
    thread::scope(|scope| {
        for (n, scheduler) in schedulers.iter().enumerate() {
            let file = direct(&on.join(format!("direct-{n}")));
            scope.spawn(move || {
                for round in 0..30 {
                    // classes come and go, and their places are given again
                    let class = scheduler.add_class(&format!("class-{round}"), 100).unwrap();
                    write_direct(&class, &file, 2);
                    scheduler.remove_class(&class).unwrap();
                    thread::sleep(Duration::from_millis(60));
                }
            });
        }
        for _ in 0..20 {
            let text = format!(
                "disks:\n  - mountpoint: {}\n    read_iops: 100000\n    write_iops: 100000\n    \
                 read_bandwidth: 1000000000\n    write_bandwidth: 1000000000\n",
                on.display()
            );
            let properties = forebay::properties::Properties::parse("io-properties", &text);
            schedulers[0].reload(&properties.unwrap()).unwrap();
            thread::sleep(Duration::from_millis(100));
        }
    });
    drain(&on);
    for (scheduler, disk) in schedulers.iter().zip(["disk", "other"]) {
        let after = traffic(scheduler, disk).written.since(&before.written);
        close("done", after.done, 120, after.done);
        close("admitted", after.admitted, 120, after.done);
        close("in no class", after.unscheduled, 0, after.done);
    }
}

pub(crate) fn where_nothing_is_counted_the_reason_is_said() {
    let lab = Lab::new(64 * MIB);
    let (merged, on) = overlay(&lab);
    let memory = lab.dir("memory");
    mount(&["-t", "tmpfs", "none"], &memory);
    let disk = |name: &str, at: &Path| DiskConfig::new(name, RATES).mountpoint(at);
    let builder = Scheduler::builder().disk(disk("memory", &memory));
    let scheduler = builder.disk(DiskConfig::new("nowhere", RATES)).build().unwrap();
    let why = |name: &str| traffic(&scheduler, name).unknown_because.unwrap();
    assert_eq!(why("memory"), "its files are in memory");
    assert_eq!(why("nowhere"), "no mountpoint of the disk is known");
    assert_eq!(why("default"), "no mountpoint of the disk is known");
    let listed = Scheduler::builder().disk(disk("merged", &merged)).build().unwrap();
    let seen = traffic(&listed, "merged");
    assert_eq!((seen.unknown_because, format!("/dev/{}", seen.device)), (None, lab.device.clone()));
    drop(on);
}

pub(crate) fn a_disk_whose_counters_are_switched_off_is_told_apart() {
    let (lab, on) = disk();
    let scheduler = listing(&on).build().unwrap();
    let name = lab.device.trim_start_matches("/dev/");
    let switch = format!("/sys/block/{name}/queue/iostats");
    if fs::write(&switch, "0").is_err() {
        return;
    }
    traffic(&scheduler, "disk");
    fs::write(on.join("data"), vec![7; 1 << 20]).unwrap();
    drain(&on);
    let why = traffic(&scheduler, "disk").unknown_because.unwrap();
    assert!(why.contains(&switch), "{why}");
    fs::write(&switch, "1").unwrap();
    assert_eq!(traffic(&scheduler, "disk").unknown_because, None);
}

pub(crate) fn discards_are_counted_apart() {
    let (_lab, on) = disk();
    let scheduler = listing(&on).build().unwrap();
    let before = traffic(&scheduler, "disk");
    system("fstrim", &[on.to_str().unwrap()]);
    let after = traffic(&scheduler, "disk");
    let discarded = after.discarded.since(&before.discarded);
    assert!(discarded.done > 256 * MIB, "{discarded}");
    assert_eq!((discarded.of_this_process, discarded.unscheduled), (0, discarded.done));
    let written = after.written.since(&before.written).done;
    assert!(written < 16 * MIB, "{written}");
}

pub(crate) fn of_two_disks_each_has_its_own() {
    if !is_alone("escapes::of_two_disks_each_has_its_own") {
        return;
    }
    let disks = [disk(), disk()];
    let listed = |name: &str, on: &Path| DiskConfig::new(name, RATES).mountpoint(on);
    let builder = Scheduler::builder().disk(listed("one", &disks[0].1));
    let scheduler = builder.disk(listed("two", &disks[1].1)).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let class = class.on(&scheduler.disk("two").unwrap()).unwrap();
    let direct = direct(&disks[1].1.join("direct"));
    // what was written at the first moment is known to be done
    write_direct(&class, &direct, 32);
    let names = ["one", "two"];
    let before = names.map(|name| traffic(&scheduler, name).written);
    file(&disks[0].1.join("plain")).write_all_at(&vec![7; 48 << 20], 0).unwrap();
    write_direct(&class, &direct, 48);
    thread::sleep(Duration::from_millis(2_200));
    write_direct(&class, &direct, 16);
    drain(&disks[0].1);
    let after = [0, 1].map(|n| traffic(&scheduler, names[n]).written.since(&before[n]));
    close("done by one", after[0].done, 48, after[0].done);
    close("one, of this process", after[0].of_this_process, 48, after[0].done);
    close("done by two", after[1].done, 64, after[1].done);
    close("two, in no class", after[1].unscheduled, 0, after[1].done);
}
