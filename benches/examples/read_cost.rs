//! What a read costs the processor: random 4 KiB reads at depth 32, through a
//! shard or through the file API with its I/O thread.
//!
//! ```text
//! $ cargo run --release --manifest-path benches/Cargo.toml --example read_cost -- FILE shard|file|task [READS] [auto|io_uring|sqpoll|linux-aio|threads]
//! ```
//!
//! Compare with the same load of fio, in turns, since the machine's speed
//! changes from minute to minute:
//!
//! ```text
//! $ fio --name=fio --filename=FILE --rw=randread --bs=4k --iodepth=32 --direct=1 \
//!       --ioengine=io_uring --number_ios=READS --thread --output-format=json
//! ```
//!
//! Seconds of processor per million reads of a virtual disk (virtio, 100,000
//! reads/s), medians of interleaved runs with real-time priority:
//!
//! | | one processor | two |
//! |---|---|---|
//! | fio | 3.1 | 3.8 |
//! | shard | 3.7 | 4.1 |
//! | file | 3.4 | 6.0 |
//! | task | 3.5 | 6.6 |
//!
//! What two processors cost more is their waking each other, some 15 us each
//! time on a virtual machine.
//!
//! The same on each backend, 200,000 reads, medians and spans of five or seven
//! interleaved runs on another such machine, without that priority:
//!
//! | | one processor | two |
//! |---|---|---|
//! | shard, io_uring | 3.1 (3.1-3.5) | 3.2 (3.1-3.4) |
//! | shard, linux-aio | 3.0 (2.8-3.1) | 3.0 (2.8-3.1) |
//! | shard, threads | 5.9 (5.8-6.2) | 9.3 (8.7-10.2) |
//! | file, io_uring | 3.5 (3.2-3.6) | 3.8 (3.4-4.6) |
//! | file, linux-aio | 3.4 (3.3-4.0) | 4.0 (3.4-5.2) |
//! | file, threads | 6.9 (6.7-7.5) | 10.6 (9.0-13.0) |

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::{AlignedBuf, BufResult, Class, FileOptions, Scheduler};
use rustix::time::{ClockId, clock_gettime};

const BLOCK: usize = 4096;
const DEPTH: usize = 32;
/// As long as the kernel's thread looks for entries with fio.
const SQPOLL_IDLE: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, way, rest @ ..] = &arguments[..] else {
        return Err("give a file, and `shard`, `file` or `task`".into());
    };
    let path = Path::new(path);
    let reads = rest.first().map_or(Ok(1_000_000), |reads| reads.parse())?;
    let engine = engine(rest.get(1))?;
    let mut offsets = Offsets { blocks: path.metadata()?.len() / BLOCK as u64, state: 1 };
    let of_io_threads = EngineConfig { depth_max: 1024, threads_max: 64, ..engine };
    // Nothing is known of the disk, and nothing is held back.
    let scheduler = Scheduler::builder().engine(of_io_threads).build()?;
    let class = scheduler.add_class("reads", 100)?;
    let (start, cpu_start) = (Instant::now(), cpu_time());
    match way.as_str() {
        "shard" => through_a_shard(&scheduler, &engine, &class, path, reads, &mut offsets)?,
        "file" => through_files(&scheduler, &class, path, reads, &mut offsets)?,
        "task" => through_tasks(&scheduler, &class, path, reads, offsets)?,
        _ => return Err("choose `shard`, `file` or `task`".into()),
    }
    let (elapsed, cpu) = (start.elapsed().as_secs_f64(), (cpu_time() - cpu_start).as_secs_f64());
    println!(
        "{way}: {:.0} reads/s, {:.2} s of processor per million reads",
        reads as f64 / elapsed,
        cpu * 1e6 / reads as f64
    );
    Ok(())
}

fn engine(backend: Option<&String>) -> Result<EngineConfig, Box<dyn Error>> {
    let (backend, sqpoll) = match backend.map_or("auto", String::as_str) {
        "auto" => (BackendChoice::Auto, None),
        "io_uring" => (BackendChoice::IoUring, None),
        "sqpoll" => (BackendChoice::IoUring, Some(SQPOLL_IDLE)),
        "linux-aio" => (BackendChoice::LinuxAio, None),
        "threads" => (BackendChoice::Threads, None),
        other => return Err(format!("no backend is called {other}").into()),
    };
    Ok(EngineConfig { backend, sqpoll, ..EngineConfig::default() })
}

fn through_a_shard(
    scheduler: &Scheduler,
    engine: &EngineConfig,
    class: &Class,
    path: &Path,
    reads: usize,
    offsets: &mut Offsets,
) -> Result<(), Box<dyn Error>> {
    let file = FileOptions::new().read(true).open(path)?;
    let mut shard = scheduler.disk_of(path)?.shard(engine)?;
    let mut submitted = 0;
    while submitted < DEPTH.min(reads) {
        let buffer = AlignedBuf::new(BLOCK, BLOCK)?;
        let read = Operation::read(file.clone(), offsets.next(), buffer);
        shard.submit(class, read).map_err(|(error, _)| error)?;
        submitted += 1;
    }
    while !shard.is_empty() {
        shard.run_once(None)?;
        while let Some(finished) = shard.pop() {
            finished.result?;
            let mut read = finished.operation;
            if submitted < reads {
                if let Operation::Read { offset, .. } = &mut read {
                    *offset = offsets.next();
                }
                shard.submit(class, read).map_err(|(error, _)| error)?;
                submitted += 1;
            }
        }
    }
    Ok(())
}

fn through_files(
    scheduler: &Scheduler,
    class: &Class,
    path: &Path,
    reads: usize,
    offsets: &mut Offsets,
) -> Result<(), Box<dyn Error>> {
    let file = scheduler.open(path, &FileOptions::new().read(true))?;
    let mut requests = VecDeque::with_capacity(DEPTH);
    for _ in 0..DEPTH.min(reads) {
        let buffer = AlignedBuf::new(BLOCK, BLOCK)?;
        requests.push_back(file.read_at(class, buffer, offsets.next()));
    }
    let mut left = reads - requests.len();
    while let Some(request) = requests.pop_front() {
        let (_, buffer) = request.wait().into_result()?;
        if left > 0 {
            requests.push_back(file.read_at(class, buffer, offsets.next()));
            left -= 1;
        }
    }
    Ok(())
}

/// As many tasks as reads at once, on one thread.
fn through_tasks(
    scheduler: &Scheduler,
    class: &Class,
    path: &Path,
    reads: usize,
    offsets: Offsets,
) -> Result<(), Box<dyn Error>> {
    let file = scheduler.open(path, &FileOptions::new().read(true))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let tasks = tokio::task::LocalSet::new();
    let left = std::rc::Rc::new(std::cell::RefCell::new((reads, offsets)));
    let handles: Vec<_> = (0..DEPTH)
        .map(|_| {
            let (file, class, left) = (file.clone(), class.clone(), left.clone());
            tasks.spawn_local(async move {
                let mut buffer = AlignedBuf::new(BLOCK, BLOCK)?;
                while let Some(offset) = next_of(&left) {
                    let BufResult(result, same) = file.read_at(&class, buffer, offset).await;
                    result?;
                    buffer = same;
                }
                Ok::<(), std::io::Error>(())
            })
        })
        .collect();
    runtime.block_on(tasks);
    for handle in handles {
        runtime.block_on(handle)??;
    }
    Ok(())
}

fn next_of(left: &std::cell::RefCell<(usize, Offsets)>) -> Option<u64> {
    let (left, offsets) = &mut *left.borrow_mut();
    *left = left.checked_sub(1)?;
    Some(offsets.next())
}

/// Processor time of the whole process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Random offsets of blocks.
struct Offsets {
    blocks: u64,
    state: u64,
}

impl Offsets {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % self.blocks * BLOCK as u64
    }
}
