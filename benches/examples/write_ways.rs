//! Sequential writes through the page cache and a flush at their end, in several ways, in turns:
//! `write` alone; with `sync_file_range` to begin the writeback of each MiB; with `RWF_DONTCACHE`
//! (Linux 6.14), which begins it by itself and leaves nothing in memory; and through a
//! [`forebay::BufferedWriter`].
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --example write_ways -- DIR [ROUNDS] [MIB] [KIB]      (., 9, 256, 64)
//! ```
//!
//! writes MIB by KIB at a time. MB/s to the end of the flush, of each way and alongside the first.

use std::env;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay::{Class, Scheduler};
use rustix::io::{ReadWriteFlags, pwritev2};

const METHODS: [&str; 5] =
    ["write", "write again", "sync_file_range", "RWF_DONTCACHE", "buffered writer"];
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
const MIB: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| ".".into()));
    let mut number = |or: u64| arguments.next().map_or(Ok(or), |number| number.parse::<u64>());
    let (rounds, len, at_once) = (number(9)?, number(256)? * MIB, number(64)? << 10);
    let class = Scheduler::builder().build()?.add_class("writes", 100)?;
    let mut rates = [const { Vec::new() }; METHODS.len()];
    for _ in 0..rounds {
        for (way, rates) in METHODS.iter().zip(&mut rates) {
            rates.push(turn(way, &dir, &class, len, at_once as usize)?);
        }
    }
    for (n, way) in METHODS.iter().enumerate() {
        let rate = spread(rates[n].iter().map(|rate| rate / 1e6));
        let part = spread(rates[n].iter().zip(&rates[0]).map(|(this, first)| 100.0 * this / first));
        println!("{way:16} {rate:>28} MB/s, {part:>24} % of write");
    }
    Ok(())
}

/// The median, the least and the most.
fn spread(figures: impl Iterator<Item = f64>) -> String {
    let mut all: Vec<_> = figures.collect();
    all.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1} to {:.1})", all[all.len() / 2], all[0], all[all.len() - 1])
}

/// Bytes per second of one file.
fn turn(way: &str, dir: &Path, class: &Class, len: u64, at_once: usize) -> io::Result<f64> {
    let path = dir.join(format!("write-ways-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    let (data, begin) = (vec![7; at_once], Instant::now());
    if way == "buffered writer" {
        let mut writer = class.buffered_writer(&file)?;
        (0..len).step_by(at_once).try_for_each(|_| writer.write_all(&data))?;
        writer.sync_all()?;
        return Ok(len as f64 / begin.elapsed().as_secs_f64());
    }
    for at in (0..len).step_by(at_once) {
        if way == "RWF_DONTCACHE" {
            let written = pwritev2(&file, &[IoSlice::new(&data)], at, DONTCACHE)?;
            assert_eq!(written, at_once);
        } else {
            file.write_all(&data)?;
        }
        if way == "sync_file_range" && at / MIB != (at + at_once as u64) / MIB {
            begin_writeback(file.as_fd(), at - at % MIB, MIB)?;
        }
    }
    file.sync_all()?;
    Ok(len as f64 / begin.elapsed().as_secs_f64())
}

fn begin_writeback(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
    // SAFETY: the descriptor is open, and the call touches no memory.
    let result = unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
