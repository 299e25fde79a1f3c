//! `forebay disk serve`, from outside: real I/O on its disk.

#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

#[path = "../../../../lab/forebay-serve/tests/served/harness.rs"]
mod harness;
mod serving;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use harness::named;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::Signal;
use serving::{DISK, Serving, figures};

const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    let mounting = named![
        the_disk_appears_and_a_signal_leaves_nothing,
        unmounting_the_disk_ends_the_program,
        bad_ranges_of_the_disk_file_fail_and_the_rest_does_not,
        a_hang_of_the_disk_file_holds_what_it_names_until_it_is_over,
        requests_that_hang_at_the_end_fail,
        discards_and_flushes_are_counted,
        options_change_sector_and_size,
        the_data_is_kept_in_the_file_named,
        properties_say_what_the_disk_can_do,
        a_full_memory_is_told_of,
        a_power_cut_loses_what_was_not_flushed,
    ];
    let on_loop_device = named![
        a_block_device_carries_a_load_and_goes_with_the_disk,
        eight_shards_of_a_load_have_equal_parts_of_the_disk_in_the_order_of_2016,
    ];
    harness::run(&[], &mounting, &on_loop_device)
}

fn read(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0xEE; len];
    file.read_exact_at(&mut data, offset).map(|()| data)
}

fn code(result: io::Result<impl Sized>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

fn the_disk_appears_and_a_signal_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let serving = Serving::start(DISK, &[]);
        assert_eq!(serving.disk().metadata().unwrap().len(), 64 * MIB);
        let file = serving.open();
        file.write_all_at(&[7; 4096], 8192).unwrap();
        assert_eq!(read(&file, 8192, 4096).unwrap(), [7; 4096]);
        drop(file);
        serving.signal(signal);
        let summary = serving.end();
        assert_eq!(figures(&summary, "reads"), [1, 4096, 0]);
        assert_eq!(figures(&summary, "writes"), [1, 4096, 0]);
    }
}

fn unmounting_the_disk_ends_the_program() {
    let serving = Serving::start(DISK, &[]);
    unmount(serving.mountpoint());
    serving.end();
}

/// Root needs no helper program for it.
fn unmount(mountpoint: &Path) {
    if rustix::process::geteuid().is_root() {
        rustix::mount::unmount(mountpoint, UnmountFlags::empty()).unwrap();
    } else {
        let unmounted = Command::new("fusermount3").arg("-u").arg(mountpoint).status();
        assert!(unmounted.unwrap().success());
    }
}

fn bad_ranges_of_the_disk_file_fail_and_the_rest_does_not() {
    let fault = "faults: [{kind: error, offset: 1MB, length: 64kB}]\n";
    let serving = Serving::start(&format!("{DISK}{fault}"), &[]);
    let file = serving.open();
    assert_eq!(code(read(&file, MIB, 4096)), Some(Errno::IO));
    assert_eq!(code(file.write_at(&[1; 4096], MIB + 60 * 1024)), Some(Errno::IO));
    assert!(read(&file, MIB - 4096, 4096).is_ok());
    assert!(file.write_all_at(&[1; 4096], MIB + 64 * 1024).is_ok());
    drop(file);
    serving.signal(Signal::TERM);
    let summary = serving.end();
    assert_eq!(figures(&summary, "reads"), [2, 8192, 1]);
    assert_eq!(figures(&summary, "writes"), [2, 8192, 1]);
}

fn a_hang_of_the_disk_file_holds_what_it_names_until_it_is_over() {
    let fault = "faults: [{kind: hang, from: 0s, to: 3s, offset: 1MB, length: 1MB}]\n";
    let mut serving = Serving::start(&format!("{DISK}{fault}"), &[]);
    let file = serving.open();
    file.write_all_at(&[3; 4096], 0).unwrap();
    let held = serving.open();
    let hanging = thread::spawn(move || read(&held, MIB, 4096));
    while serving.counted("waiting") != [1] {}
    assert_eq!(read(&file, 0, 4096).unwrap(), [3; 4096]);
    assert!(!hanging.is_finished());
    assert_eq!(hanging.join().unwrap().unwrap(), [0; 4096]);
    assert_eq!(serving.counted("waiting"), [0]);
    assert_eq!(serving.counted("reads"), [2, 8192, 0]);
}

fn a_full_memory_is_told_of() {
    let mut serving = Serving::start(DISK, &["--memory", "1MB"]);
    let banner = serving.banner.clone();
    assert!(banner.contains("1048576 bytes of data at most (--memory)"), "{banner}");
    let file = serving.open();
    (0..256).for_each(|block| file.write_all_at(&[1; 4096], block * 4096).unwrap());
    assert_eq!(code(file.write_at(&[1; 4096], MIB)), Some(Errno::NOSPC));
    let said = serving.says("memory for data is full");
    assert!(said.contains("--memory") && said.contains("--backing"), "{said}");
    let whole = Serving::start(DISK, &["--memory", "64MB"]).banner.clone();
    assert!(whole.contains(": 67108864 bytes, sectors"), "{whole}");
}

fn requests_that_hang_at_the_end_fail() {
    let fault = "faults: [{kind: hang, from: 0s}]\n";
    let mut serving = Serving::start(&format!("{DISK}{fault}"), &[]);
    let file = serving.open();
    let hanging = thread::spawn(move || code(read(&file, 0, 4096)));
    while serving.counted("waiting") != [1] {}
    serving.signal(Signal::TERM);
    assert_eq!(hanging.join().unwrap(), Some(Errno::IO));
    assert_eq!(figures(&serving.end(), "waiting"), [1]);
}

fn discards_and_flushes_are_counted() {
    let mut serving = Serving::start(DISK, &[]);
    let file = serving.open();
    file.write_all_at(&[7; 16384], 0).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, punch, 4096, 8192).unwrap();
    fallocate(&file, punch, MIB, MIB).unwrap();
    file.sync_all().unwrap();
    assert_eq!(serving.counted("discards"), [2, 8192 + MIB, 0]);
    assert_eq!(serving.counted("flushes"), [1, 0, 0]);
    file.sync_data().unwrap();
    assert_eq!(serving.counted("flushes"), [2, 0, 0]);
    let expected = [[7; 4096], [0; 4096], [0; 4096], [7; 4096]].concat();
    assert_eq!(read(&file, 0, 16384).unwrap(), expected);
}

fn options_change_sector_and_size() {
    let serving = Serving::start(DISK, &["--sector", "4096", "--capacity", "1MB"]);
    let file = serving.open();
    assert_eq!(file.metadata().unwrap().len(), MIB);
    assert_eq!(code(read(&file, 512, 512)), Some(Errno::INVAL));
    assert!(read(&file, 4096, 4096).is_ok());
}

fn the_data_is_kept_in_the_file_named() {
    let serving = Serving::start(DISK, &["--backing", "data"]);
    serving.open().write_all_at(&[9; 4096], 4096).unwrap();
    let data = fs::read(serving.files.path().join("data")).unwrap();
    assert_eq!(data[4096..8192], [9; 4096]);
    assert_eq!(data.len() as u64, 64 * MIB);
}

fn properties_say_what_the_disk_can_do() {
    let serving = Serving::start(DISK, &["--io-properties", "io.yaml"]);
    let file = serving.files.path().join("io.yaml");
    while !fs::read_to_string(&file).is_ok_and(|text| text.contains("write_bandwidth")) {}
    let text = fs::read_to_string(&file).unwrap();
    for words in ["read_iops: 80000", "write_iops: 80000", "read_bandwidth: 1073741824"] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    assert!(text.contains(serving.disk().to_str().unwrap()), "{text}");
}

fn a_power_cut_loses_what_was_not_flushed() {
    let cache = ["--volatile-cache", "1MB", "--seed", "1"];
    let mut serving = Serving::start(DISK, &[&cache[..], &["--cut-after-writes", "20"]].concat());
    let file = serving.open();
    file.write_all_at(&[7; 4096], 0).unwrap();
    file.sync_all().unwrap();
    let failed = (1..64).find(|block| file.write_at(&[8; 4096], block * 4096).is_err());
    assert_eq!(failed, Some(19));
    serving.says("the power is off");
    assert_eq!(code(read(&file, 0, 4096)), Some(Errno::IO));
    serving.signal(Signal::USR2);
    serving.says("the power is back");
    assert_eq!(read(&file, 0, 4096).unwrap(), [7; 4096]);
    let [cuts, lost, kept] = serving.counted("cuts")[..] else { panic!("three figures") };
    assert_eq!((cuts, lost + kept), (1, 19));
    serving.signal(Signal::USR2);
    serving.says("the power is off");
    assert_eq!(serving.counted("cuts"), [2, lost, kept], "nothing was unflushed");
}

fn a_block_device_carries_a_load_and_goes_with_the_disk() {
    let mut serving = Serving::start(DISK, &["--loop", "--io-properties", "io.yaml"]);
    let device = serving.says("block device:");
    let device = device.trim().trim_start_matches("block device: ").to_owned();
    let file = File::options().write(true).open(&device).unwrap();
    file.write_all_at(&[5; 4096], 4096).unwrap();
    file.sync_all().unwrap();
    assert_eq!(read(&serving.open(), 4096, 4096).unwrap(), [5; 4096]);
    drop(file);
    assert!(Command::new("blkdiscard").arg(&device).status().unwrap().success());
    assert_eq!(serving.counted("discards")[1], 64 * MIB);
    let run = bench(&serving, &device, "parallelism: 2", &["--shards", "1", "--duration", "300ms"]);
    assert_eq!(run["properties"]["read_iops"], 80_000);
    assert_eq!(run["classes"][0]["errors"], 0);
    serving.signal(Signal::TERM);
    serving.end();
    let devices = Command::new("losetup").arg("--all").output().unwrap();
    assert!(!String::from_utf8_lossy(&devices.stdout).contains(&device), "{devices:?}");
}

/// What `bench` says of random reads on the block device of the disk.
fn bench(serving: &Serving, device: &str, load: &str, arguments: &[&str]) -> serde_json::Value {
    let jobs = serving.files.path().join("jobs.yaml");
    let job = "{name: reads, type: randread, data_size: 2MB, shards: all, shard_info: ";
    fs::write(&jobs, format!("- {job}{{{load}}}}}\n")).unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_forebay"));
    bench.arg("bench").arg(jobs).args(["--overwrite-device", "--format", "json"]);
    bench.args(["--warmup", "0s", "--dir", device]).args(arguments);
    bench.arg("--properties").arg(serving.files.path().join("io.yaml"));
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// One shard had nearly all of it. A thread that the machine does not let run asks for less than
/// its part, so the bound is generous; exactness is shown in simulations.
fn eight_shards_of_a_load_have_equal_parts_of_the_disk_in_the_order_of_2016() {
    let slow = DISK.replace("50us", "500us");
    let mut serving = Serving::start(&slow, &["--loop", "--io-properties", "io.yaml"]);
    let device = serving.says("block device:");
    let device = device.trim().trim_start_matches("block device: ").to_owned();
    let order = ["--policy", "2016", "--concurrency", "8", "--shards", "8", "--duration", "2s"];
    let run = bench(&serving, &device, "parallelism: 16, shares: 100", &order);
    let requests = |shard: &serde_json::Value| shard["classes"][0]["requests"].as_u64().unwrap();
    let by_shard: Vec<u64> = run["shards"].as_array().unwrap().iter().map(requests).collect();
    let (least, most) = (by_shard.iter().min().unwrap(), by_shard.iter().max().unwrap());
    println!("{by_shard:?}");
    assert!(by_shard.len() == 8 && least * 2 >= *most, "{by_shard:?}");
    serving.signal(Signal::TERM);
    serving.end();
}
