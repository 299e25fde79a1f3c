//! A mount that asks a server which never answers.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use forebay::properties::Properties;
use forebay::{DEFAULT_DISK, FileOptions, Op, Scheduler};
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use tempfile::TempDir;

/// Far longer than any of this takes.
const HANGS: Duration = Duration::from_secs(20);

/// A mount in whose name nobody speaks, for as long as this lives.
struct Dead {
    point: PathBuf,
    /// The questions are in here.
    server: Option<File>,
}

impl Dead {
    fn mount(point: PathBuf) -> Self {
        std::fs::create_dir(&point).unwrap();
        let server = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = CString::new(options).unwrap();
        rustix::mount::mount("dead", &point, "fuse", MountFlags::empty(), options.as_c_str())
            .unwrap();
        Self { point, server: Some(server) }
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        // hanging requests end with an error
        self.server.take();
        let _ = unmount(&self.point, UnmountFlags::DETACH);
    }
}

fn entry(mountpoint: &Path) -> String {
    format!(
        "  - mountpoint: {}\n    read_iops: 1000\n    write_iops: 1000\n    read_bandwidth: \
         900000000\n    write_bandwidth: 900000000\n",
        mountpoint.display()
    )
}

/// What `call` returns, unless it hangs.
fn within<R: Send + 'static>(what: &str, call: impl FnOnce() -> R + Send + 'static) -> R {
    let (told, ended) = mpsc::channel();
    thread::spawn(move || told.send(call()));
    let result = ended.recv_timeout(HANGS);
    assert!(result.is_ok(), "{what} hangs");
    result.unwrap()
}

pub(crate) fn a_network_mount_that_answers_nothing_stops_nobody() {
    let dir = TempDir::new().unwrap();
    let dead = Dead::mount(dir.path().join("dead"));
    let asked = dead.point.join("asked");
    let (told, ended) = mpsc::channel();
    thread::spawn(move || told.send(asked.exists()));
    assert!(ended.recv_timeout(Duration::from_millis(100)).is_err(), "the mount answers");

    let parsed = |text: &str| Properties::parse("test", text).unwrap();
    let healthy = format!("disks:\n{}", entry(dir.path()));
    let scheduler = Scheduler::builder().properties(&parsed(&healthy)).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    // the mountpoint itself, and what nobody can say whether it is there
    for listed in [dead.point.clone(), dead.point.join("data/store")] {
        let both = parsed(&format!("{healthy}{}", entry(&listed)));
        let reloaded = scheduler.clone();
        within("reload", move || reloaded.reload(&both)).unwrap();
        let (asked, listed) = (scheduler.clone(), listed.join("file"));
        let disk = within("disk_of", move || asked.disk_of(&listed)).unwrap();
        assert_eq!(disk.name(), dead.point.to_str().unwrap());
    }
    let snapshot = scheduler.clone();
    assert_eq!(within("snapshot", move || snapshot.snapshot()).disks.len(), 3);
    let (opened, file) = (scheduler.clone(), dir.path().join("file"));
    let options = FileOptions::new().write(true).create(true);
    let file = within("open", move || opened.open(file, &options)).unwrap();
    assert_ne!(file.disk().name(), DEFAULT_DISK);
    let shared = class.clone();
    within("set_shares", move || shared.set_shares(5)).unwrap();
    within("admit", move || class.admit(Op::Read, 4096).map(drop)).unwrap();
}
