//! What permits that order nothing cost (`Policy::Unlimited`): direct random reads and writes of
//! 4 KiB in a file, without the library and with a permit around each, in turns.
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --example permit_cost -- DIR [ROUNDS] [THREADS]      (., 9, 8)
//! ```
//!
//! With `-- count N` it takes N permits and does no I/O, to have the instructions counted:
//! `valgrind --tool=callgrind`.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use std::{env, io};

use forebay::{AlignedBuf, Class, DiskConfig, DiskRates, Op, Policy, Scheduler};

const BLOCK: usize = 4096;
const FILE_LEN: u64 = 64 << 20;
const TURN: Duration = Duration::from_secs(1);
const RATES: DiskRates = DiskRates {
    read_iops: 100_000,
    write_iops: 100_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 1_000_000_000,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let disk = DiskConfig::new("disk", RATES).policy(Policy::Unlimited);
    let scheduler = Scheduler::builder().disk(disk).build()?;
    let class = scheduler.add_class("class", 100)?.on(&scheduler.disks()[0])?;
    if arguments.first().is_some_and(|first| first == "count") {
        let count: u64 = arguments.get(1).map_or(Ok(100_000), |count| count.parse())?;
        for _ in 0..count {
            class.admit(Op::Read, BLOCK as u64)?.complete(&Ok::<(), io::Error>(()));
        }
        return Ok(());
    }
    let file = file_in(Path::new(arguments.first().map_or(".", |dir| dir)))?;
    let rounds = arguments.get(1).map_or(Ok(9), |rounds| rounds.parse())?;
    let threads = arguments.get(2).map_or(Ok(8), |threads| threads.parse())?;
    for op in [Op::Read, Op::Write] {
        compare(&file, op, &class, rounds, threads)?;
    }
    Ok(())
}

fn file_in(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!("permit-cost-{}", std::process::id()));
    let mut options = File::options();
    options.read(true).write(true).create_new(true).custom_flags(libc::O_DIRECT);
    let file = options.open(&path)?;
    std::fs::remove_file(path)?;
    let mut buffer = AlignedBuf::new(1 << 20, BLOCK).map_err(io::Error::other)?;
    buffer.fill(7);
    for offset in (0..FILE_LEN).step_by(1 << 20) {
        file.write_all_at(&buffer, offset)?;
    }
    file.sync_all()?;
    Ok(file)
}

fn compare(file: &File, op: Op, class: &Class, rounds: usize, threads: u64) -> io::Result<()> {
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (class, rates) in [None, Some(class), None].into_iter().zip(&mut rates) {
            rates.push(turn(file, op, class, threads)?);
        }
    }
    let ratios = |n: usize| {
        let mut all: Vec<_> =
            rates[n].iter().zip(&rates[0]).map(|(with, without)| with / without).collect();
        all.sort_by(f64::total_cmp);
        let [first, median, last] = [0, all.len() / 2, all.len() - 1].map(|n| 100.0 * all[n]);
        format!("{median:.1} % ({first:.1} to {last:.1})")
    };
    let mut plain = rates[0].clone();
    plain.sort_by(f64::total_cmp);
    println!(
        "{op:?}: {:.0} per second without; with permits {}, without again {}",
        plain[plain.len() / 2],
        ratios(1),
        ratios(2)
    );
    Ok(())
}

/// Requests per second.
fn turn(file: &File, op: Op, class: Option<&Class>, threads: u64) -> io::Result<f64> {
    let begin = Instant::now();
    let one = move |mut state: u64| {
        let mut buffer = AlignedBuf::new(BLOCK, BLOCK).map_err(io::Error::other)?;
        let mut done = 0;
        while begin.elapsed() < TURN {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (state >> 33) % (FILE_LEN / BLOCK as u64) * BLOCK as u64;
            let permit = class.map(|class| class.admit(op, BLOCK as u64)).transpose()?;
            let result = match op {
                Op::Read => file.read_exact_at(&mut buffer, offset),
                _ => file.write_all_at(&buffer, offset),
            };
            if let Some(permit) = permit {
                permit.complete(&result);
            }
            result?;
            done += 1;
        }
        Ok(done)
    };
    let done: io::Result<u64> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|seed| scope.spawn(move || one(seed))).collect();
        running.into_iter().map(joined).sum()
    });
    Ok(done? as f64 / begin.elapsed().as_secs_f64())
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
