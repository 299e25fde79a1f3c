//! What the scheduler of a run counts, for whoever scrapes it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay::Scheduler;
use forebay::metrics::{Endpoint, EndpointConfig, open_metrics};

use crate::console::note;
use crate::failure::Failure;

/// An endpoint for the scheduler of the present run, if there is one.
pub(super) struct Metrics {
    current: CurrentScheduler,
    _endpoint: Endpoint,
}

/// The scheduler of the present run.
#[derive(Clone, Default)]
struct CurrentScheduler(Arc<Mutex<Option<Scheduler>>>);

/// Publishes a scheduler until it is dropped.
pub(super) struct Published<'a>(&'a CurrentScheduler);

/// Reads an address to serve at.
pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:9180")
}

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

    pub(super) fn publish(&self, scheduler: &Scheduler) -> Published<'_> {
        *self.current.lock() = Some(scheduler.clone());
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
        let snapshot = self.lock().as_ref().map(Scheduler::snapshot);
        open_metrics(snapshot.unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Scheduler>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
