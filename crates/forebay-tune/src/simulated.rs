//! A simulated disk as a target, under virtual time.

use std::collections::HashMap;

use forebay_core::{Op, Time};
use forebay_sim::disk::{Answer, Command, SimDisk};

use crate::error::Error;
use crate::load::{Area, Load, Request, Shared};
use crate::phase::{FileState, Phase};
use crate::samples::Samples;
use crate::target::{Target, TargetInfo};

/// Between two phases the disk comes to rest.
const REST_NANOS: u64 = 50_000_000;

/// Measures a simulated disk on a virtual clock: minutes of disk time pass in seconds.
pub struct SimTarget {
    disk: Box<dyn SimDisk>,
    info: TargetInfo,
    now: Time,
    next_id: u64,
    /// Bytes of the data laid out.
    laid_out: u64,
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
            room: capacity,
            ..TargetInfo::default()
        };
        Self { disk, info, now: Time::ZERO, next_id: 0, laid_out: capacity }
    }

    fn area(&self, phase: &Phase) -> Area {
        let segment_len = match phase.file {
            FileState::Blank => self.info.room.min(phase.bound.bytes_max),
            _ => self.laid_out,
        };
        Area { segments: 1, segment_len }
    }

    /// Waits for the next answers; says which commands are done.
    fn answers(&mut self) -> Result<Vec<u64>, Error> {
        let hangs = || Error::Incomplete(String::from("the disk does not answer any more"));
        self.now = self.now.max(self.disk.next_event().ok_or_else(hangs)?);
        let mut done = Vec::new();
        while let Some(finished) = self.disk.poll_finished(self.now) {
            if finished.answer == Answer::Failed {
                let what = "the disk fails a request: it has bad places; replace it";
                return Err(Error::Incomplete(what.into()));
            }
            done.push(finished.id);
        }
        Ok(done)
    }

    /// Sends what there is room for in a lane.
    fn send(&mut self, index: usize, lane: &mut Lane<'_>, running: &mut HashMap<u64, Sent>) {
        while lane.ended.is_none() && lane.in_flight < lane.phase.depth {
            let Some(request) = lane.load.next(self.now) else {
                lane.ended = Some(self.now);
                break;
            };
            let Request { op, offset, len, .. } = request;
            self.next_id += 1;
            lane.in_flight += 1;
            running.insert(self.next_id, Sent { lane: index, began: self.now, op });
            self.disk.submit(self.now, self.next_id, Command { op, offset, len: len.into() });
        }
    }

    /// Runs loads side by side. When the last one ends, so does the first.
    fn run_all(&mut self, parts: &[(&Phase, &Shared)]) -> Result<Vec<Samples>, Error> {
        self.now = self.now.plus_nanos(REST_NANOS);
        let no_memory = || Error::Incomplete(String::from("no memory for the record"));
        let lane = |&(phase, shared)| {
            let load = Load::new(phase, self.area(phase), shared, self.now, 0);
            Ok(Lane { phase, shared, load: load.ok_or_else(no_memory)?, in_flight: 0, ended: None })
        };
        let mut lanes = parts.iter().map(lane).collect::<Result<Vec<_>, Error>>()?;
        let mut running = HashMap::new();
        loop {
            for (index, lane) in lanes.iter_mut().enumerate().rev() {
                self.send(index, lane, &mut running);
                if lane.ended.is_some()
                    && let Some((_, first)) = parts.first()
                {
                    first.end();
                }
            }
            if running.is_empty() {
                break;
            }
            for id in self.answers()? {
                let Some(sent) = running.remove(&id) else { continue };
                if let Some(lane) = lanes.get_mut(sent.lane) {
                    lane.in_flight -= 1;
                    lane.load.completed(self.now, sent.began, sent.op);
                }
            }
        }
        Ok(lanes.into_iter().map(|lane| lane.samples(self.now)).collect())
    }
}

/// A load that runs.
struct Lane<'a> {
    phase: &'a Phase,
    shared: &'a Shared,
    load: Load<'a>,
    in_flight: u32,
    /// When the last request was sent.
    ended: Option<Time>,
}

impl Lane<'_> {
    fn samples(self, now: Time) -> Samples {
        self.load.recorder().samples(self.ended.unwrap_or(now), self.shared.written(), 0.0)
    }
}

/// A request in the disk.
struct Sent {
    lane: usize,
    began: Time,
    op: Op,
}

impl Target for SimTarget {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn run(&mut self, phase: &Phase) -> Result<Samples, Error> {
        let area = self.area(phase);
        let shared = Shared::new(area);
        let samples = self.run_all(&[(phase, &shared)])?.pop();
        if phase.file == FileState::Blank {
            self.laid_out = shared.streamed().min(area.segment_len);
        }
        samples.ok_or_else(Error::nothing_measured)
    }

    fn run_beside(&mut self, phase: &Phase, beside: &Phase) -> Result<(Samples, Samples), Error> {
        let shared = (Shared::until_ended(self.area(phase)), Shared::new(self.area(beside)));
        let samples = self.run_all(&[(phase, &shared.0), (beside, &shared.1)])?;
        <[Samples; 2]>::try_from(samples).map(Into::into).map_err(|_| Error::nothing_measured())
    }
}
