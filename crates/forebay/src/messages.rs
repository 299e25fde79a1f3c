//! Messages for operators, handed to the program's log by a thread of its own.
//!
//! What a logger does is the program's affair: it may block, panic, ask the
//! scheduler, or write to one of its disks. So none is called by a thread that
//! has requests to serve, nor under a lock.
//!
//! The thread is there only while there are messages. No more than
//! [`WAITING_MAX`] wait for it; the log is told how many were lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use log::Level;

use crate::panics::contain;

/// Most messages that wait to be logged.
const WAITING_MAX: usize = 64;

static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());

/// Messages that found no room, or no thread, and that the log was not told of.
static LOST: AtomicU64 = AtomicU64::new(0);

struct Queue {
    waiting: VecDeque<(Level, String)>,
    has_thread: bool,
}

/// Something that an operator should do something about.
pub(crate) fn warn(text: String) {
    tell(Level::Warn, text);
}

/// Something that an operator may want to know.
pub(crate) fn info(text: String) {
    tell(Level::Info, text);
}

fn tell(level: Level, text: String) {
    if level > log::max_level() {
        return;
    }
    let starts = queue().push(level, text);
    let thread = || thread::Builder::new().name(String::from("forebay-log")).spawn(run);
    if starts && thread().is_err() {
        LOST.fetch_add(queue().give_up(), Ordering::Relaxed);
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's life: until there is nothing more to log.
fn run() {
    loop {
        let next = queue().pop();
        let Some((level, text)) = next else { return };
        contain(|| log::log!(target: "forebay", level, "{text}"));
        let lost = LOST.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let told = contain(|| {
                log::warn!(target: "forebay", "{lost} messages were lost: the log is too slow");
            });
            if told.is_none() {
                LOST.fetch_add(lost, Ordering::Relaxed);
            }
        }
    }
}

impl Queue {
    const fn new() -> Self {
        Self { waiting: VecDeque::new(), has_thread: false }
    }

    /// Returns whether a thread is to be started.
    fn push(&mut self, level: Level, text: String) -> bool {
        if self.waiting.len() >= WAITING_MAX {
            LOST.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.waiting.push_back((level, text));
        !std::mem::replace(&mut self.has_thread, true)
    }

    /// The next message; without one, the thread is to end.
    fn pop(&mut self) -> Option<(Level, String)> {
        let next = self.waiting.pop_front();
        self.has_thread = next.is_some();
        next
    }

    /// There is no thread to be had: how many messages are lost by that.
    fn give_up(&mut self) -> u64 {
        self.has_thread = false;
        let lost = self.waiting.len() as u64;
        self.waiting.clear();
        lost
    }
}
