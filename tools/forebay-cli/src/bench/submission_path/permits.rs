//! One I/O queue for all threads: they ask it for permits, and do their I/O themselves.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay::engine::{self, Backend, Engine, EngineConfig, Operation};
use forebay::{AdmitFuture, Class, Permit};
use forebay_core::{Op, Time};
use slab::Slab;

use super::ready::{KeyWakers, ReadyList, of_engine};
use super::{Completion, Submission, SubmissionPath, unless_out_of_memory};
use crate::bench::scheduler::Scheduled;

/// The path of one thread. A request is one permit, whatever its size.
#[derive(Debug)]
pub(super) struct Permits {
    // The engine goes first: what it has is in the disk.
    engine: Engine,
    depth_max: usize,
    classes: Vec<Class>,
    requests: Slab<PermitRequest>,
    /// Keys of requests that ask for a permit once the engine has room for more.
    queued: VecDeque<usize>,
    /// Requests that ask or are in the engine.
    asking: usize,
    ready: Arc<ReadyList>,
    wakers: KeyWakers,
    /// Keys that are polled.
    keys: Vec<usize>,
    failed: Vec<Completion>,
}

#[derive(Debug)]
struct PermitRequest {
    token: usize,
    since: Time,
    queue_nanos: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// For this class, to do so much.
    Queued(usize, Op, u64, Operation),
    Asking(AdmitFuture, Operation),
    InDisk(Permit),
    /// Between two of these.
    Moving,
}

impl Permits {
    pub(super) fn new(scheduled: &Scheduled, config: &EngineConfig) -> io::Result<Self> {
        let engine = Engine::new(config)?;
        let ready = ReadyList::new(of_engine(engine.waker()));
        Ok(Self {
            depth_max: config.depth_max as usize,
            classes: scheduled.classes.clone(),
            requests: Slab::new(),
            queued: VecDeque::new(),
            asking: 0,
            wakers: KeyWakers::new(&ready),
            ready,
            keys: Vec::new(),
            failed: Vec::new(),
            engine,
        })
    }

    /// Asks for permits as far as the engine has room.
    fn ask(&mut self, now: Time) {
        while self.asking < self.depth_max
            && let Some(key) = self.queued.pop_front()
        {
            let stage = &mut self.requests[key].stage;
            let Stage::Queued(class, op, len, operation) = std::mem::replace(stage, Stage::Moving)
            else {
                continue;
            };
            *stage = Stage::Asking(self.classes[class].admit_async(op, len), operation);
            self.asking += 1;
            self.go_on(now, key);
        }
    }

    /// Looks whether the permit is there, and does the I/O if it is.
    fn go_on(&mut self, now: Time, key: usize) {
        let Some(request) = self.requests.get_mut(key) else { return };
        let Stage::Asking(admit, _) = &mut request.stage else { return };
        let mut context = Context::from_waker(self.wakers.of(key));
        let Poll::Ready(admitted) = Pin::new(admit).poll(&mut context) else { return };
        let stage = std::mem::replace(&mut request.stage, Stage::Moving);
        let Stage::Asking(_, operation) = stage else { return };
        request.queue_nanos = now.nanos_since(request.since);
        let pushed = match admitted {
            Ok(permit) => {
                request.stage = Stage::InDisk(permit);
                let pushed = self.engine.push(key as u64, operation);
                pushed.map_err(|(error, operation)| (io::Error::other(error), operation))
            }
            Err(error) => Err((io::Error::other(error), operation)),
        };
        if let Err((error, operation)) = pushed {
            let failed = self.end(key, Err(error), operation);
            self.failed.extend(failed);
        }
    }

    fn end(
        &mut self,
        key: usize,
        result: io::Result<usize>,
        operation: Operation,
    ) -> Option<Completion> {
        let PermitRequest { token, queue_nanos, stage, .. } = self.requests.try_remove(key)?;
        self.asking -= 1;
        if let Stage::InDisk(permit) = stage {
            permit.complete(&result);
        }
        Some(Completion { token, result, operation, queue_nanos })
    }
}

impl SubmissionPath for Permits {
    fn submit(&mut self, now: Time, submission: Submission) -> Result<(), (io::Error, Operation)> {
        let Submission { token, class, op, len, operation } = submission;
        let stage = Stage::Queued(class, op, len, operation);
        let key = self.requests.insert(PermitRequest { token, since: now, queue_nanos: 0, stage });
        self.queued.push_back(key);
        self.ask(now);
        Ok(())
    }

    fn run_once(&mut self, now: Time, timeout: Duration) -> io::Result<()> {
        let mut keys = std::mem::take(&mut self.keys);
        self.ready.take(&mut keys);
        for key in keys.drain(..) {
            self.go_on(now, key);
        }
        self.keys = keys;
        self.ask(now);
        let timeout = if self.failed.is_empty() { timeout } else { Duration::ZERO };
        unless_out_of_memory(self.engine.submit_and_wait(Some(timeout)))
    }

    fn pop(&mut self) -> Option<Completion> {
        if let Some(failed) = self.failed.pop() {
            return Some(failed);
        }
        let engine::Completion { token, result, operation } = self.engine.pop()?;
        self.end(token as usize, result, operation)
    }

    fn waker(&self) -> Waker {
        of_engine(self.engine.waker())
    }

    fn backend(&self) -> Option<(Backend, Option<String>)> {
        Some((self.engine.backend(), self.engine.fallback_reason().map(str::to_owned)))
    }
}
