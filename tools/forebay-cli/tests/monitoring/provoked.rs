//! A program whose files and permits go wrong, on a real disk, and a Prometheus whose rules are sixty
//! times as fast as those that are given to people.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forebay::engine::{BackendChoice, EngineConfig};
use forebay::metrics::{Endpoint, EndpointConfig, open_metrics};
use forebay::{
    AlignedBuf, Class, Deleter, DeleterOptions, DiskConfig, DiskRates, LatencyTarget, Op, Scheduler,
};
use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};

use crate::files::{ALERTS, panels, path};
use crate::has_prometheus;
use crate::server::{NEVER, prometheus, query};
use crate::system::system;

/// The alerts that fire, and of which class where they are of one.
pub(crate) const PROVOKED: [(&str, Option<&str>); 6] = [
    ("ForebayUnscheduledIo", None),
    ("ForebayDeletesFallBehind", Some("deletes")),
    ("ForebayPermitsHeldLong", Some("holder")),
    ("ForebayRequestsOverdue", Some("slow")),
    ("ForebayDiskErrors", Some("failing")),
    ("ForebayThreadsInsteadOfIoUring", None),
];

/// Times in the rules, and what they are here. That of a delete that waits is of the clock, too.
const SIXTY_TIMES: [(&str, &str); 9] = [
    ("[2m]", "[2s]"),
    ("[5m]", "[5s]"),
    ("[10m]", "[10s]"),
    ("[6h]", "[6m]"),
    ("for: 30s", "for: 500ms"),
    ("for: 1m", "for: 1s"),
    ("for: 2m", "for: 2s"),
    ("for: 5m", "for: 5s"),
    ("oldest_seconds > 600", "oldest_seconds > 10"),
];

const MIB: usize = 1 << 20;
const RATES: DiskRates = DiskRates {
    read_iops: 5_000,
    write_iops: 5_000,
    read_bandwidth: 200_000_000,
    write_bandwidth: 200_000_000,
};

/// A loop device, and a file system on it if it has one.
struct LoopDisk {
    device: String,
    point: Option<TempDir>,
    image: NamedTempFile,
}

impl LoopDisk {
    /// `None`, after saying why, where this system makes none.
    fn new() -> Option<Self> {
        let image = NamedTempFile::new().unwrap();
        image.as_file().set_len(512 * MIB as u64).unwrap();
        let device = system("losetup", &["--find", "--show", image.path().to_str()?])?;
        Some(Self { device, point: None, image })
    }

    /// With ext4 that does nothing by itself.
    fn mounted(mut self) -> Option<Self> {
        let at_once = "lazy_itable_init=0,lazy_journal_init=0";
        system("mkfs.ext4", &["-q", "-E", at_once, &self.device])?;
        let point = TempDir::new().unwrap();
        system("mount", &[&self.device, point.path().to_str()?])?;
        self.point = Some(point);
        Some(self)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.point.as_ref().unwrap().path().join(name)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if let Some(point) = &self.point {
            // what is written back keeps it busy for a while
            system("umount", &["--lazy", point.path().to_str().unwrap()]);
        }
        system("losetup", &["--detach", &self.device]);
    }
}

/// This many MiB that are on the disk.
fn file(path: &Path, mib: usize) {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.write_all_at(&vec![7; mib * MIB], 0).unwrap();
    file.sync_all().unwrap();
}

fn direct(path: &Path) -> File {
    let flags = OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// A read with a permit.
fn read(class: &Class, file: &File, page: &mut AlignedBuf, at: u64) {
    let permit = class.admit(Op::Read, 4096).unwrap();
    permit.complete(&file.read_at(page, at));
}

/// Repeats `work` until it is stopped.
fn again(stop: &AtomicBool, pause: Duration, mut work: impl FnMut(u64)) {
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        work(turn);
        thread::sleep(pause);
    }
}

/// The rules, sixty times as fast.
fn fast_rules(dir: &Path) -> PathBuf {
    let mut rules = std::fs::read_to_string(path(ALERTS)).unwrap();
    for (time, fast) in SIXTY_TIMES {
        assert!(rules.contains(time), "no rule has {time}");
        rules = rules.replace(time, fast);
    }
    assert!(!rules.contains("m]") || rules.matches("m]").count() == 1, "a time was left out");
    let file = dir.join("rules.yml");
    std::fs::write(&file, rules).unwrap();
    file
}

fn top(address: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let output = command.args(["top", address, "--once", "--interval", "3s"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until each of the alerts fires.
fn wait_for_alerts(url: &str) {
    let began = Instant::now();
    for (alert, class) in PROVOKED {
        let class = class.map(|class| format!(",class=\"{class}\"")).unwrap_or_default();
        let firing = format!("ALERTS{{alertstate=\"firing\",alertname=\"{alert}\"{class}}}");
        while query(url, &firing).unwrap().is_empty() {
            let all = query(url, "ALERTS");
            assert!(began.elapsed() < NEVER, "{alert} does not fire: {all:?}");
            thread::sleep(Duration::from_millis(300));
        }
    }
}

#[test]
fn problems_of_files_and_permits_fire_alerts_and_show_in_top() {
    if !has_prometheus() {
        return;
    }
    let Some(disk) = LoopDisk::new().and_then(LoopDisk::mounted) else { return };
    let Some(failing) = LoopDisk::new() else { return };
    let [queried, cached, written] = ["queried", "cached", "written"].map(|name| disk.path(name));
    [&queried, &cached, &written, &disk.path("deleted")].iter().for_each(|path| file(path, 32));
    let point = disk.point.as_ref().unwrap().path();
    let target = LatencyTarget::new(Op::Read, 950, Duration::from_millis(100)).ok();
    let scheduler = Scheduler::builder()
        .disk(DiskConfig::new("data", RATES).mountpoint(point).latency_target(target))
        .disk(DiskConfig::new("failing", RATES))
        .build()
        .unwrap();
    let class = |name| scheduler.add_class(name, 100).unwrap();
    let queries = class("queries");
    let endpoint = endpoint(&scheduler);
    let address = endpoint.address().to_string();
    let server = TempDir::new().unwrap();
    let (_prometheus, url) =
        prometheus(server.path(), &address, &fast_rules(server.path()), "500ms");
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let _stops = Stop(stop);
        let steady = queries.on(&scheduler.disk("data").unwrap()).unwrap();
        let (queried, cached) = (direct(&queried), File::open(&cached).unwrap());
        scope.spawn(move || read_steadily(&steady, &queried, &cached, stop));
        all_stays_well(&url, &address);

        let written = OpenOptions::new().write(true).open(&written).unwrap();
        scope.spawn(move || {
            again(stop, Duration::from_millis(100), |turn| {
                written.write_all_at(&vec![8; MIB], turn % 32 * MIB as u64).unwrap();
                written.sync_data().unwrap();
            });
        });
        let slow = DeleterOptions::new().rate(100_000).always_in_steps(true);
        let deleter = Deleter::new(&class("deletes"), slow).unwrap();
        let deletion = deleter.delete(disk.path("deleted"));
        let held = class("holder").on(&scheduler.disk("data").unwrap()).unwrap();
        let _held = held.admit(Op::Write, 4096).unwrap();
        let slow = class("slow").on(&scheduler.disk("data").unwrap()).unwrap();
        scope.spawn(move || hold_permits_for_long(&slow, stop));
        let engine = EngineConfig { backend: BackendChoice::Threads, ..EngineConfig::default() };
        let _shard = scheduler.disk("data").unwrap().shard(&engine).unwrap();
        failing.image.as_file().set_len(0).unwrap();
        let (failed, device) = (class("failing"), direct(Path::new(&failing.device)));
        let failed = failed.on(&scheduler.disk("failing").unwrap()).unwrap();
        scope.spawn(move || {
            let mut page = AlignedBuf::new(4096, 4096).unwrap();
            again(stop, Duration::from_millis(50), |_| read(&failed, &device, &mut page, 0));
        });
        let text = top(&address);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("% of the bytes written were unscheduled"), "{text}");
        wait_for_alerts(&url);
        panels_have_data(&url);
        deletion.cancel();
    });
}

/// What the scheduler counts, at a free port.
fn endpoint(scheduler: &Scheduler) -> Endpoint {
    let config = EndpointConfig { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    let observed = scheduler.clone();
    Endpoint::start(&config, move || open_metrics(observed.snapshot())).unwrap()
}

fn read_steadily(steady: &Class, queried: &File, cached: &File, stop: &AtomicBool) {
    let mut page = AlignedBuf::new(4096, 4096).unwrap();
    again(stop, Duration::from_millis(10), |turn| {
        let at = turn % 8192 * 4096;
        read(steady, queried, &mut page, at);
        steady.read_at(cached, &mut page, at).unwrap();
    });
}

/// For longer than any of the rules waits.
fn all_stays_well(url: &str, address: &str) {
    thread::sleep(Duration::from_secs(8));
    assert_eq!(query(url, "ALERTS{alertstate=\"firing\"}"), Ok(Vec::new()));
    let text = top(address);
    assert!(text.contains("\n= ") && !text.contains("\n! "), "{text}");
}

/// For longer than the window is patient.
fn hold_permits_for_long(slow: &Class, stop: &AtomicBool) {
    again(stop, Duration::ZERO, |_| {
        let permit = slow.admit(Op::Write, 4096).unwrap();
        thread::sleep(Duration::from_millis(2_500));
        permit.complete(&Ok(()));
    });
}

/// All panels but that of the speed, which is known once work has waited for the disk.
fn panels_have_data(url: &str) {
    for panel in panels("5s").into_iter().filter(|panel| panel.title != "Speed") {
        let has_data = |expression: &String| !query(url, expression).unwrap().is_empty();
        assert!(panel.queries.iter().any(has_data), "{} has no data", panel.title);
    }
}

/// Stops what works when the test ends, however it does.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
