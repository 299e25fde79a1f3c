//! A simulated disk as a target, under virtual time.

use std::collections::HashMap;

use forebay_core::{Op, Time};
use forebay_sim::disk::{Command, SimDisk, Status};

use crate::error::Error;
use crate::load::{Area, PhaseLoad, PhaseRequest, SharedProgress};
use crate::phase::{FileState, Phase};
use crate::probe::DiskCounters;
use crate::samples::Samples;
use crate::target::{Target, TargetInfo};

/// Between two phases of different loads the disk comes to rest.
const REST_NANOS: u64 = 50_000_000;

/// Measures a simulated disk on a virtual clock: minutes of disk time pass in seconds.
pub struct SimTarget {
    disk: Box<dyn SimDisk>,
    info: TargetInfo,
    now: Time,
    next_id: u64,
    /// Bytes of the data laid out.
    laid_out: u64,
    /// What ran last alone.
    last: Option<Phase>,
    counters: DiskCounters,
}

impl SimTarget {
    /// The disk `disk`, called `name`, of `capacity` bytes, with requests in multiples of
    /// `sector` bytes.
    pub fn new(disk: Box<dyn SimDisk>, name: &str, capacity: u64, sector: u32) -> Self {
        let info = TargetInfo {
            paths: vec![name.to_owned()],
            threads: 1,
            backend: String::from("simulated"),
            alignment: sector,
            logical_sector: Some(sector),
            physical_sector: Some(sector),
            discards: true,
            rotational: disk.seeks().then_some(true),
            room: capacity,
            ..TargetInfo::default()
        };
        let counters = DiskCounters::default();
        Self { disk, info, now: Time::ZERO, next_id: 0, laid_out: capacity, last: None, counters }
    }

    fn area(&self, phase: &Phase) -> Area {
        let segment_len = match phase.file {
            FileState::Blank => self.info.room.min(phase.bound.bytes_max),
            _ if self.info.rotational == Some(true) => self.info.room,
            _ => self.laid_out,
        };
        Area { segments: 1, segment_len, places: None }
    }

    /// Waits for the next completions; says which commands they are of.
    fn completions(&mut self) -> Result<Vec<u64>, Error> {
        let hangs = || Error::Incomplete(String::from("the disk no longer answers"));
        self.now = self.now.max(self.disk.next_event().ok_or_else(hangs)?);
        let mut done = Vec::new();
        while let Some(finished) = self.disk.poll_completion(self.now) {
            if finished.status == Status::Failed {
                let what = "a request failed with an I/O error: check the disk";
                return Err(Error::Incomplete(what.into()));
            }
            done.push(finished.id);
        }
        Ok(done)
    }

    /// Sends what there is room for in a load.
    fn send(
        &mut self,
        index: usize,
        running: &mut RunningLoad<'_>,
        in_disk: &mut HashMap<u64, SentRequest>,
    ) {
        while running.ended.is_none() && running.in_flight < running.phase.depth {
            let Some(request) = running.load.next(self.now) else {
                running.ended = Some(self.now);
                break;
            };
            let PhaseRequest { op, offset, len, .. } = request;
            self.next_id += 1;
            running.in_flight += 1;
            in_disk.insert(self.next_id, SentRequest { load: index, began: self.now, op });
            self.counters.operations += 1;
            self.counters.bytes += u64::from(len);
            self.disk.submit(self.now, self.next_id, Command { op, offset, len: len.into() });
        }
    }

    /// Runs loads side by side. When the last one ends, so does the first.
    fn run_all(&mut self, parts: &[(&Phase, &SharedProgress)]) -> Result<Vec<Samples>, Error> {
        let alone = if let [(only, _)] = parts { Some(**only) } else { None };
        let goes_on = alone.zip(self.last).is_some_and(|(phase, last)| phase.is_as(&last));
        self.now = self.now.plus_nanos(if goes_on { 0 } else { REST_NANOS });
        self.last = alone;
        let no_memory = || Error::Incomplete(String::from("no memory for the recordinging"));
        let running = |&(phase, shared)| {
            let load = PhaseLoad::new(phase, self.area(phase), shared, self.now, 0);
            Ok(RunningLoad {
                phase,
                shared,
                load: load.ok_or_else(no_memory)?,
                in_flight: 0,
                ended: None,
            })
        };
        let mut loads = parts.iter().map(running).collect::<Result<Vec<_>, Error>>()?;
        let mut in_disk = HashMap::new();
        loop {
            for (index, running) in loads.iter_mut().enumerate().rev() {
                self.send(index, running, &mut in_disk);
                if running.ended.is_some()
                    && let Some((_, first)) = parts.first()
                {
                    first.end();
                }
            }
            if in_disk.is_empty() {
                break;
            }
            for id in self.completions()? {
                let Some(sent) = in_disk.remove(&id) else { continue };
                if let Some(running) = loads.get_mut(sent.load) {
                    running.in_flight -= 1;
                    running.load.completed(self.now, sent.began, sent.op);
                }
            }
        }
        Ok(loads.into_iter().map(|running| running.samples(self.now)).collect())
    }
}

/// A load that runs.
struct RunningLoad<'a> {
    phase: &'a Phase,
    shared: &'a SharedProgress,
    load: PhaseLoad<'a>,
    in_flight: u32,
    /// When the last request was sent.
    ended: Option<Time>,
}

impl RunningLoad<'_> {
    fn samples(self, now: Time) -> Samples {
        self.load.recorder.samples(self.ended.unwrap_or(now), self.shared.written(), 0.0)
    }
}

/// A request in the disk.
struct SentRequest {
    load: usize,
    began: Time,
    op: Op,
}

impl Target for SimTarget {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn run(&mut self, phase: &Phase) -> Result<Samples, Error> {
        let area = self.area(phase);
        let shared = SharedProgress::new(area);
        let samples = self.run_all(&[(phase, &shared)])?.pop();
        if phase.file == FileState::Blank {
            self.laid_out = shared.streamed().min(area.segment_len);
        }
        samples.ok_or_else(Error::nothing_measured)
    }

    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error> {
        let shared = (
            SharedProgress::until_ended(self.area(background)),
            SharedProgress::new(self.area(phase)),
        );
        let samples = self.run_all(&[(background, &shared.0), (phase, &shared.1)])?;
        <[Samples; 2]>::try_from(samples).map(Into::into).map_err(|_| Error::nothing_measured())
    }

    fn counters(&self) -> Result<DiskCounters, Error> {
        Ok(DiskCounters { at: self.now.as_nanos() as f64 / 1e9, ..self.counters })
    }

    fn wait(&mut self, seconds: f64) -> Result<(), Error> {
        let until = self.now.plus_nanos((seconds.max(0.0) * 1e9) as u64);
        while self.disk.next_event().is_some_and(|at| at <= until) {
            self.completions()?;
        }
        self.now = until;
        self.last = None;
        Ok(())
    }
}
