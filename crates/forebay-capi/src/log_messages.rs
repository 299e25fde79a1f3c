//! Log messages for operators, passed to a callback of the program.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::call::call_done;

/// The level of messages that need an operator's action.
pub const FOREBAY_LOG_WARN: c_int = 2;
/// The level of messages for information.
pub const FOREBAY_LOG_INFO: c_int = 3;

/// Receives a message of `len` bytes of UTF-8, without a NUL at its end. A thread of the library calls
/// it, and holds no lock while it does.
pub type forebay_log_callback = Option<
    unsafe extern "C" fn(context: *mut c_void, level: c_int, text: *const c_char, len: usize),
>;

/// The callback and its context.
#[derive(Clone, Copy)]
struct Sink {
    callback: unsafe extern "C" fn(*mut c_void, c_int, *const c_char, usize),
    context: *mut c_void,
}

/// Null if no function is set. A lock might stay locked in a forked child, so this is a pointer, and a
/// replaced sink is never freed.
static SINK: AtomicPtr<Sink> = AtomicPtr::new(ptr::null_mut());

struct ToCallback;

impl Log for ToCallback {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // SAFETY: null, or a sink that is never freed. The header requires a function and a context that
        // any thread may use.
        if let Some(&Sink { callback, context }) = unsafe { SINK.load(Ordering::Acquire).as_ref() }
        {
            let level =
                if record.level() <= Level::Warn { FOREBAY_LOG_WARN } else { FOREBAY_LOG_INFO };
            let text = record.args().to_string();
            // SAFETY: as the caller of `forebay_set_log` promised.
            unsafe { callback(context, level, text.as_ptr().cast(), text.len()) }
        }
    }

    fn flush(&self) {}
}

/// Sets the callback that receives log messages of all schedulers of the process, such as disks without
/// an entry, unscheduled I/O and slow requests. Without a callback nothing is logged. Null removes it; a
/// call that is running may still return after that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_set_log(
    callback: forebay_log_callback,
    context: *mut c_void,
) -> c_int {
    call_done(|| {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| _ = log::set_logger(&ToCallback));
        let sink = callback.map(|callback| Box::into_raw(Box::new(Sink { callback, context })));
        log::set_max_level(if sink.is_some() { LevelFilter::Info } else { LevelFilter::Off });
        SINK.store(sink.unwrap_or(ptr::null_mut()), Ordering::Release);
        Ok(())
    })
}
