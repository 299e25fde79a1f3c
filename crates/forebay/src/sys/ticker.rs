//! A thread that looks once a second at what nobody else looks at.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::sys::lock::PerProcess;
use crate::sys::panics::contain;
use crate::sys::signals;

/// So often.
const PERIOD: Duration = Duration::from_secs(1);

/// Looks; whether there is something to look at.
static LOOK: OnceLock<fn() -> bool> = OnceLock::new();
/// Whether the process has the thread.
static IS_RUNNING: PerProcess<bool> = PerProcess::new();

/// Has `look` called each second as long as it says that there is something to look at, once the
/// thread is [started](start).
pub(crate) fn set(look: fn() -> bool) {
    let _ = LOOK.set(look);
}

/// Starts the thread, if there may be something to look at and this process has none. Where none
/// is to be had nobody looks.
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
        // Who has something to look at since then has not asked for a thread yet.
        let mut is_running = IS_RUNNING.lock();
        if is_over() {
            *is_running = false;
            return;
        }
    }
}
