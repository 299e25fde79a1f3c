//! Ctrl-C, and other requests to end.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::console::note;
use crate::failure::Failure;

/// Whether the user wants the program to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Raised by SIGINT, SIGTERM and SIGHUP. A second signal ends the program at once, for a disk
    /// that hangs can hold up an orderly end.
    pub(crate) fn on_signals() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let raised = Arc::clone(&interrupt.raised);
        ctrlc::set_handler(move || {
            if raised.swap(true, Ordering::Relaxed) {
                process::exit(130);
            }
            note("ending; press Ctrl-C again to end at once");
        })
        .map_err(|error| Failure::Run(format!("cannot listen for signals: {error}")))?;
        Ok(interrupt)
    }

    /// What is set once it is raised.
    pub(crate) fn into_flag(self) -> Arc<AtomicBool> {
        self.raised
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// An error once it is raised.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_raised() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
