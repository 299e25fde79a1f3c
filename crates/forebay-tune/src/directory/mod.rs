//! A real disk as a target: threads, engines, and files in free space.

mod clocks;
mod disk;
mod files;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Duration;

use forebay::Clock;
use forebay_block::{Machine, Mount};
use forebay_core::Time;

pub use disk::MeasuredDisk;

use crate::error::Error;
use crate::load::{PhaseLoad, SharedProgress};
use crate::phase::{FileState, Phase, Work};
use crate::samples::{PhaseRecorder, Samples};
use crate::target::{Target, TargetInfo};
use clocks::{check_sleep, processor_time, slept};
use files::{Files, SEGMENT_UNIT};
use worker::Worker;

/// Threads beyond this do not help.
const THREADS_MAX: u32 = 64;
/// The data takes at most this part of the free space.
const FREE_PART: u64 = 4;
/// With less room than this nothing is measured.
const ROOM_MIN: u64 = 64 << 20;
/// Between two phases the disk comes to rest.
const REST: Duration = Duration::from_millis(20);

/// Measures the disk below a directory, or a block device.
pub struct DirectoryTarget {
    dir: PathBuf,
    is_device: bool,
    info: TargetInfo,
    files: Files,
    epoch: Time,
    interrupt: Arc<AtomicBool>,
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
            (Files { files: vec![file], segment_len: room }, room)
        } else {
            (Files { files: vec![files::create(&dir)?], segment_len: 0 }, room_in(&dir)?)
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
        Ok(Self { dir, is_device, info, files, epoch, interrupt, slept })
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
            let failed = || Error::Incomplete(String::from("a thread ended early: a defect"));
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
        let Some(files) = self.files_for(phase)? else { return Ok(Samples::none()) };
        let shared = SharedProgress::new(files.area());
        let samples = self.run_on(&[ConcurrentLoad { phase, files: &files, shared: &shared }])?;
        if phase.writes() && phase.work != Work::Discard {
            files.flush()?;
        }
        thread::sleep(REST);
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
        }
        samples.into_iter().next().ok_or_else(Error::nothing_measured)
    }

    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error> {
        self.check_interrupt()?;
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
        self.files.flush()?;
        thread::sleep(REST);
        let [first, mut second] =
            <[Samples; 2]>::try_from(samples).map_err(|_| Error::nothing_measured())?;
        if phase.file == FileState::Filled {
            second.bytes_written = files.segment_len;
        }
        Ok((first, second))
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
    let no_memory = || Error::Incomplete(String::from("no memory for the record"));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::phase::{Bound, Pattern};

    fn phase(work: Work, file: FileState, pattern: Pattern) -> Phase {
        let bound = Bound { seconds: 0.02, requests_min: 8, bytes_max: 8 << 20 };
        Phase { work, file, pattern, depth: 3, bound, ..Phase::probe() }
    }

    #[test]
    fn a_directory_is_written_and_read_and_nothing_is_left() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
        let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
        let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
        let samples = target.run(&Phase { request_bytes: 1 << 20, ..blank }).unwrap();
        assert!((1..=8 << 20).contains(&samples.bytes_written), "{samples:?}");
        for (work, file) in [
            (Work::Read, FileState::Written),
            (Work::Write, FileState::Fresh),
            (Work::Write, FileState::Truncated),
            (Work::Write, FileState::Allocated),
            (Work::Discard, FileState::Allocated),
        ] {
            let samples = target.run(&phase(work, file, Pattern::Sequential)).unwrap();
            assert!(samples.latency.count > 0, "{work:?} {file:?}: {samples:?}");
        }
        let flush = phase(Work::Flush, FileState::Written, Pattern::Random);
        let flush = Phase { depth: 1, ..flush };
        assert!(target.run(&flush).unwrap().latency.count > 0);
        let reads = phase(Work::Read, FileState::Written, Pattern::Random);
        let discards = phase(Work::Discard, FileState::Filled, Pattern::Sequential);
        for phase in [flush, Phase { depth: 1, ..discards }] {
            let (first, second) = target.run_concurrently(&reads, &phase).unwrap();
            assert!(first.requests > 0 && second.requests > 0, "{first:?} {second:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_machine_that_sleeps_during_a_phase_is_noticed() {
        static SECONDS: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::tempdir_in(".").unwrap();
        let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
        let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
        target.slept = || Duration::from_secs(SECONDS.fetch_add(60, Relaxed));
        let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
        let error = target.run(&blank).unwrap_err();
        assert!(matches!(&error, Error::Incomplete(text) if text.contains("the machine slept")));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_filled_with_no_more_than_may_be_written() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
        let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
        let mut blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
        (blank.request_bytes, blank.bound.seconds) = (1 << 20, 60.0);
        target.run(&blank).unwrap();
        let reads = phase(Work::Read, FileState::Written, Pattern::Random);
        for (bytes_max, written) in [(SEGMENT_UNIT - 1, 0), (SEGMENT_UNIT + 1, SEGMENT_UNIT)] {
            let mut discards = phase(Work::Discard, FileState::Filled, Pattern::Sequential);
            discards.bound.bytes_max = bytes_max;
            let (_, samples) = target.run_concurrently(&reads, &discards).unwrap();
            assert_eq!(samples.bytes_written, written);
        }
        target.interrupt.store(true, Relaxed);
        let filled = Files::single(dir.path(), FileState::Filled, 1 << 30, &target.interrupt);
        assert!(matches!(filled, Err(Error::Interrupted)));
    }

    #[test]
    fn little_data_is_in_few_files_that_are_full() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
        let mut target = DirectoryTarget::open(&disks[0], Arc::default()).unwrap();
        (target.info.threads, target.info.rotational) = (16, None);
        let mut blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
        blank.depth = 16;
        (blank.request_bytes, blank.bound.seconds) = (1 << 20, 60.0);
        target.run(&blank).unwrap();
        assert_eq!(target.files.files.len(), 2);
        let reads = phase(Work::Read, FileState::Written, Pattern::Random);
        target.run(&Phase { request_bytes: 1 << 20, ..reads }).unwrap();
        blank.bound.bytes_max = 1 << 20;
        let error = target.run(&blank).unwrap_err().to_string();
        assert!(error.contains("less than 4 MiB of data"), "{error}");
    }

    #[test]
    fn an_interrupted_phase_ends() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let disks = MeasuredDisk::find(&[dir.path().to_owned()], false).unwrap();
        let interrupt = Arc::new(AtomicBool::new(true));
        let mut target = DirectoryTarget::open(&disks[0], interrupt).unwrap();
        let blank = phase(Work::Write, FileState::Blank, Pattern::Sequential);
        assert!(matches!(target.run(&blank), Err(Error::Interrupted)));
    }
}
