//! A thread that runs a check once a second.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::sys::lock::PerProcess;
use crate::sys::panics::contain;
use crate::sys::signals;

/// The time between two checks.
const PERIOD: Duration = Duration::from_secs(1);

/// The check. It returns whether there is still something to check.
static LOOK: OnceLock<fn() -> bool> = OnceLock::new();
/// Whether the thread runs in this process.
static IS_RUNNING: PerProcess<bool> = PerProcess::new();

/// Sets the check. Once the thread is [started](start), it calls `look` each second as long as
/// `look` returns true.
pub(crate) fn set(look: fn() -> bool) {
    let _ = LOOK.set(look);
}

/// Starts the thread, if a check is set and the thread does not run. If it cannot be started, there
/// are no checks.
pub(crate) fn start() {
    let Some(look) = LOOK.get() else { return };
    let mut is_running = IS_RUNNING.lock();
    let builder = || thread::Builder::new().name(String::from("forebay-look"));
    if !*is_running {
        *is_running = signals::blocked(|| builder().spawn(move || run(*look))).is_ok();
    }
}

fn run(look: fn() -> bool) {
    let is_over = || contain(look) == Some(false);
    loop {
        thread::sleep(PERIOD);
        if !is_over() {
            continue;
        }
        // A caller that added something to check after the last check has not called `start` yet.
        let mut is_running = IS_RUNNING.lock();
        if is_over() {
            *is_running = false;
            return;
        }
    }
}
