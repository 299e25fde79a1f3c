//! Counters and latency histograms of a scheduler.
//!
//! Every I/O queue has its own counters, which its owner writes and any thread may read: counting
//! takes no lock and no locked instruction. A [`Snapshot`] adds them up.
//!
//! With the feature `metrics` a snapshot is also OpenMetrics text. With the
//! feature `endpoint` an `Endpoint` serves it.

mod discards;
mod histogram;
#[cfg(feature = "metrics")]
mod open_metrics;
mod queue;
mod snapshot;
mod traffic;

pub use discards::Discards;
pub(crate) use discards::{DiscardCounts, Waiting};
#[cfg(feature = "endpoint")]
pub use forebay_endpoint::{Endpoint, EndpointConfig};
pub use histogram::Distribution;
#[cfg(feature = "metrics")]
pub use open_metrics::{open_metrics, open_metrics_of};
pub(crate) use queue::{Held, QueueMetrics};
pub use snapshot::{ClassSnapshot, DiskSnapshot, Engines, PageCacheReads, Snapshot};
pub use traffic::{DeviceTraffic, MemberTraffic, Traffic};
