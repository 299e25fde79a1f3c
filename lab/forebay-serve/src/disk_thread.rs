//! The thread that holds the simulated disk and the timer.

use std::hint;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forebay_core::{Time, saturating_nanos};
use forebay_sim::disk::{Command, SimDisk, Status};
use fuser::Errno;
use slab::Slab;

use crate::realtime;
use crate::reply::{Completion, DataReply, Reply};
use crate::stats::{CompletionSample, ServeStats, StatsRecorder};
use crate::store::Store;
use crate::write_cache::Mark;

/// How long before a reply is due the thread stops sleeping and watches the
/// clock: about what a timer is late.
const WATCH: Duration = Duration::from_micros(40);

/// The simulated disk under the real clock. Shared by the threads that serve.
pub(crate) struct Timeline {
    state: Mutex<TimelineState>,
    /// The disk thread sleeps too long, or is to end.
    changed: Condvar,
    pub(crate) store: Arc<Store>,
    copiers: mpsc::Sender<DataReply>,
}

struct TimelineState {
    disk: Box<dyn SimDisk>,
    /// How long before the disk would complete them replies are sent.
    ahead: Duration,
    epoch: Instant,
    /// The latest moment the disk was shown.
    shown: Time,
    in_flight: Slab<InFlight>,
    /// The disk thread sleeps until this is due.
    asleep_until: Option<Time>,
    ended: bool,
    recorder: StatsRecorder,
}

/// A request that the disk has not completed.
struct InFlight {
    command: Command,
    arrived: Time,
    mark: Mark,
    reply: Reply,
}

impl Timeline {
    pub(crate) fn new(
        disk: Box<dyn SimDisk>,
        store: Arc<Store>,
        copiers: mpsc::Sender<DataReply>,
    ) -> Self {
        Self {
            state: Mutex::new(TimelineState::new(disk)),
            changed: Condvar::new(),
            store,
            copiers,
        }
    }

    /// Gives a request to the disk; the reply leaves when the disk has completed it.
    pub(crate) fn submit(&self, command: Command, mark: Mark, reply: Reply) {
        let mut state = self.lock();
        if state.ended {
            drop(state);
            return reply.fail(Errno::EIO);
        }
        let arrived = state.elapsed();
        let now = state.show(arrived);
        let id = state.in_flight.insert(InFlight { command, arrived, mark, reply });
        state.disk.submit(now, id as u64, command);
        let oversleeps = match (state.asleep_until, state.disk.next_event()) {
            (Some(until), Some(event)) => event < until,
            _ => false,
        };
        if oversleeps {
            state.asleep_until = None;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Another disk from now on, with empty statistics, and replies `ahead` of it.
    /// What is in flight fails.
    pub(crate) fn replace(&self, disk: Box<dyn SimDisk>, ahead: Duration) {
        let mut state = self.lock();
        let old = mem::replace(&mut *state, TimelineState { ahead, ..TimelineState::new(disk) });
        state.ended = old.ended;
        drop(state);
        self.changed.notify_one();
        fail_all(old.in_flight);
    }

    /// Fails everything in flight, and whatever comes from now on.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let in_flight = mem::take(&mut state.in_flight);
        drop(state);
        self.changed.notify_one();
        fail_all(in_flight);
    }

    pub(crate) fn stats(&self) -> ServeStats {
        let state = self.lock();
        state.recorder.stats(state.in_flight.len())
    }

    fn lock(&self) -> MutexGuard<'_, TimelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends replies when they are due, until the end.
    fn run(&self) {
        let mut data = Vec::new();
        let mut state = self.lock();
        while !state.ended {
            match state.take_completion(&self.store) {
                Some(completion) => {
                    drop(state);
                    completion.send(&self.store, &self.copiers, &mut data);
                    state = self.lock();
                }
                None => state = self.wait(state),
            }
        }
    }

    /// Until the disk's next event, or until something has changed.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, TimelineState>,
    ) -> MutexGuard<'a, TimelineState> {
        let Some(event) = state.disk.next_event() else {
            state.asleep_until = Some(Time::MAX);
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let due = state.epoch + state.due(event).since(Time::ZERO);
        let left = due.saturating_duration_since(Instant::now());
        if let Some(sleep) = left.checked_sub(WATCH).filter(|sleep| !sleep.is_zero()) {
            state.asleep_until = Some(event);
            let woken = self.changed.wait_timeout(state, sleep);
            let (mut state, _) = woken.unwrap_or_else(PoisonError::into_inner);
            state.asleep_until = None;
            return state;
        }
        drop(state);
        while Instant::now() < due {
            hint::spin_loop();
        }
        self.lock()
    }
}

impl TimelineState {
    fn new(disk: Box<dyn SimDisk>) -> Self {
        Self {
            disk,
            ahead: Duration::ZERO,
            epoch: Instant::now(),
            shown: Time::ZERO,
            in_flight: Slab::new(),
            asleep_until: None,
            ended: false,
            recorder: StatsRecorder::new(),
        }
    }

    fn elapsed(&self) -> Time {
        Time::from_nanos(saturating_nanos(self.epoch.elapsed()))
    }

    /// The moment to show the disk for `now`: its time never steps back.
    fn show(&mut self, now: Time) -> Time {
        self.shown = self.shown.max(now);
        self.shown
    }

    /// When the reply to what the disk completes at `at` is to leave.
    fn due(&self, at: Time) -> Time {
        Time::from_nanos(at.as_nanos().saturating_sub(saturating_nanos(self.ahead)))
    }

    /// Takes out a request whose reply is due now, and counts it: the
    /// receiver of the reply finds it counted.
    fn take_completion(&mut self, store: &Store) -> Option<Completion> {
        let now = self.elapsed();
        let shown = self.show(now.plus_nanos(saturating_nanos(self.ahead)));
        loop {
            let finished = self.disk.poll_completion(shown)?;
            let id = usize::try_from(finished.id).unwrap_or(usize::MAX);
            let Some(ended) = self.in_flight.try_remove(id) else { continue };
            let InFlight { command, arrived, mark, reply } = ended;
            let failed = finished.status == Status::Failed || !store.complete(command.op, mark);
            self.recorder.record(&CompletionSample {
                op: command.op,
                len: command.len,
                failed,
                latency_nanos: now.nanos_since(arrived),
                late_nanos: now.nanos_since(self.due(finished.at)),
            });
            return Some(Completion { command, failed, reply });
        }
    }
}

/// The disk thread; fails everything in flight when it is dropped.
pub(crate) struct DiskThread {
    timeline: Arc<Timeline>,
    thread: Option<JoinHandle<()>>,
}

impl DiskThread {
    pub(crate) fn spawn(timeline: &Arc<Timeline>, realtime: bool) -> std::io::Result<Self> {
        let shared = Arc::clone(timeline);
        let thread = thread::Builder::new().name("forebay-disk".into()).spawn(move || {
            let _ = realtime::enter_if(realtime);
            shared.run();
        })?;
        Ok(Self { timeline: Arc::clone(timeline), thread: Some(thread) })
    }
}

impl Drop for DiskThread {
    fn drop(&mut self) {
        self.timeline.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn fail_all(in_flight: Slab<InFlight>) {
    for (_, in_flight) in in_flight {
        in_flight.reply.fail(Errno::EIO);
    }
}
