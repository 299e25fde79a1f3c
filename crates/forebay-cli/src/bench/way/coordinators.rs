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

use super::ready::{KeyWakers, Ready, of_this_thread};
use super::{Done, Submission, Way};
use crate::bench::scheduler::Scheduled;

type Answer = Request<((io::Result<usize>, Operation), Timing)>;

#[derive(Debug)]
pub(super) struct Coordinators {
    disk: Disk,
    classes: Vec<Class>,
    /// The tokens of requests, and what stands for their answers.
    sent: Slab<(usize, Answer)>,
    ready: Arc<Ready>,
    wakers: KeyWakers,
    /// Keys that are looked at.
    keys: Vec<usize>,
    done: VecDeque<Done>,
}

impl Coordinators {
    pub(super) fn new(scheduled: &Scheduled) -> Self {
        let ready = Ready::new(of_this_thread());
        Self {
            disk: scheduled.disk.clone(),
            classes: scheduled.classes.clone(),
            sent: Slab::new(),
            wakers: KeyWakers::new(&ready),
            ready,
            keys: Vec::new(),
            done: VecDeque::new(),
        }
    }

    /// Takes the answer with this key if it is there.
    fn look(&mut self, key: usize) {
        let Some((token, answer)) = self.sent.get_mut(key) else { return };
        let mut context = Context::from_waker(self.wakers.of(key));
        if let Poll::Ready(((result, operation), timing)) = Pin::new(answer).poll(&mut context) {
            let (token, queue_nanos) = (*token, timing.queue_nanos);
            drop(self.sent.remove(key));
            self.done.push_back(Done { token, result, operation, queue_nanos });
        }
    }

    fn look_at_all_ready(&mut self) {
        let mut keys = std::mem::take(&mut self.keys);
        self.ready.take(&mut keys);
        for key in keys.drain(..) {
            self.look(key);
        }
        self.keys = keys;
    }
}

impl Way for Coordinators {
    fn submit(&mut self, _: Time, submission: Submission) -> Result<(), (io::Error, Operation)> {
        let Submission { token, class, operation, .. } = submission;
        let answer = self.disk.submit(&self.classes[class], operation).timed();
        let key = self.sent.insert((token, answer));
        // Says whom to wake.
        self.look(key);
        Ok(())
    }

    fn turn(&mut self, _: Time, timeout: Duration) -> io::Result<()> {
        self.look_at_all_ready();
        if self.done.is_empty() && !timeout.is_zero() && self.ready.is_empty() {
            thread::park_timeout(timeout);
            self.look_at_all_ready();
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    fn waker(&self) -> Waker {
        of_this_thread()
    }

    fn backend(&self) -> Option<(Backend, Option<String>)> {
        None
    }
}
