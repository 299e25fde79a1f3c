//! Power cuts of the disk, and kills of the process, while an engine writes its log.
//! `POWER_CUTS` says how many of each.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use forebay_load::Rng;
use forebay_serve::{ServeConfig, WriteCacheConfig};

use crate::log_engine::{LogEngine, Means, recover};
use crate::loop_mount::listing;
use crate::served::{ServedFileSystem, fast_disk};

const MIB: u64 = 1 << 20;

/// Names the directory, the means and the seed to the process of an engine.
const ENGINE: &str = "FOREBAY_TEST_LOG_ENGINE";

/// How often the power goes for each means, and each process is killed.
fn cuts() -> u64 {
    std::env::var("POWER_CUTS").map_or(6, |cuts| cuts.parse().unwrap())
}

/// On a disk with a write cache that may lose all of it.
fn file_system(seed: u64, options: &str) -> Option<ServedFileSystem> {
    let write_cache = Some(WriteCacheConfig { size: 64 * MIB, seed });
    let config =
        ServeConfig { sector: 4096, write_cache, realtime: false, ..ServeConfig::new(128 * MIB) };
    ServedFileSystem::new(fast_disk(), &config, &["-J", "size=4"], options)
}

/// What came of an engine whose power went.
struct Outcome {
    promised: u64,
    recovered: u64,
}

/// Two engines write until the power goes at a moment of the seed's; then the machine starts again.
/// `None` if there is no file system left.
fn cut(
    on: &mut ServedFileSystem,
    means: Means,
    syncs: bool,
    options: &str,
    seed: u64,
) -> Option<[Outcome; 2]> {
    let scheduler = listing(&on.point).build().unwrap();
    let dirs = ["one", "two"].map(|name| on.point.join(name));
    let engines = dirs.clone().map(|dir| LogEngine::new(&scheduler, dir, means, syncs, seed));
    on.disk().cut_power_after(1 + Rng::new(seed, &[1]).below(300));
    let promised = thread::scope(|scope| {
        let engines = engines.map(|engine| scope.spawn(|| append_until_it_fails(engine)));
        engines.map(|engine| engine.join().unwrap())
    });
    drop(scheduler);
    if !on.start_again(options) {
        return None;
    }
    let [one, two] = dirs.map(|dir| recover(&dir));
    let outcome = |promised, recovered| Outcome { promised, recovered };
    Some([outcome(promised[0], one), outcome(promised[1], two)])
}

fn append_until_it_fails(mut engine: LogEngine) -> u64 {
    let mut promised = 0;
    while let Ok(records) = engine.append_batch() {
        promised = records;
    }
    promised
}

pub(crate) fn synced_writes_survive_power_cuts() {
    for (kind, means) in (0..).zip(Means::ALL) {
        let Some(mut on) = file_system(kind, "defaults") else { return };
        let (mut promised, mut beyond) = (0, 0);
        for seed in 0..cuts() {
            for log in cut(&mut on, means, true, "defaults", seed).unwrap() {
                let Outcome { promised: most, recovered } = log;
                assert!(recovered >= most, "{means:?}, {seed}: {recovered} of {most}");
                promised += most;
                beyond += recovered - most;
            }
        }
        let cache = on.disk().write_cache().unwrap();
        eprintln!(
            "{means:?}: {promised} records kept in {} cuts, and {beyond} that were not \
                   promised; {} writes lost, {} kept",
            cache.cuts, cache.lost, cache.kept
        );
        assert!(cache.cuts == cuts() && cache.lost > 0 && promised > 0);
        on.check();
    }
}

/// How many cuts lost something that was promised.
fn losses(means: Means, syncs: bool, options: &str) -> Option<u64> {
    let mut lost = 0;
    for seed in 0..cuts() {
        let mut on = file_system(seed, options)?;
        let outcome = cut(&mut on, means, syncs, options, seed);
        let is_lost = |log: &Outcome| log.recovered < log.promised;
        lost += u64::from(outcome.is_none_or(|logs| logs.iter().any(is_lost)));
    }
    eprintln!("{means:?}, {options}: {lost} of {} cuts lost something", cuts());
    Some(lost)
}

pub(crate) fn an_engine_that_leaves_out_its_syncs_loses_records() {
    for means in [Means::Writer, Means::Direct] {
        let Some(lost) = losses(means, false, "defaults") else { return };
        assert!(lost > 0, "{means:?}: a cut costs nothing");
    }
}

pub(crate) fn a_file_system_that_leaves_out_its_flushes_loses_records() {
    for means in Means::ALL {
        let Some(lost) = losses(means, true, "barrier=0") else { return };
        assert!(lost > 0, "{means:?}: a cut costs nothing");
    }
}

/// Whether this process is to be the engine.
pub(crate) fn is_engine() -> bool {
    std::env::var_os(ENGINE).is_some()
}

/// Appends batches for ever, and tells after each how many records are kept.
pub(crate) fn run_engine() -> ExitCode {
    let told = std::env::var(ENGINE).unwrap();
    let [means, seed, dir] = told.splitn(3, ' ').collect::<Vec<_>>()[..] else { unreachable!() };
    let means = Means::ALL[means.parse::<usize>().unwrap()];
    let scheduler = listing(dir).build().unwrap();
    let (dir, seed) = (Path::new(dir).join("killed"), seed.parse().unwrap());
    let mut engine = LogEngine::new(&scheduler, dir, means, true, seed);
    loop {
        let records = engine.append_batch().unwrap();
        println!("{records}");
        std::io::stdout().flush().unwrap();
    }
}

pub(crate) fn a_killed_engine_has_what_it_synced() {
    let Some(on) = file_system(1, "defaults") else { return };
    for (number, means) in Means::ALL.into_iter().enumerate() {
        let mut promised = 0;
        for seed in 0..cuts() {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .env(ENGINE, format!("{number} {seed} {}", on.point.display()))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let told = BufReader::new(child.stdout.take().unwrap()).lines();
            let batches = Rng::new(seed, &[2]).below(40);
            let mut last = 0;
            for (batch, line) in (0..).zip(told.map_while(Result::ok)) {
                last = line.parse().unwrap();
                if batch == batches {
                    child.kill().unwrap();
                }
            }
            child.wait().unwrap();
            let recovered = recover(&on.point.join("killed"));
            assert!(recovered >= last, "{means:?}, {seed}: {recovered} of {last}");
            promised += recovered;
        }
        eprintln!("{means:?}: {promised} records in {} kills", cuts());
    }
}
