//! Messages for operators and programs, which a separate thread delivers.
//!
//! A logger or an event hook is code of the program. It may block, panic, use the scheduler, or
//! write to one of its disks. So none is called on a thread that serves requests, or under a lock.
//!
//! The thread exists only while there are messages. At most [`WAITING_MAX`] wait for it. The log
//! reports the number of lost ones.
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

/// The most messages that wait for delivery.
const WAITING_MAX: usize = 64;

static QUEUE: PerProcess<Queue> = PerProcess::new();

/// The number of broken invariants.
static BUGS: AtomicU64 = AtomicU64::new(0);
/// Whether [`report_invariant`] has logged one of them.
static BUG_REPORTED: AtomicBool = AtomicBool::new(false);
/// The number of messages that found no room, or no thread.
static LOST: AtomicU64 = AtomicU64::new(0);
/// The number of lost messages that were reported.
static LOST_REPORTED: AtomicU64 = AtomicU64::new(0);

/// A message and its receiver.
enum Message {
    Log(Level, String),
    Call(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    /// Whether the thread that delivers them runs.
    has_thread: bool,
}

/// Logs a message that may need an action of the operator.
pub(crate) fn warn(text: String) {
    send_log(Level::Warn, text);
}

/// Logs a message for information.
pub(crate) fn info(text: String) {
    send_log(Level::Info, text);
}

/// Calls the program on the thread of messages.
pub(crate) fn call(callback: Box<dyn FnOnce() + Send>) {
    send(Message::Call(callback));
}

fn send_log(level: Level, text: String) {
    if level <= log::max_level() {
        send(Message::Log(level, text));
    }
}

fn send(message: Message) {
    // A lost message is dropped without the lock, because it may be code of the program.
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

/// Counts broken invariants.
pub(crate) fn count_bugs(count: u64) {
    BUGS.fetch_add(count, Ordering::Relaxed);
}

/// Counts a broken invariant, and logs the first one of the process. It may be called under a lock.
/// `violation` names the broken state, such as "a waiting request has no owner".
#[cold]
pub(crate) fn report_invariant(violation: &str) {
    count_bugs(1);
    if !BUG_REPORTED.swap(true, Ordering::Relaxed) {
        warn(format!("a bug in forebay: {violation}; requests may be lost; please report it"));
    }
    debug_assert!(false, "{violation}");
}

/// The number of broken invariants in this process.
pub(crate) fn bugs() -> u64 {
    BUGS.load(Ordering::Relaxed)
}

/// The number of messages that this process has lost.
pub(crate) fn lost() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Whether `act` is reported as a bug, or panics where bugs are to panic.
#[cfg(test)]
pub(crate) fn meets_a_bug(act: impl FnOnce()) -> bool {
    let before = bugs();
    let has_panicked = contain(act).is_none();
    bugs() > before && has_panicked == cfg!(debug_assertions)
}

/// The loop of the thread, until there are no more messages.
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
    /// Queues a message. Returns whether a thread has to be started, or the message if there is no
    /// room.
    fn push(&mut self, message: Message) -> Result<bool, Message> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(message);
        }
        self.waiting.push_back(message);
        Ok(!mem::replace(&mut self.has_thread, true))
    }

    /// The next message. If there is none, the thread has to end.
    fn pop(&mut self) -> Option<Message> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.has_thread = false;
        }
        next
    }

    /// Takes the messages that are lost because no thread can be started.
    fn give_up(&mut self) -> VecDeque<Message> {
        self.has_thread = false;
        mem::take(&mut self.waiting)
    }
}
