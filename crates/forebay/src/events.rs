//! Events that a program receives as they happen, next to its log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::messages;
use crate::slow_requests::SlowRequest;

/// Something that happened to a disk: see [`SchedulerBuilder::on_event`].
///
/// [`SchedulerBuilder::on_event`]: crate::SchedulerBuilder::on_event
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Requests or permits have not ended and no longer count in the window: the disk or a part of
    /// it hangs, or permits were forgotten. Reported once in 10 s while it lasts.
    Overdue {
        /// The name of the disk.
        disk: String,
    },
    /// I/O is done by linux-aio or by threads, because io_uring is not available. Reported by each
    /// I/O thread and each [shard](crate::shard::Shard) without io_uring.
    Fallback {
        /// The name of the disk.
        disk: String,
        /// The backend that is used: `linux-aio` or `threads`.
        backend: &'static str,
        /// The reason, and its remedy.
        reason: String,
    },
    /// The last file of the disk is dropped, but an I/O thread of the disk cannot end, because the
    /// disk hangs.
    Hang {
        /// The name of the disk.
        disk: String,
    },
    /// A request or a permit took long in the disk: see
    /// [`SchedulerBuilder::slow_requests`](crate::SchedulerBuilder::slow_requests).
    Slow(SlowRequest),
}

/// The text of the log message.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overdue { disk } => write!(
                f,
                "the disk `{disk}` hangs, or a part of it, or permits of it were never dropped: \
                 requests that do not end no longer block others"
            ),
            Self::Fallback { disk, backend, reason } => {
                write!(f, "I/O of the disk `{disk}` is done by {backend}: {reason}")
            }
            Self::Hang { disk } => {
                write!(f, "the disk `{disk}` hangs: giving up on its I/O thread")
            }
            Self::Slow(request) => request.fmt(f),
        }
    }
}

/// The program's callback for events, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Hook {
    callback: Option<Arc<Callback>>,
    /// The time in the disk from which requests are slow; `None` for never.
    pub(crate) slow_from: Option<Duration>,
}

type Callback = dyn Fn(&Event) + Send + Sync;

impl Hook {
    /// A hook without a callback. Requests in the disk for at least `slow_from` are logged.
    pub(crate) const fn slow_from(slow_from: Option<Duration>) -> Self {
        Self { callback: None, slow_from }
    }

    pub(crate) fn set(&mut self, hook: impl Fn(&Event) + Send + Sync + 'static) {
        self.callback = Some(Arc::new(hook));
    }

    /// Reports to the log and to the callback, on a thread that does nothing else.
    pub(crate) fn report(&self, event: Event) {
        let text = event.to_string();
        match event {
            Event::Fallback { .. } => messages::info(text),
            Event::Overdue { .. } | Event::Hang { .. } | Event::Slow(_) => messages::warn(text),
        }
        if let Some(hook) = &self.callback {
            let hook = Arc::clone(hook);
            messages::call(Box::new(move || hook(&event)));
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("callback", &self.callback.is_some())
            .field("slow_from", &self.slow_from)
            .finish()
    }
}
