//! A simulated disk as a target, under virtual time.

use std::collections::HashMap;

use forebay_core::{Op, Time};
use forebay_sim::disk::{Answer, Command, SimDisk};

use crate::error::Error;
use crate::load::{Area, Load, Shared};
use crate::phase::{FileState, Phase};
use crate::samples::Samples;
use crate::target::{Facts, Target};

/// Between two phases the disk comes to rest.
const REST_NANOS: u64 = 50_000_000;

/// Measures a simulated disk on a virtual clock: minutes of disk time pass in seconds.
pub struct SimTarget {
    disk: Box<dyn SimDisk>,
    facts: Facts,
    now: Time,
    next_id: u64,
    /// Bytes of the data laid out.
    laid_out: u64,
}

impl SimTarget {
    /// The disk `disk`, called `name`, of `capacity` bytes, with requests in multiples of
    /// `sector` bytes.
    pub fn new(disk: Box<dyn SimDisk>, name: &str, capacity: u64, sector: u32) -> Self {
        let facts = Facts {
            places: vec![name.to_owned()],
            threads: 1,
            backend: String::from("simulated"),
            alignment: sector,
            logical_sector: Some(sector),
            physical_sector: Some(sector),
            discards: true,
            room: capacity,
            ..Facts::default()
        };
        Self { disk, facts, now: Time::ZERO, next_id: 0, laid_out: capacity }
    }

    fn area(&self, phase: &Phase) -> Area {
        let segment_len = match phase.file {
            FileState::Blank => self.facts.room.min(phase.bound.bytes_max),
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
}

impl Target for SimTarget {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn run(&mut self, phase: &Phase) -> Result<Samples, Error> {
        self.now = self.now.plus_nanos(REST_NANOS);
        let area = self.area(phase);
        let shared = Shared::new(area);
        let no_memory = || Error::Incomplete(String::from("no memory for the record"));
        let mut load = Load::new(phase, area, &shared, self.now, 0).ok_or_else(no_memory)?;
        let mut running: HashMap<u64, (Time, Op)> = HashMap::new();
        let mut ended = None;
        loop {
            while ended.is_none() && running.len() < phase.depth as usize {
                let Some(request) = load.next(self.now) else {
                    ended = Some(self.now);
                    break;
                };
                let command =
                    Command { op: request.op, offset: request.offset, len: request.len.into() };
                self.next_id += 1;
                running.insert(self.next_id, (self.now, request.op));
                self.disk.submit(self.now, self.next_id, command);
            }
            if running.is_empty() {
                break;
            }
            for id in self.answers()? {
                if let Some((began, op)) = running.remove(&id) {
                    load.completed(self.now, began, op);
                }
            }
        }
        if phase.file == FileState::Blank {
            self.laid_out = shared.streamed().min(area.segment_len);
        }
        let ended = ended.unwrap_or(self.now);
        Ok(load.recorder().samples(ended, shared.written(), 0.0))
    }
}
