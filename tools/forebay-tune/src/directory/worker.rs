//! A thread of a phase: sends requests and waits for them.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay::engine::{Completion, Engine, EngineConfig, Operation};
use forebay::{AlignedBuf, Clock, DirectFile};
use forebay_core::{Op, Time};
use forebay_load::Rng;

use super::files::Files;
use crate::error::Error;
use crate::load::{PhaseLoad, PhaseRequest};
use crate::phase::Phase;
use crate::samples::PhaseRecorder;

const BUFFER_ALIGNMENT: usize = 4096;
const PAGE: usize = 4096;
/// How long Ctrl-C may go unnoticed.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// A disk that does not answer for so long hangs.
const SILENCE_NANOS_MAX: u64 = 60_000_000_000;

/// A thread, ready to begin.
pub(super) struct Worker {
    engine: Engine,
    /// By token.
    slots: Vec<Slot>,
    /// Tokens that nothing runs under.
    free: Vec<usize>,
    stamps: u64,
}

struct Slot {
    buffer: Option<AlignedBuf>,
    began: Time,
    op: Op,
    file: Option<DirectFile>,
}

impl Worker {
    /// A worker for `depth` requests of `phase`.
    pub(super) fn new(phase: &Phase, depth: u32, thread: u64) -> Result<Self, Error> {
        let config =
            EngineConfig { depth_max: depth, threads_max: depth, ..EngineConfig::default() };
        let engine = Engine::new(&config).map_err(Error::io("start an I/O engine"))?;
        let mut rng = Rng::new(2, &[thread]);
        let slots = (0..depth).map(|_| {
            let mut buffer = AlignedBuf::new(phase.request_bytes as usize, BUFFER_ALIGNMENT)
                .map_err(Error::io("allocate memory for requests"))?;
            if phase.writes() {
                fill(&mut buffer, &mut rng);
            }
            Ok(Slot { buffer: Some(buffer), began: Time::ZERO, op: Op::Read, file: None })
        });
        let slots = slots.collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { engine, free: (0..slots.len()).rev().collect(), slots, stamps: thread << 48 })
    }

    /// What executes its requests.
    pub(super) fn backend(&self) -> &'static str {
        self.engine.backend().name()
    }

    /// Runs the load to its end; says when the last request was sent.
    pub(super) fn run(
        mut self,
        mut load: PhaseLoad<'_>,
        files: &Files,
        interrupt: &AtomicBool,
    ) -> Result<(PhaseRecorder, Time), Error> {
        let clock = Clock::of_process();
        let mut ended = None;
        let mut heard = clock.now();
        loop {
            while ended.is_none()
                && let Some(&token) = self.free.last()
            {
                let now = clock.now();
                match load.next(now) {
                    None => ended = Some(now),
                    Some(request) => {
                        self.free.pop();
                        self.send(token, now, request, files)?;
                    }
                }
            }
            if self.engine.in_flight() == 0 {
                return Ok((load.recorder, ended.unwrap_or(heard)));
            }
            self.engine.submit_and_wait(Some(WAIT_MAX)).map_err(Error::io("submit requests"))?;
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let now = clock.now();
            while let Some(completion) = self.engine.pop() {
                heard = now;
                self.receive(completion, now, &mut load)?;
            }
            if now.nanos_since(heard) > SILENCE_NANOS_MAX {
                let what = "the disk has not answered for a minute; see the kernel's log";
                return Err(Error::Incomplete(what.into()));
            }
        }
    }

    fn send(
        &mut self,
        token: usize,
        now: Time,
        request: PhaseRequest,
        files: &Files,
    ) -> Result<(), Error> {
        let defect = || {
            Error::Incomplete(String::from(
                "a request without a file: a bug in \
                                                        forebay",
            ))
        };
        let file = files.files.get(request.segment as usize).ok_or_else(defect)?.clone();
        let slot = self.slots.get_mut(token).ok_or_else(defect)?;
        (slot.began, slot.op, slot.file) = (now, request.op, Some(file.clone()));
        let operation = match request.op {
            Op::Flush => Operation::SyncData { file },
            Op::Discard => {
                Operation::PunchHole { file, offset: request.offset, len: request.len.into() }
            }
            op => {
                let mut buffer = slot.buffer.take().ok_or_else(defect)?;
                if op == Op::Read {
                    Operation::read(file, request.offset, buffer)
                } else {
                    stamp(&mut buffer, &mut self.stamps);
                    Operation::write(file, request.offset, buffer)
                }
            }
        };
        self.push(token, operation)
    }

    fn push(&mut self, token: usize, operation: Operation) -> Result<(), Error> {
        let refused = |(error, _)| {
            Error::Incomplete(format!(
                "the I/O engine rejected a request: \
                                                              {error}"
            ))
        };
        self.engine.push(token as u64, operation).map_err(refused)
    }

    fn receive(
        &mut self,
        completion: Completion,
        now: Time,
        load: &mut PhaseLoad<'_>,
    ) -> Result<(), Error> {
        let Completion { token, result, operation } = completion;
        let token = token as usize;
        let wanted = operation.transfer_len();
        let done = result.map_err(|error| failed(&operation, error))?;
        if done != wanted {
            return Err(Error::Incomplete(String::from(
                "a request was cut short; is the disk full? Free some space",
            )));
        }
        let Some(slot) = self.slots.get_mut(token) else { return Ok(()) };
        // A discard reaches the disk with the next flush only.
        if matches!(operation, Operation::PunchHole { .. })
            && let Some(file) = slot.file.take()
        {
            return self.push(token, Operation::SyncData { file });
        }
        load.completed(now, slot.began, slot.op);
        if let Some(buffer) = operation.into_buffer() {
            slot.buffer = Some(buffer);
        }
        self.free.push(token);
        Ok(())
    }
}

fn failed(operation: &Operation, source: std::io::Error) -> Error {
    let what = match operation {
        Operation::Read { .. } => "read",
        Operation::Write { .. } if source.kind() == ErrorKind::StorageFull => {
            "write, the disk is full; free some space"
        }
        Operation::Write { .. } => "write",
        Operation::PunchHole { .. } => "give space back",
        _ => "flush",
    };
    Error::Io { what: what.into(), source }
}

/// Fills `bytes` with what does not compress.
fn fill(bytes: &mut [u8], rng: &mut Rng) {
    for chunk in bytes.chunks_mut(size_of::<u64>()) {
        chunk.copy_from_slice(&rng.next_u64().to_ne_bytes()[..chunk.len()]);
    }
}

/// Makes no two pages alike, for disks that store such only once.
fn stamp(bytes: &mut [u8], stamps: &mut u64) {
    for page in bytes.chunks_mut(PAGE) {
        *stamps += 1;
        if let Some(first) = page.first_chunk_mut() {
            *first = stamps.to_ne_bytes();
        }
    }
}
