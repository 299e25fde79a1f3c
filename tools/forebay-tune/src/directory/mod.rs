//! A real disk as a target: threads, engines, and files in free space.

mod disk;
mod files;
#[cfg(test)]
mod tests;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use forebay::Clock;
use forebay_block::{DeviceNumber, DiskStat, Machine, Mount};
use forebay_core::Time;
use rustix::io::Errno;

pub use disk::MeasuredDisk;

use crate::error::Error;
use crate::load::{PhaseLoad, SharedProgress};
use crate::phase::{FileState, Phase, Work};
use crate::probe::DiskCounters;
use crate::samples::{PhaseRecorder, Samples};
use crate::target::{Target, TargetInfo};
use files::{Files, SEGMENT_UNIT};
use rustix::time::{ClockId, clock_gettime};
use worker::Worker;

/// Threads beyond this do not help.
const THREADS_MAX: u32 = 64;
/// The data takes at most this part of the free space.
const FREE_PART: u64 = 4;
/// On a disk that seeks it is spread over this many such parts, which are reserved meanwhile.
const SPREAD_PARTS: u64 = 3;
/// With less room than this nothing is measured.
const ROOM_MIN: u64 = 64 << 20;
/// Between two phases of different loads the disk comes to rest.
const REST: Duration = Duration::from_millis(20);
/// How long Ctrl-C may go unnoticed while nothing runs.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Measures the disk below a directory, or a block device.
pub struct DirectoryTarget {
    dir: PathBuf,
    is_device: bool,
    /// The disk whose counters tell what all who use it do.
    iostat_number: Option<DeviceNumber>,
    info: TargetInfo,
    files: Files,
    epoch: Time,
    interrupt: Arc<AtomicBool>,
    /// What ran last alone.
    last: Option<Phase>,
    /// How long the machine has slept since it was started.
    slept: fn() -> Duration,
}

impl DirectoryTarget {
    /// A measurement of `disk`, which ends what it does once `interrupt` is set.
    ///
    /// # Errors
    /// The disk cannot be written, has too little room, or does no direct I/O.
    pub fn open(disk: &MeasuredDisk, interrupt: Arc<AtomicBool>) -> Result<Self, Error> {
        let nowhere = || Error::Refused(String::from("no directory is named; name one"));
        let dir = disk.paths.first().ok_or_else(nowhere)?.clone();
        let (files, room) = if disk.is_device {
            let (file, size) = files::open_device(&dir)?;
            let room = size / SEGMENT_UNIT * SEGMENT_UNIT;
            (Files::of(file, room), room)
        } else {
            (Files::of(files::create(&dir)?, 0), room_in(&dir)?)
        };
        if room < ROOM_MIN {
            return Err(too_small(&dir, room, disk.is_device));
        }
        let alignment = files.files.first().map_or(512, |file| file.offset_alignment() as u32);
        let machine = Machine::this();
        let queue = |name| disk.block.as_ref()?.queue_number(&machine, name);
        let sector = |name| queue(name).and_then(|bytes| u32::try_from(bytes).ok());
        let info = TargetInfo {
            paths: disk.paths.iter().map(|path| path.display().to_string()).collect(),
            device: disk.number.to_string(),
            disks: disk.names(),
            filesystem: disk.mount.as_ref().map_or_else(String::new, |mount| mount.kind.clone()),
            threads: thread::available_parallelism().map_or(1, |count| count.get() as u32),
            backend: Worker::new(&Phase::probe(), 1, 0)?.backend().to_owned(),
            alignment: alignment.max(512),
            logical_sector: sector("logical_block_size"),
            physical_sector: sector("physical_block_size"),
            rotational: disk.block.as_ref().and_then(|block| block.is_rotational(&machine)),
            link: disk.links(&machine),
            discards: disk.mount.as_ref().is_some_and(Mount::discards),
            files: !disk.is_device,
            room,
        };
        let epoch = Clock::of_process().now();
        let is_device = disk.is_device;
        let iostat_number = disk.iostat_number;
        Ok(Self { dir, is_device, iostat_number, info, files, epoch, interrupt, last: None, slept })
    }

    /// The files of `phase`; `None` where there can be none such.
    fn files_for(&mut self, phase: &Phase) -> Result<Option<Files>, Error> {
        let bytes = phase.bound.bytes_max;
        match phase.file {
            FileState::Written => {}
            FileState::Blank if self.is_device => {
                self.files.segment_len = bytes.min(self.info.room) / SEGMENT_UNIT * SEGMENT_UNIT;
            }
            FileState::Blank => {
                // A hard disk would go to and fro between the streams of several files.
                let one = self.info.rotational == Some(true);
                let count = if one { 1 } else { self.info.threads.clamp(1, 16) };
                self.files = Files::make(&self.dir, count, bytes)?;
            }
            state => return Files::single(&self.dir, state, bytes, &self.interrupt),
        }
        Ok(Some(self.files.clone()))
    }

    /// Runs loads side by side. When a thread of theirs ends, so does the first.
    fn run_on(&self, parts: &[ConcurrentLoad<'_>]) -> Result<Vec<Samples>, Error> {
        let threads = |part: &ConcurrentLoad<'_>| {
            self.info.threads.clamp(1, THREADS_MAX).min(part.phase.depth.max(1))
        };
        let all: u32 = parts.iter().map(threads).sum();
        let start = StartBarrier { barrier: Barrier::new(all as usize), began: OnceLock::new() };
        let (slept, busy) = ((self.slept)(), processor_time());
        let ended = thread::scope(|scope| {
            let (start, interrupt) = (&start, &*self.interrupt);
            let spawn = |part| {
                let threads = threads(part);
                let run = move |thread| {
                    let ended = run_thread(part, thread, threads, start, interrupt);
                    parts.iter().take(1).for_each(|first| first.shared.end());
                    ended
                };
                (0..threads).map(|thread| scope.spawn(move || run(thread))).collect::<Vec<_>>()
            };
            let workers: Vec<Vec<_>> = parts.iter().map(spawn).collect();
            let failed = || {
                Error::Incomplete(String::from(
                    "a thread ended early: a bug in \
                                                            forebay",
                ))
            };
            let join = |workers: Vec<thread::ScopedJoinHandle<'_, _>>| {
                let ended =
                    workers.into_iter().map(|worker| worker.join().map_err(|_| failed())?);
                ended.collect::<Result<Vec<(PhaseRecorder, Time)>, Error>>()
            };
            workers.into_iter().map(join).collect::<Result<Vec<_>, Error>>()
        })?;
        let began = start.began();
        let busy = processor_time().saturating_sub(busy);
        check_sleep((self.slept)().saturating_sub(slept))?;
        let samples = parts.iter().zip(ended).map(|(part, ended)| {
            let (recorder, last) = merged(ended).ok_or_else(Error::nothing_measured)?;
            let seconds = last.nanos_since(began) as f64 / 1e9;
            let processor = busy.as_secs_f64() / (seconds * f64::from(all)).max(1e-9);
            let mut samples = recorder.samples(last, part.shared.written(), processor.min(1.0));
            samples.began = began.nanos_since(self.epoch) as f64 / 1e9;
            Ok(samples)
        });
        samples.collect()
    }

    /// Waits until the disk has what was written, and comes to rest.
    fn rest(&mut self) -> Result<(), Error> {
        self.last = None;
        self.files.flush()?;
        thread::sleep(REST);
        Ok(())
    }

    /// On a disk that seeks, has random requests go all over it.
    fn spread(&mut self, bytes_max: u64) -> Result<u64, Error> {
        if self.info.rotational != Some(true) {
            return Ok(0);
        }
        let device = self.is_device;
        let room = if device { self.info.room } else { room_in(&self.dir)? * SPREAD_PARTS };
        match self.files.spread(room, bytes_max, device, &self.interrupt) {
            Err(Errno::CANCELED) => Err(Error::Interrupted),
            spread => spread.map_err(Error::io(format!("fill a file in `{}`", self.dir.display()))),
        }
    }

    fn check_interrupt(&self) -> Result<(), Error> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

/// A load of those that run side by side.
struct ConcurrentLoad<'a> {
    phase: &'a Phase,
    files: &'a Files,
    shared: &'a SharedProgress,
}

/// What all threads of a load recorded, and when the last one sent its last request.
fn merged(ended: Vec<(PhaseRecorder, Time)>) -> Option<(PhaseRecorder, Time)> {
    ended.into_iter().reduce(|(mut recorder, last), (other, at)| {
        recorder.merge(&other);
        (recorder, last.max(at))
    })
}

impl Target for DirectoryTarget {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn run(&mut self, phase: &Phase) -> Result<Samples, Error> {
        self.check_interrupt()?;
        if !self.last.is_some_and(|last| last.is_as(phase)) {
            self.rest()?;
        }
        let Some(files) = self.files_for(phase)? else { return Ok(Samples::none()) };
        let shared = SharedProgress::new(files.area());
        let samples = self.run_on(&[ConcurrentLoad { phase, files: &files, shared: &shared }])?;
        let mut samples = samples.into_iter().next().ok_or_else(Error::nothing_measured)?;
        self.last = Some(*phase);
        if phase.writes() && phase.work != Work::Discard && phase.file != FileState::Written {
            files.flush()?;
        }
        if phase.file == FileState::Blank {
            let written = shared.streamed() / SEGMENT_UNIT * SEGMENT_UNIT;
            if written == 0 {
                let files = files.files.len() as u64;
                let least = (files * SEGMENT_UNIT) >> 20;
                return Err(Error::Incomplete(format!(
                    "less than {least} MiB of data could be written in the time for that; use a \
                     longer budget"
                )));
            }
            self.files.segment_len = written.min(self.files.segment_len);
            samples.bytes_written += self.spread(phase.bound.bytes_max / 2)?;
        }
        Ok(samples)
    }

    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error> {
        self.check_interrupt()?;
        self.rest()?;
        let Some(files) = self.files_for(phase)? else {
            return Ok((Samples::none(), Samples::none()));
        };
        let shared =
            (SharedProgress::until_ended(self.files.area()), SharedProgress::new(files.area()));
        let parts = [
            ConcurrentLoad { phase: background, files: &self.files, shared: &shared.0 },
            ConcurrentLoad { phase, files: &files, shared: &shared.1 },
        ];
        let samples = self.run_on(&parts)?;
        let [first, mut second] =
            <[Samples; 2]>::try_from(samples).map_err(|_| Error::nothing_measured())?;
        if phase.file == FileState::Filled {
            second.bytes_written = files.segment_len;
        }
        Ok((first, second))
    }

    fn counters(&self) -> Result<DiskCounters, Error> {
        let stat = self.iostat_number.and_then(|disk| DiskStat::of(&Machine::this(), disk));
        let stat = stat.ok_or_else(|| {
            Error::Refused(String::from(
                "the kernel does not count what this disk does, so its credits cannot be watched; \
                 name a directory on the disk itself, or leave out --watch",
            ))
        })?;
        let [read, written, _] = stat.since(&DiskStat::default());
        let at = Clock::of_process().now().nanos_since(self.epoch) as f64 / 1e9;
        Ok(DiskCounters { at, operations: stat.operations(), bytes: read + written })
    }

    fn wait(&mut self, seconds: f64) -> Result<(), Error> {
        let until = Instant::now() + Duration::from_secs_f64(seconds.max(0.0));
        while Instant::now() < until {
            self.check_interrupt()?;
            thread::sleep((until - Instant::now()).min(WAIT_STEP));
        }
        Ok(())
    }
}

/// When the threads of a phase begin: all at once.
struct StartBarrier {
    barrier: Barrier,
    began: OnceLock<Time>,
}

impl StartBarrier {
    fn began(&self) -> Time {
        *self.began.get_or_init(|| Clock::of_process().now())
    }
}

/// One of the threads of a phase.
fn run_thread(
    part: &ConcurrentLoad<'_>,
    thread: u32,
    threads: u32,
    start: &StartBarrier,
    interrupt: &AtomicBool,
) -> Result<(PhaseRecorder, Time), Error> {
    let ConcurrentLoad { phase, files, shared } = *part;
    let extra = u32::from(thread < phase.depth % threads);
    let worker = Worker::new(phase, (phase.depth / threads + extra).max(1), thread.into());
    start.barrier.wait();
    let no_memory = || Error::Incomplete(String::from("no memory for the recordinging"));
    let load = PhaseLoad::new(phase, files.area(), shared, start.began(), thread.into());
    worker?.run(load.ok_or_else(no_memory)?, files, interrupt)
}

/// Bytes that the data may take.
fn room_in(dir: &Path) -> Result<u64, Error> {
    let space = rustix::fs::statvfs(dir)
        .map_err(Error::io(format!("look up the free space of `{}`", dir.display())))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize) / FREE_PART)
}

fn too_small(path: &Path, room: u64, is_device: bool) -> Error {
    let shown = path.display();
    let (room, least) = (room >> 20, ROOM_MIN >> 20);
    Error::Refused(if is_device {
        format!("`{shown}` has {room} MiB; a disk to measure has {least} MiB or more")
    } else {
        format!(
            "`{shown}` has {} MiB free, of which a quarter would be used; free some space until \
             {} MiB are",
            room * FREE_PART,
            least * FREE_PART
        )
    })
}

/// How far the clocks with and without sleep may part in a phase.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    elapsed(ClockId::ProcessCPUTime)
}

/// How long the machine has slept since it was started.
fn slept() -> Duration {
    elapsed(ClockId::Boottime).saturating_sub(elapsed(ClockId::Monotonic))
}

fn elapsed(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn check_sleep(slept: Duration) -> Result<(), Error> {
    if slept <= SLEEP_MAX {
        return Ok(());
    }
    Err(Error::Incomplete(String::from(
        "the machine slept while the disk was measured; go on with the run: --resume",
    )))
}
