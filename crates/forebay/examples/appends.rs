//! Appends, then overwrites: ARGS PATH COUNT [THREAD-SLEEP-US]
use forebay::{AlignedBuf, DiskConfig, DiskRates, FileOptions, Scheduler};
use std::time::Instant;
fn cpu() -> f64 {
    let mut u: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) };
    let t = |t: libc::timeval| t.tv_sec as f64 * 1e6 + t.tv_usec as f64;
    t(u.ru_utime) + t(u.ru_stime)
}
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let count: u64 = std::env::args().nth(2).map_or(960, |c| c.parse().unwrap());
    let rates = DiskRates {
        read_iops: 1_000_000,
        write_iops: 1_000_000,
        read_bandwidth: 10_000_000_000,
        write_bandwidth: 10_000_000_000,
    };
    let dir = std::path::Path::new(&path).parent().unwrap();
    let s =
        Scheduler::builder().disk(DiskConfig::new("disk", rates).mountpoint(dir)).build().unwrap();
    let c = s.add_class("c", 100).unwrap();
    let f = s.open(&path, &FileOptions::new().read(true).write(true).create(true)).unwrap();
    let mut buffer = Some({
        let mut b = AlignedBuf::new(4096, 4096).unwrap();
        b.fill(7);
        b
    });
    for (pass, name) in ["appends", "overwrites", "overwrites"].iter().enumerate() {
        let (t, u) = (Instant::now(), cpu());
        let _ = pass;
        for n in 0..count {
            buffer = Some(
                f.write_at(&c, buffer.take().unwrap(), n * 4096).wait().into_result().unwrap().1,
            );
        }
        let (e, u) = (t.elapsed(), cpu() - u);
        let r = s.snapshot().disks.iter().map(|d| format!("{:?}", d.retries)).collect::<Vec<_>>();
        println!(
            "{name}: {:.1} us each, CPU {:.1} us each, retries {r:?}",
            e.as_secs_f64() * 1e6 / count as f64,
            u / count as f64
        );
        if pass == 0 {
            f.sync_all(&c).wait().unwrap();
        }
    }
}
