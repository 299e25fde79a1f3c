//! Several processes that share a disk. There is none here: by the figures a permit goes at their pace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, process};

use forebay::properties::Properties;
use forebay::{Control, DiskConfig, DiskRates, Op, Scheduler, SchedulerError, SharedMemoryError};

const RATE: u64 = 2_000;
const RATES: DiskRates = DiskRates {
    read_iops: RATE,
    write_iops: RATE,
    read_bandwidth: 100_000_000,
    write_bandwidth: 100_000_000,
};
const PATH: &str = "FOREBAY_TEST_SEGMENT";
const SHARES: &str = "FOREBAY_TEST_SHARES";
const FORKS: &str = "FOREBAY_TEST_FORKS";
/// The bytes before the slots, and of each slot.
const SLOT_LEN: u64 = 64;
/// What happens sooner or later happens within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn disk(path: &Path) -> DiskConfig {
    DiskConfig::new("disk", RATES).control(Control::Rates).shared_at(path)
}

fn build(config: DiskConfig) -> Result<Scheduler, SchedulerError> {
    Scheduler::builder().disk(config).build()
}

/// Where a segment may be.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// How often each test does what it does: more in the measurement.
fn rounds(default: usize) -> usize {
    env::var("FOREBAY_SIBLINGS_ROUNDS").map_or(default, |rounds| rounds.parse().unwrap())
}

/// The processes that the tests begin: takes permits as fast as it can, and tells how many.
#[test]
fn child() {
    let Ok(path) = env::var(PATH) else { return };
    let scheduler = build(disk(Path::new(&path))).unwrap();
    let class = scheduler.add_class("class", env::var(SHARES).unwrap().parse().unwrap()).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    for _ in 0..2 {
        let (class, count) = (class.clone(), Arc::clone(&count));
        thread::spawn(move || {
            loop {
                drop(class.admit(Op::Read, 4096).unwrap());
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    if env::var(FORKS).is_ok() {
        // not by `fork`, whose handlers would close what the child must not keep
        // SAFETY: the child only waits, and ends without what its parent does at its end.
        unsafe {
            if libc::syscall(libc::SYS_fork) == 0 {
                libc::sleep(30);
                libc::_exit(0);
            }
        }
    }
    loop {
        println!("count {}", count.load(Ordering::Relaxed));
        // the reader has ended
        if std::io::stdout().flush().is_err() {
            process::exit(0);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A process with the library, which is killed with this.
struct Process {
    child: Child,
    count: Arc<AtomicU64>,
}

impl Process {
    fn new(path: &Path, shares: u32, forks: bool) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture"]).env(PATH, path);
        command.env(SHARES, shares.to_string()).stdout(Stdio::piped());
        if forks {
            command.env(FORKS, "1");
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let count = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&count);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(number) = line.strip_prefix("count ") {
                    told.store(number.parse().unwrap(), Ordering::Relaxed);
                }
            }
        });
        let process = Self { child, count };
        until("it takes permits", || process.count() > 0);
        process
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What each of these gets within so long, of what the figures say.
fn parts(processes: &[&Process], time: Duration) -> Vec<f64> {
    let counts = || processes.iter().map(|process| process.count()).collect::<Vec<_>>();
    let (begin, before) = (Instant::now(), counts());
    thread::sleep(time);
    let after = counts();
    let all = RATE as f64 * begin.elapsed().as_secs_f64();
    before.iter().zip(after).map(|(before, after)| (after - before) as f64 / all).collect()
}

/// Waits until these have such shares of what all of them get together.
fn assert_shares(processes: &[&Process], shares: &[f64], what: &str) {
    let all: f64 = shares.iter().sum();
    until(what, || {
        let parts = parts(processes, Duration::from_secs(1));
        let sum: f64 = parts.iter().sum();
        eprintln!("{what}: {parts:.3?}, in all {sum:.3}");
        parts.iter().zip(shares).all(|(part, due)| (part / sum / (due / all) - 1.0).abs() < 0.05)
    });
}

/// Waits until this process has what nobody else uses; returns for how long that was.
fn until_alone(process: &Process, what: &str) -> Duration {
    let begin = Instant::now();
    until(what, || parts(&[process], Duration::from_millis(100))[0] > 0.9);
    begin.elapsed()
}

#[test]
fn processes_share_by_the_shares_of_their_classes_and_one_alone_has_all() {
    let dir = directory();
    let path = dir.path().join("segment");
    let heavy = Process::new(&path, 400, false);
    until_alone(&heavy, "alone");
    let light = Process::new(&path, 100, false);
    assert_shares(&[&heavy, &light], &[4.0, 1.0], "two");
    let third = Process::new(&path, 500, false);
    assert_shares(&[&heavy, &light, &third], &[4.0, 1.0, 5.0], "three");
    let mode = fs::metadata(&path).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[test]
fn the_dead_leave_the_disk_to_others_whenever_they_die_and_whatever_they_forked() {
    let dir = directory();
    let path = dir.path().join("segment");
    let left = Process::new(&path, 100, false);
    let mut longest = Duration::ZERO;
    for round in 0..rounds(4) {
        let mut other = Process::new(&path, 1000, round % 2 == 1);
        thread::sleep(Duration::from_millis(round as u64 * 37 % 400));
        other.child.kill().unwrap();
        longest = longest.max(until_alone(&left, "after a kill"));
        other.child.wait().unwrap();
    }
    eprintln!("the disk within {longest:?}");
}

#[test]
fn a_stopped_process_leaves_the_disk_to_others_and_has_its_share_again() {
    let dir = directory();
    let path = dir.path().join("segment");
    let [one, other] = [100, 100].map(|shares| Process::new(&path, shares, false));
    assert_shares(&[&one, &other], &[1.0, 1.0], "both");
    other.signal(libc::SIGSTOP);
    eprintln!("the disk within {:?}", until_alone(&one, "after SIGSTOP"));
    thread::sleep(Duration::from_secs(if rounds(0) > 0 { 10 } else { 1 }));
    other.signal(libc::SIGCONT);
    assert_shares(&[&one, &other], &[1.0, 1.0], "both again");
}

/// Numbers that are the same in each run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn processes_share_again_after_foreign_writes_and_truncations_of_the_segment() {
    let dir = directory();
    let path = dir.path().join("segment");
    let mut processes = [300, 100].map(|shares| Process::new(&path, shares, false));
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let (len, mut state, begin) = (file.metadata().unwrap().len(), 1, Instant::now());
    let time = Duration::from_secs(if rounds(0) > 0 { 60 } else { 1 });
    let before = [0, 1].map(|of: usize| processes[of].count());
    while begin.elapsed() < time {
        let at = SLOT_LEN * (random(&mut state) % (len / SLOT_LEN));
        let bytes: Vec<u8> = (0..SLOT_LEN).map(|_| random(&mut state) as u8).collect();
        file.write_all_at(&bytes, at).unwrap();
        if random(&mut state).is_multiple_of(100_000) {
            file.set_len(0).unwrap();
        }
    }
    let after = [0, 1].map(|of: usize| processes[of].count());
    assert!((0..2).all(|of| after[of] > before[of]), "{before:?}, {after:?}");
    file.set_len(0).unwrap();
    assert_shares(&[&processes[0], &processes[1]], &[3.0, 1.0], "afterwards");
    assert_eq!(file.metadata().unwrap().len(), len);
    // a file that was removed is made again, so that later processes are found
    fs::remove_file(&path).unwrap();
    until("it is there again", || path.exists());
    let third = Process::new(&path, 400, false);
    assert_shares(&[&processes[0], &processes[1], &third], &[3.0, 1.0, 4.0], "a new file");
    for process in &mut processes {
        assert!(process.child.try_wait().unwrap().is_none(), "it has ended");
    }
}

#[test]
fn sixty_four_processes_share_a_disk() {
    let dir = directory();
    let path = dir.path().join("segment");
    let processes: Vec<_> = (0..64).map(|_| Process::new(&path, 100, false)).collect();
    let mut parts = parts(&processes.iter().collect::<Vec<_>>(), Duration::from_secs(5));
    parts.sort_by(f64::total_cmp);
    let sum: f64 = parts.iter().sum();
    eprintln!("{:.4} to {:.4} of {sum:.3}", parts[0], parts[63]);
    // on a busy machine some may lack a processor for most of that time
    assert!(parts[63] < 0.1 && parts[0] > 0.0, "{parts:?}");
}

fn refused(config: DiskConfig) -> String {
    match build(config) {
        Err(error @ SchedulerError::Shared { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_segment_that_others_may_write_or_that_is_no_segment_is_refused() {
    let dir = directory();
    let path = dir.path().join("segment");
    drop(build(disk(&path)).unwrap());
    let says = |what: &str| {
        let error = refused(disk(&path));
        assert!(error.contains(what), "{error}");
    };
    let set_mode =
        |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set_mode(&path, 0o640);
    says("expected the mode 0600");
    set_mode(&path, 0o600);
    set_mode(dir.path(), 0o1777);
    says("every user may write");
    set_mode(dir.path(), 0o700);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"forebay siblings v000002", 0).unwrap();
    says("a segment of another version");
    file.write_all_at(&[0; 24], 0).unwrap();
    drop(build(disk(&path)).unwrap());
    assert!(
        fs::read(&path).unwrap().starts_with(b"forebay siblings v000001"),
        "begun by one that ended"
    );
    file.set_len(100).unwrap();
    says("a segment of another version");
    fs::rename(&path, dir.path().join("other")).unwrap();
    symlink("other", &path).unwrap();
    says("symbolic link");
    says("another `path`");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    says("directory");
    fs::remove_dir(&path).unwrap();
    if rustix::process::geteuid().is_root() {
        drop(build(disk(&path)).unwrap());
        chown(&path, Some(1), None).unwrap();
        says("another user");
        fs::remove_file(&path).unwrap();
        chown(dir.path(), Some(1), None).unwrap();
        says("another user");
    }
    let unnamed = DiskConfig::new("disk", RATES).shared();
    match build(unnamed) {
        Err(SchedulerError::Shared { source: SharedMemoryError::NoDevice, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fixed_part_is_that_of_the_figures() {
    let rates = |part: Option<f64>| {
        let config = DiskConfig::new("disk", RATES).control(Control::Rates);
        let config = part.into_iter().fold(config, DiskConfig::share_of_disk);
        let scheduler = build(config).unwrap();
        let class = scheduler.add_class("class", 100).unwrap();
        let begin = Instant::now();
        for _ in 0..200 {
            drop(class.admit(Op::Read, 4096).unwrap());
        }
        begin.elapsed().as_secs_f64() * RATE as f64 / 200.0
    };
    assert!(rates(None) > 0.9);
    // a busy machine may be slower, and none is faster
    assert!(rates(Some(0.25)) > 3.8);
    for part in [0.0, -1.0, 1.5, f64::NAN] {
        let error = build(DiskConfig::new("disk", RATES).share_of_disk(part)).unwrap_err();
        assert!(error.to_string().contains("share_of_disk"), "{error}");
    }
}

#[test]
fn a_reload_shares_a_disk_and_ends_that() {
    let dir = directory();
    let path: PathBuf = dir.path().join("segment");
    let file = |sharing: &str| {
        let text = format!(
            "disks:\n  - mountpoint: {}\n    read_iops: 2000\n    write_iops: 2000\n    \
             read_bandwidth: 100M\n    write_bandwidth: 100M\n    {sharing}\n",
            dir.path().display()
        );
        Properties::parse("forebay.yaml", &text)
    };
    let scheduler = Scheduler::builder().properties(&file("").unwrap()).build().unwrap();
    assert!(!path.exists());
    let shared = file(&format!("shared: {{path: {}}}", path.display())).unwrap();
    scheduler.reload(&shared).unwrap();
    let sequence = || {
        let mut bytes = [0; 8];
        File::open(&path).unwrap().read_exact_at(&mut bytes, SLOT_LEN).unwrap();
        u64::from_le_bytes(bytes)
    };
    until("it writes its slot", || sequence() > 2);
    scheduler.reload(&shared).unwrap();
    scheduler.reload(&file("share_of_disk: 0.5").unwrap()).unwrap();
    until("it ends", || {
        let before = sequence();
        thread::sleep(Duration::from_millis(200));
        sequence() == before
    });
    let wrong = |sharing: &str| file(sharing).unwrap_err().to_string();
    assert!(wrong("shared: {path: segment}").contains("absolute"));
    assert!(wrong("shared: 3").contains("shared"));
    assert!(wrong("shared: true\n    share_of_disk: 0.5").contains("keep one"));
    assert!(file("shared: false").is_ok() && file("shared: true").is_ok());
}
