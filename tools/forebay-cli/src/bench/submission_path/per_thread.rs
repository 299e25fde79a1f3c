//! A shard per thread.

use std::io;
use std::task::Waker;
use std::time::Duration;

use forebay::Class;
use forebay::engine::{Backend, EngineConfig, Operation};
use forebay::shard::{self, Shard};
use forebay_core::Time;

use super::ready::of_engine;
use super::{Completion, Submission, SubmissionPath, unless_out_of_memory};
use crate::bench::scheduler::Scheduled;

#[derive(Debug)]
pub(super) struct PerThread {
    shard: Shard,
    classes: Vec<Class>,
    /// By the index of their operations.
    tokens: Vec<usize>,
}

impl PerThread {
    pub(super) fn new(scheduled: &Scheduled, config: &EngineConfig) -> io::Result<Self> {
        let shard = scheduled.disk.shard(config).map_err(io::Error::other)?;
        Ok(Self { shard, classes: scheduled.classes.clone(), tokens: Vec::new() })
    }
}

impl SubmissionPath for PerThread {
    fn submit(&mut self, _: Time, submission: Submission) -> Result<(), (io::Error, Operation)> {
        let Submission { token, class, operation, .. } = submission;
        let submitted = self.shard.submit(&self.classes[class], operation);
        let id = submitted.map_err(|(error, operation)| (io::Error::other(error), operation))?;
        if self.tokens.len() <= id.index() {
            self.tokens.resize(id.index() + 1, usize::MAX);
        }
        self.tokens[id.index()] = token;
        Ok(())
    }

    fn run_once(&mut self, _: Time, timeout: Duration) -> io::Result<()> {
        unless_out_of_memory(self.shard.run_once(Some(timeout)))
    }

    fn pop(&mut self) -> Option<Completion> {
        let shard::Completion { id, result, operation, queue_nanos, .. } = self.shard.pop()?;
        Some(Completion { token: self.tokens[id.index()], result, operation, queue_nanos })
    }

    fn waker(&self) -> Waker {
        of_engine(self.shard.waker())
    }

    fn backend(&self) -> Option<(Backend, Option<String>)> {
        Some((self.shard.backend(), self.shard.fallback_reason().map(str::to_owned)))
    }
}
