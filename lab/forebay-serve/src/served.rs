//! A mounted simulated disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use forebay_sim::disk::SimDisk;
use fuser::{Config, MountOption, Session, SessionUnmounter};
use rustix::mount::UnmountFlags;

use crate::calibration::{self, FixedDelay};
use crate::config::ServeConfig;
use crate::disk_thread::{DiskThread, Timeline};
use crate::file_system::{DiskFile, NAME};
use crate::realtime;
use crate::refusal::{check_mountpoint, explain_mount};
use crate::reply::spawn_copiers;
use crate::stats::ServeStats;
use crate::store::Store;
use crate::write_cache::WriteCacheStats;

/// Threads that take requests from the kernel.
const SESSION_THREADS: usize = 2;

/// How long the end waits for the kernel to let go of the file system.
const END_MAX: Duration = Duration::from_secs(2);

/// A simulated disk that is mounted as a file; unmounted when dropped, after
/// all requests in flight have failed with `EIO`.
pub struct Served {
    mountpoint: PathBuf,
    path: PathBuf,
    timeline: Arc<Timeline>,
    disk_thread: Option<DiskThread>,
    session: JoinHandle<()>,
    unmounter: SessionUnmounter,
    overhead: Duration,
    realtime: Result<(), String>,
}

impl Served {
    /// Mounts a disk on the empty directory `mountpoint`, measures the server's
    /// own overhead (about 0.1 s), and serves until the result is dropped or
    /// someone else unmounts it.
    ///
    /// # Errors
    /// When the configuration makes no disk, the directory cannot be used, or the
    /// system does not let this process mount; the text says what to do.
    pub fn mount(
        disk: Box<dyn SimDisk>,
        config: &ServeConfig,
        mountpoint: &Path,
    ) -> io::Result<Self> {
        config.check()?;
        check_mountpoint(mountpoint)?;
        let mountpoint = mountpoint.canonicalize()?;
        let store = Arc::new(Store::new(config)?);
        let copiers = spawn_copiers(&store, config.realtime)?;
        let timeline = Arc::new(Timeline::new(Box::new(FixedDelay::default()), store, copiers));
        let disk_thread = DiskThread::spawn(&timeline, config.realtime)?;
        let file = DiskFile::new(Arc::clone(&timeline), config);
        let mut session = Session::new(file, &mountpoint, &options())
            .map_err(|error| explain_mount(&error, &mountpoint))?;
        let unmounter = session.unmount_callable();
        let (session, realtime) = serve(session, config.realtime)?;
        let path = mountpoint.join(NAME);
        let mut served = Self {
            mountpoint,
            path,
            timeline,
            disk_thread: Some(disk_thread),
            session,
            unmounter,
            overhead: Duration::ZERO,
            realtime,
        };
        served.overhead = calibration::measure(&served.path, config.sector, config.realtime)?;
        served.timeline.replace(disk, served.overhead);
        Ok(served)
    }

    /// The file that is the disk.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a request takes alongside its time in the simulated disk, as measured
    /// at the start; it is taken off the disk's time.
    pub fn overhead(&self) -> Duration {
        self.overhead
    }

    /// Whether the threads have real-time priority; if not, why.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn realtime(&self) -> Result<(), &str> {
        self.realtime.as_ref().copied().map_err(String::as_str)
    }

    /// What the disk has done so far.
    pub fn stats(&self) -> ServeStats {
        self.timeline.stats()
    }

    /// Cuts the power when this many more writes have arrived, at once if that is none: what no
    /// flush has covered is lost in part, and from there on everything fails with `EIO`. Without
    /// meaning on a disk without a [write cache](ServeConfig::write_cache).
    pub fn cut_power_after(&self, writes: u64) {
        self.timeline.store.cut_after(writes);
    }

    /// The power is back. Who has the disk open should let go of it first, for what it remembers
    /// may not be there any more.
    ///
    /// # Errors
    /// Those of the file with the data, at the cut: what is left is not what a disk leaves.
    pub fn restore_power(&self) -> io::Result<()> {
        self.timeline.store.restore()
    }

    /// What the write cache holds and has lost, if the disk has one.
    pub fn write_cache(&self) -> Option<WriteCacheStats> {
        self.timeline.store.cache_stats()
    }

    /// Whether a write has failed with `ENOSPC` since the data took all the memory that it
    /// [may take](ServeConfig::memory_max).
    pub fn was_memory_full(&self) -> bool {
        self.timeline.store.was_full()
    }

    /// Whether it is served no more, since someone else has unmounted it.
    pub fn is_ended(&self) -> bool {
        self.session.is_finished()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.disk_thread = None;
        // busy: detach it now, and the last user's leaving ends the session
        if !self.session.is_finished() && self.unmounter.unmount().is_err() {
            let _ = rustix::mount::unmount(&self.mountpoint, UnmountFlags::DETACH);
        }
        let step = Duration::from_millis(1);
        let mut left = END_MAX;
        while !self.session.is_finished() && !left.is_zero() {
            thread::sleep(step);
            left = left.saturating_sub(step);
        }
    }
}

fn options() -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("forebay".into()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::DefaultPermissions,
    ];
    config.n_threads = Some(SESSION_THREADS);
    config
}

/// Starts the threads that take requests; says whether they keep time.
fn serve(
    session: Session<DiskFile>,
    realtime: bool,
) -> io::Result<(JoinHandle<()>, Result<(), String>)> {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name("forebay-fuse".into()).spawn(move || {
        // the session's threads inherit it
        let _ = sender.send(realtime::enter_if(realtime));
        // it ends with the mount; how is of no use to anybody
        let _ = session.run();
    })?;
    let realtime = receiver.recv().unwrap_or_else(|_| Err("the thread ended early".into()));
    Ok((thread, realtime))
}
