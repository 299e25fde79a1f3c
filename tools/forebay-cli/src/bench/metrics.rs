//! What the scheduler of a run counts, for scrapes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay::Scheduler;
use forebay::metrics::{Endpoint, EndpointConfig, open_metrics_of};

use crate::console::note;
use crate::failure::Failure;

/// An endpoint for the scheduler of the present run, if there is one.
pub(super) struct Metrics {
    current: CurrentScheduler,
    _endpoint: Endpoint,
}

/// A scheduler, and which run it is of.
type RunScheduler = (Scheduler, &'static str);

/// The scheduler of the present run.
#[derive(Clone, Default)]
struct CurrentScheduler(Arc<Mutex<Option<RunScheduler>>>);

/// Publishes a scheduler until it is dropped.
pub(super) struct Published<'a>(&'a CurrentScheduler);

impl Metrics {
    /// Serves on `address`, and says where.
    pub(super) fn serve(address: SocketAddr) -> Result<Self, Failure> {
        let current = CurrentScheduler::default();
        let config = EndpointConfig { address, ..EndpointConfig::default() };
        let source = current.clone();
        let endpoint = Endpoint::start(&config, move || source.text())
            .map_err(|error| Failure::Input(error.to_string()))?;
        note(format_args!("metrics are at http://{}/metrics", endpoint.address()));
        Ok(Self { current, _endpoint: endpoint })
    }

    /// Publishes the scheduler of a run, which every series names: the same load runs twice.
    pub(super) fn publish(&self, scheduler: &Scheduler, is_scheduled: bool) -> Published<'_> {
        let run = if is_scheduled { "scheduled" } else { "unscheduled" };
        *self.current.lock() = Some((scheduler.clone(), run));
        Published(&self.current)
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl CurrentScheduler {
    fn text(&self) -> String {
        // Under the lock: a scrape shall not keep the scheduler of a run that has ended.
        let seen = self.lock().as_ref().map(|(scheduler, run)| (scheduler.snapshot(), *run));
        let (snapshot, run) = seen.unwrap_or_default();
        let labels = [("run", run)];
        open_metrics_of(snapshot, if run.is_empty() { &[] } else { &labels })
    }

    fn lock(&self) -> MutexGuard<'_, Option<RunScheduler>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
