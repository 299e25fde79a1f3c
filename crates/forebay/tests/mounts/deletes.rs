//! Power cuts of the disk, and kills of the process, while files are deleted. `POWER_CUTS` says how
//! many of each, on each kind of file system.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use forebay::{Deleter, DeleterOptions};
use forebay_load::Rng;
use forebay_serve::{ServeConfig, WriteCacheConfig};

use crate::loop_mount::listing;
use crate::served::{ServedFileSystem, fast_disk};

const MIB: u64 = 1 << 20;
/// Names the directory to the process that deletes.
const DELETER: &str = "FOREBAY_TEST_DELETER";
/// Files in each round; every other one is to be deleted.
const FILES: u64 = 50;

/// How often the power goes, and each process is killed.
fn cuts() -> u64 {
    std::env::var("POWER_CUTS").map_or(2, |cuts| cuts.parse().unwrap())
}

/// On a disk with a write cache that may lose all of it.
fn file_system(kind: &'static str) -> Option<ServedFileSystem> {
    let write_cache = Some(WriteCacheConfig { size: 64 * MIB, seed: 3 });
    let config =
        ServeConfig { sector: 4096, write_cache, realtime: false, ..ServeConfig::new(320 * MIB) };
    let mkfs: &[&str] = if kind == "ext4" { &["-J", "size=4"] } else { &[] };
    ServedFileSystem::of(kind, fast_disk(), &config, mkfs, "discard")
}

/// What file `n` of a round consists of.
fn content(seed: u64, n: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed, &[n]);
    let len = match n % 5 {
        0 => MIB + rng.below(2 * MIB),
        _ => 1 + rng.below(100_000),
    };
    let byte = rng.below(255) as u8;
    (0..len).map(|at| byte.wrapping_add((at / 4096) as u8)).collect()
}

/// The files of a round, durable.
fn make(dir: &Path, seed: u64) {
    fs::create_dir_all(dir).unwrap();
    for n in 0..FILES {
        fs::write(dir.join(n.to_string()), content(seed, n)).unwrap();
    }
    rustix::fs::syncfs(File::open(dir).unwrap()).unwrap();
}

fn to_delete(dir: &Path) -> Vec<PathBuf> {
    (0..FILES).step_by(2).map(|n| dir.join(n.to_string())).collect()
}

/// A deleter for the directory. What is on its disk costs nothing.
fn deleter(dir: &Path, seed: u64) -> Deleter {
    let scheduler = listing(dir).build().unwrap();
    let class = scheduler.add_class("deletes", 100).unwrap();
    let options = DeleterOptions::new().free_bytes_min(Some(0)).in_place(seed % 4 == 3);
    // Slow and fast ones are cut at different places.
    let options = if seed.is_multiple_of(2) { options.rate(40 * MIB) } else { options };
    Deleter::new(&class, options).unwrap()
}

/// After whatever happened: those that were removed are gone, all others are as they were, and
/// another deleter deletes what was left.
fn check(dir: &Path, seed: u64, removed: &BTreeSet<u64>) {
    let check_files = || {
        for n in 0..FILES {
            match fs::read(dir.join(n.to_string())) {
                Ok(found) => {
                    assert!(!removed.contains(&n), "{seed}: {n} is there");
                    assert!(found == content(seed, n), "{seed}: {n} is another");
                }
                Err(error) => assert!(n % 2 == 0, "{seed}: {n}: {error}"),
            }
        }
    };
    check_files();
    let deleter = deleter(dir, 0);
    deleter.empty_trash(dir).wait().unwrap();
    deleter.drain().wait().unwrap();
    check_files();
    assert!(!dir.join(".forebay-trash").exists(), "{seed}: something is left");
}

pub(crate) fn removed_files_stay_removed_after_power_cuts() {
    for kind in ["ext4", "xfs"] {
        let Some(mut on) = file_system(kind) else { return };
        let mut kept = 0;
        for seed in 0..cuts() {
            let dir = on.point.join("data");
            make(&dir, seed);
            let removed = delete_until_the_power_goes(&on, &dir, seed);
            kept += removed.len();
            assert!(on.start_again("discard"), "{kind}, {seed}: no file system is left");
            check(&dir, seed, &removed);
            fs::remove_dir_all(&dir).unwrap();
        }
        let cache = on.disk().write_cache().unwrap();
        eprintln!(
            "{kind}: {kept} files removed in {} cuts, {} writes lost",
            cache.cuts, cache.lost
        );
        assert_eq!(cache.cuts, cuts());
        on.check();
    }
}

/// Which were removed before.
fn delete_until_the_power_goes(on: &ServedFileSystem, dir: &Path, seed: u64) -> BTreeSet<u64> {
    let deleter = deleter(dir, seed);
    // while files are removed, and while they are freed
    let writes = if seed % 4 < 2 { 60 } else { 12 };
    on.disk().cut_power_after(1 + Rng::new(seed, &[1]).below(writes));
    let mut removed = BTreeSet::new();
    let mut deletions = Vec::new();
    // some at a time, so that there are several flushes
    for batch in to_delete(dir).chunks(5) {
        for deletion in deleter.delete_all(batch) {
            if deletion.wait_removed().is_ok() {
                let name = deletion.path().file_name().unwrap();
                removed.insert(name.to_str().unwrap().parse().unwrap());
            }
            deletions.push(deletion);
        }
    }
    // It may have needed fewer writes.
    for n in 0.. {
        let path = dir.join(format!("more-{n}"));
        let write = || {
            File::create(path).and_then(|mut file| {
                file.write_all(&[1; 4096])?;
                file.sync_all()
            })
        };
        if write().is_err() {
            break;
        }
    }
    deletions.iter().for_each(|deletion| drop(deletion.wait()));
    // whatever it says of a disk that is off
    drop(deleter.drain().wait());
    removed
}

/// Whether this process is to delete.
pub(crate) fn is_deleter() -> bool {
    std::env::var_os(DELETER).is_some()
}

/// Deletes, and tells of each file that it was removed.
pub(crate) fn run_deleter() -> ExitCode {
    let told = std::env::var(DELETER).unwrap();
    let (seed, dir) = told.split_once(' ').unwrap();
    let dir = Path::new(dir);
    let deleter = deleter(dir, seed.parse().unwrap());
    let mut deletions = Vec::new();
    for batch in to_delete(dir).chunks(5) {
        for deletion in deleter.delete_all(batch) {
            deletion.wait_removed().unwrap();
            println!("{}", deletion.path().file_name().unwrap().to_str().unwrap());
            std::io::stdout().flush().unwrap();
            deletions.push(deletion);
        }
    }
    deletions.iter().for_each(|deletion| {
        deletion.wait().unwrap();
    });
    println!("all");
    ExitCode::SUCCESS
}

pub(crate) fn files_removed_by_a_killed_process_are_deleted_by_the_next() {
    for kind in ["ext4", "xfs"] {
        let Some(on) = file_system(kind) else { return };
        let mut kept = 0;
        for seed in 0..cuts() {
            let dir = on.point.join("data");
            make(&dir, seed);
            let removed = delete_until_killed(&dir, seed);
            kept += removed.len();
            check(&dir, seed, &removed);
            fs::remove_dir_all(&dir).unwrap();
        }
        eprintln!("{kind}: {kept} files removed in {} kills", cuts());
        on.check();
    }
}

fn delete_until_killed(dir: &Path, seed: u64) -> BTreeSet<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(DELETER, format!("{seed} {}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut rng = Rng::new(seed, &[2]);
    let lines = rng.below(FILES / 2 + 1);
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut removed = BTreeSet::new();
    let mut add = |line: String| line.parse().is_ok_and(|n| removed.insert(n));
    for line in told.by_ref().take(lines as usize) {
        add(line);
    }
    std::thread::sleep(std::time::Duration::from_micros(rng.below(20_000)));
    child.kill().unwrap();
    told.for_each(|line| {
        add(line);
    });
    child.wait().unwrap();
    removed
}
