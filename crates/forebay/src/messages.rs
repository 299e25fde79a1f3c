//! Messages for operators and programs, delivered by a thread of its own.
//!
//! What a logger does, or an event hook, is the program's affair:
//! it may block, panic, ask the scheduler, or write to one of its disks. So
//! none is called by a thread that has requests to serve, nor under a lock.
//!
//! The thread is there only while there are messages. No more than
//! [`WAITING_MAX`] wait for it; the log says how many were lost.
//!
//! Decision: `docs/decisions/0024-invariant-violations.md`.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use log::Level;

use crate::sys::lock::{PerProcess, assert_none_held};
use crate::sys::panics::contain;
use crate::sys::signals;

/// Most messages that wait to be delivered.
const WAITING_MAX: usize = 64;

static QUEUE: PerProcess<Queue> = PerProcess::new();

/// Impossible states that were met.
static BUGS: AtomicU64 = AtomicU64::new(0);
/// Whether [`report_invariant`] has logged one.
static BUG_REPORTED: AtomicBool = AtomicBool::new(false);
/// Messages that found no room, or no thread.
static LOST: AtomicU64 = AtomicU64::new(0);
/// The part of them that the log names.
static LOST_REPORTED: AtomicU64 = AtomicU64::new(0);

/// A message and its receiver.
enum Message {
    Log(Level, String),
    Call(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    /// Whether there is a thread that delivers them.
    has_thread: bool,
}

/// Something that an operator should do something about.
pub(crate) fn warn(text: String) {
    send_log(Level::Warn, text);
}

/// Something that an operator may want to know.
pub(crate) fn info(text: String) {
    send_log(Level::Info, text);
}

/// Calls back into the program from the thread of messages.
pub(crate) fn call(callback: Box<dyn FnOnce() + Send>) {
    send(Message::Call(callback));
}

fn send_log(level: Level, text: String) {
    if level <= log::max_level() {
        send(Message::Log(level, text));
    }
}

fn send(message: Message) {
    // What is lost is dropped without the lock: some of it is the program's.
    let pushed = QUEUE.lock().push(message);
    let (starts, mut lost) = match pushed {
        Ok(starts) => (starts, VecDeque::new()),
        Err(message) => (false, VecDeque::from([message])),
    };
    let builder = || thread::Builder::new().name(String::from("forebay-log"));
    if starts && signals::blocked(|| builder().spawn(run)).is_err() {
        lost = QUEUE.lock().give_up();
    }
    LOST.fetch_add(lost.len() as u64, Ordering::Relaxed);
    contain(|| drop(lost));
}

/// Counts this number of violated invariants.
pub(crate) fn count_bugs(count: u64) {
    BUGS.fetch_add(count, Ordering::Relaxed);
}

/// Counts a violation of an invariant, and logs the first one of the process. May be called under a
/// lock. `violation` says what is wrong: "a waiting request has no owner".
#[cold]
pub(crate) fn report_invariant(violation: &str) {
    count_bugs(1);
    if !BUG_REPORTED.swap(true, Ordering::Relaxed) {
        warn(format!("a bug in forebay: {violation}; requests may be lost; please report it"));
    }
    debug_assert!(false, "{violation}");
}

/// How many there were in this process so far.
pub(crate) fn bugs() -> u64 {
    BUGS.load(Ordering::Relaxed)
}

/// How many messages this process has lost so far.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Whether what `act` does is noted as a bug, and panics where that is wanted.
#[cfg(test)]
pub(crate) fn meets_a_bug(act: impl FnOnce()) -> bool {
    let before = bugs();
    let has_panicked = contain(act).is_none();
    bugs() > before && has_panicked == cfg!(debug_assertions)
}

/// The thread's life: until there is nothing more to log.
fn run() {
    loop {
        let next = QUEUE.lock().pop();
        let Some(message) = next else { return };
        contain(|| message.deliver());
        let lost = lost();
        let unreported = lost.wrapping_sub(LOST_REPORTED.load(Ordering::Relaxed));
        if unreported > 0 {
            let logged = contain(|| {
                log::warn!(target: "forebay", "{unreported} log messages dropped: the logger is too slow");
            });
            if logged.is_some() {
                LOST_REPORTED.store(lost, Ordering::Relaxed);
            }
        }
    }
}

impl Message {
    fn deliver(self) {
        assert_none_held();
        match self {
            Self::Log(level, text) => log::log!(target: "forebay", level, "{text}"),
            Self::Call(callback) => callback(),
        }
    }
}

impl Queue {
    /// Returns whether a thread is to be started; or the message, for which
    /// there is no room.
    fn push(&mut self, message: Message) -> Result<bool, Message> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(message);
        }
        self.waiting.push_back(message);
        Ok(!mem::replace(&mut self.has_thread, true))
    }

    /// The next message; without one, the thread is to end.
    fn pop(&mut self) -> Option<Message> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.has_thread = false;
        }
        next
    }

    /// There is no thread to be had: the messages that are lost by that.
    fn give_up(&mut self) -> VecDeque<Message> {
        self.has_thread = false;
        mem::take(&mut self.waiting)
    }
}
