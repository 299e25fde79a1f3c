//! I/O threads, to which requests are sent.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use forebay::engine::{Backend, Operation};
use forebay::{Class, Disk, Request, Timing};
use forebay_core::Time;
use slab::Slab;

use super::ready::{KeyWakers, ReadyList, of_this_thread};
use super::{Completion, Submission, SubmissionPath};
use crate::bench::scheduler::Scheduled;

type TimedRequest = Request<((io::Result<usize>, Operation), Timing)>;

#[derive(Debug)]
pub(super) struct Coordinators {
    disk: Disk,
    classes: Vec<Class>,
    /// The tokens of requests, and their futures.
    sent: Slab<(usize, TimedRequest)>,
    ready: Arc<ReadyList>,
    wakers: KeyWakers,
    /// Keys that are polled.
    keys: Vec<usize>,
    completed: VecDeque<Completion>,
}

impl Coordinators {
    pub(super) fn new(scheduled: &Scheduled) -> Self {
        let ready = ReadyList::new(of_this_thread());
        Self {
            disk: scheduled.disk.clone(),
            classes: scheduled.classes.clone(),
            sent: Slab::new(),
            wakers: KeyWakers::new(&ready),
            ready,
            keys: Vec::new(),
            completed: VecDeque::new(),
        }
    }

    /// Takes the result of the request with this key if it is there.
    fn poll(&mut self, key: usize) {
        let Some((token, request)) = self.sent.get_mut(key) else { return };
        let mut context = Context::from_waker(self.wakers.of(key));
        if let Poll::Ready(((result, operation), timing)) = Pin::new(request).poll(&mut context) {
            let (token, queue_nanos) = (*token, timing.queue_nanos);
            drop(self.sent.remove(key));
            self.completed.push_back(Completion { token, result, operation, queue_nanos });
        }
    }

    fn poll_ready(&mut self) {
        let mut keys = std::mem::take(&mut self.keys);
        self.ready.take(&mut keys);
        for key in keys.drain(..) {
            self.poll(key);
        }
        self.keys = keys;
    }
}

impl SubmissionPath for Coordinators {
    fn submit(&mut self, _: Time, submission: Submission) -> Result<(), (io::Error, Operation)> {
        let Submission { token, class, operation, .. } = submission;
        let request = self.disk.submit(&self.classes[class], operation).timed();
        let key = self.sent.insert((token, request));
        // Says whom to wake.
        self.poll(key);
        Ok(())
    }

    fn run_once(&mut self, _: Time, timeout: Duration) -> io::Result<()> {
        self.poll_ready();
        if self.completed.is_empty() && !timeout.is_zero() && self.ready.is_empty() {
            thread::park_timeout(timeout);
            self.poll_ready();
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Completion> {
        self.completed.pop_front()
    }

    fn waker(&self) -> Waker {
        of_this_thread()
    }

    fn backend(&self) -> Option<(Backend, Option<String>)> {
        None
    }
}
