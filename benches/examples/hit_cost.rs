//! What a read from the page cache costs through a class, alongside `pread`, and alongside
//! `preadv2` with `RWF_NOWAIT`, which is the call that such a read makes: random reads that all
//! hit, in turns.
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --example hit_cost -- [DIRECTORY]
//! [ROUNDS] [MIB]   (., 15, 64)
//! ```

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;
use std::{env, thread};

use forebay::Scheduler;
use rustix::io::{ReadWriteFlags, preadv2};
use rustix::time::{ClockId, clock_gettime};

/// Bytes that a thread reads in a turn at most, and how often it reads: some ten milliseconds, so
/// that the machine is as fast in one turn as in the next.
const TURN_LEN: u64 = 100 << 20;
const TURN_READS: u64 = 10_000;

type Read<'a> = &'a (dyn Fn(&mut [u8], u64) -> io::Result<usize> + Sync);

/// Nanoseconds that this thread has had a processor.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of a processor per read of `len` bytes in a file of `file_len`.
fn turn(threads: u64, len: usize, file_len: u64, read: Read<'_>) -> io::Result<f64> {
    let places = file_len / len as u64;
    let count = (TURN_LEN / len as u64).min(TURN_READS);
    let one = |seed: u64| {
        let (mut buffer, mut state) = (vec![0; len], seed);
        let begin = thread_time();
        for _ in 0..count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let got = read(&mut buffer, (state >> 33) % places * len as u64)?;
            assert_eq!(got, len, "all of it is there");
        }
        Ok((thread_time() - begin) / count as f64)
    };
    let took: io::Result<Vec<f64>> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|seed| scope.spawn(move || one(seed))).collect();
        running.into_iter().map(join).collect()
    });
    Ok(took?.iter().sum::<f64>() / threads as f64)
}

fn join(thread: ScopedJoinHandle<'_, io::Result<f64>>) -> io::Result<f64> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The quarters of some figures: one in four is below the first.
fn quarters(all: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut all: Vec<_> = all.collect();
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| all[(all.len() - 1) * quarter / 4])
}

fn file_in(dir: &Path, len: u64) -> io::Result<File> {
    let path = dir.join(format!("hit-cost-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    for offset in (0..len).step_by(1 << 20) {
        file.write_all_at(&[7; 1 << 20], offset)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// Each way in turn, `rounds` times; what each costs more than the first.
fn compare(
    ways: &[(&str, Read<'_>)],
    rounds: usize,
    turn: impl Fn(Read<'_>) -> io::Result<f64>,
) -> io::Result<()> {
    for (_, read) in ways {
        turn(read)?;
    }
    let mut took = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for ((_, read), took) in ways.iter().zip(&mut took) {
            took.push(turn(read)?);
        }
    }
    let first = took[0].clone();
    for ((name, _), took) in ways.iter().zip(&took) {
        let [_, median, _] = quarters(took.iter().copied());
        let [low, more, high] = quarters(took.iter().zip(&first).map(|(this, first)| this - first));
        let part = 100.0 * more / quarters(first.iter().copied())[1];
        println!(
            "  {name:24} {median:6.0} ns, {more:+5.0} ({low:+.0} to {high:+.0}), {part:+.1} %"
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let rounds = arguments.next().map_or(Ok(15), |rounds| rounds.parse())?;
    let file_len = arguments.next().map_or(Ok(64), |mib| mib.parse::<u64>())? << 20;
    let class = Scheduler::builder().build()?.add_class("reads", 100)?;
    let file = file_in(&dir, file_len)?;
    let pread = |buffer: &mut [u8], offset| file.read_at(buffer, offset);
    let nowait = |buffer: &mut [u8], offset| {
        Ok(preadv2(&file, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)?)
    };
    let through = |buffer: &mut [u8], offset| class.read_at(&file, buffer, offset);
    let ways: [(&str, Read<'_>); 4] = [
        ("pread", &pread),
        ("pread again", &pread),
        ("preadv2 with RWF_NOWAIT", &nowait),
        ("class.read_at", &through),
    ];
    for (len, threads) in [(4096, 1), (4096, 2), (65_536, 1), (65_536, 2)] {
        println!("{len} bytes, threads: {threads}");
        compare(&ways, rounds, |read| turn(threads, len, file_len, read))?;
    }
    let counters = class.page_cache_counters();
    println!("{} hits, {} misses", counters.hits, counters.misses);
    Ok(())
}
