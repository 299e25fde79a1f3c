//! Reads 4 KiB at random offsets of a file with a full queue, and says what
//! that achieved and cost:
//!
//! ```sh
//! cargo run --release --manifest-path benches/Cargo.toml --example engine_read -- FILE [SECONDS] [DEPTH] [auto|io_uring|linux-aio|threads]
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, Engine, EngineConfig, Operation};
use forebay::{AlignedBuf, DirectFile};
use rustix::time::{ClockId, clock_gettime};

const LEN: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: engine_read FILE [SECONDS] [DEPTH] [BACKEND]")?;
    let seconds: f64 = arguments.next().map_or(Ok(4.0), |text| text.parse())?;
    let depth_max: u32 = arguments.next().map_or(Ok(32), |text| text.parse())?;
    let backend = match arguments.next().as_deref() {
        None | Some("auto") => BackendChoice::Auto,
        Some("io_uring") => BackendChoice::IoUring,
        Some("linux-aio") => BackendChoice::LinuxAio,
        Some("threads") => BackendChoice::Threads,
        Some(other) => return Err(format!("no backend is called {other}").into()),
    };

    let blocks = std::fs::metadata(&path)?.len().max(LEN as u64) / LEN as u64;
    let file = DirectFile::options().read(true).open(&path)?;
    let mut engine = Engine::new(&EngineConfig { backend, depth_max, ..EngineConfig::default() })?;
    if let Some(reason) = engine.fallback_reason() {
        eprintln!("reading with {}: {reason}", engine.backend().name());
    }

    let mut random = Random(1);
    for token in 0..u64::from(depth_max) {
        let buffer = AlignedBuf::new(LEN, file.memory_alignment().max(LEN))?;
        let read = Operation::read(file.clone(), random.below(blocks) * LEN as u64, buffer);
        engine.push(token, read).map_err(|(error, _)| error)?;
    }
    let start = Instant::now();
    let cpu_start = cpu_time();
    let mut reads = 0u64;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        engine.submit_and_wait(None)?;
        while let Some(completed) = engine.pop() {
            completed.result?;
            reads += 1;
            let mut operation = completed.operation;
            if let Operation::Read { offset, .. } = &mut operation {
                *offset = random.below(blocks) * LEN as u64;
            }
            engine.push(completed.token, operation).map_err(|(error, _)| error)?;
        }
    }
    let rate = reads as f64 / start.elapsed().as_secs_f64();
    let cpu = (cpu_time() - cpu_start).as_secs_f64() / reads as f64 * 1e6;
    let (direct, backend) = (file.is_direct(), engine.backend());
    println!("{rate:.0} reads/s, {cpu:.3} s CPU per million ({backend:?}, direct: {direct})");
    Ok(())
}

/// Processor time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
