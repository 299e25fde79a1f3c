//! Requests of block devices from when they are handed over until they end: how they are aligned,
//! where they are split, what that costs.

mod block_edges;
mod device;
mod direction;
mod findings;
mod in_flight;
mod latencies;
mod notes;
mod split_points;
mod summary;
mod watched;

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_block::DeviceNumber;

use device::Device;
pub use findings::Finding;
pub use latencies::LatencySummary;
pub use split_points::SplitCause;
pub use summary::{
    AlignedRequests, AsyncWork, BorderKnown, BorderSummary, CountBasis, DeviceSummary,
    DirectionSummary, ErrorCount, RequestsSummary, SplitPart, SplitRequest,
};
pub use watched::{Chunk, FileSystem, Watched};

use crate::block_event::BlockEvent;

/// The maximum of devices that are counted separately, and of operations of io_uring.
const DEVICES_MAX: usize = 64;
const OPERATIONS_MAX: usize = 64;

/// Counts what is seen of requests. The memory for that is bounded.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    devices: Vec<Device>,
    places: BTreeMap<DeviceNumber, usize>,
    /// What is assumed of a device that was not named.
    others: Watched,
    uncounted: u64,
    async_work: BTreeMap<String, u64>,
}

impl Requests {
    /// Looks at these devices, and at all others that are seen as at `others`, under a name of
    /// their own.
    pub fn new(watched: &[Watched], others: Watched) -> Self {
        let numbers = watched.iter().enumerate();
        let places = numbers
            .flat_map(|(place, device)| device.numbers.iter().map(move |&number| (number, place)));
        Self {
            places: places.collect(),
            devices: watched.iter().cloned().map(Device::new).collect(),
            others,
            ..Self::default()
        }
    }

    /// Takes an event of a request, so long after the beginning.
    pub fn see(&mut self, since: Duration, event: &BlockEvent) {
        let place = self.places.get(&event.device).copied().or_else(|| self.add(event.device));
        match place.and_then(|place| self.devices.get_mut(place)) {
            Some(device) => device.see(since, event),
            None => self.uncounted += 1,
        }
    }

    /// Takes a request of io_uring that the kernel gave to a thread.
    pub fn see_async_work(&mut self, operation: &str) {
        if let Some(count) = self.async_work.get_mut(operation) {
            *count += 1;
        } else if self.async_work.len() < OPERATIONS_MAX {
            self.async_work.insert(operation.to_owned(), 1);
        }
    }

    fn add(&mut self, number: DeviceNumber) -> Option<usize> {
        let place = self.devices.len();
        if place >= DEVICES_MAX {
            return None;
        }
        let watched = Watched { name: number.to_string(), ..self.others.clone() };
        self.devices.push(Device::new(watched));
        self.places.insert(number, place);
        Some(place)
    }

    /// What was found so far.
    pub fn summary(&self) -> RequestsSummary {
        let devices = self.devices.iter().map(Device::summary);
        let work = |(operation, &requests): (&String, &u64)| AsyncWork {
            operation: operation.clone(),
            requests,
        };
        RequestsSummary {
            devices: devices
                .filter(|device| !device.directions.is_empty() || !device.errors.is_empty())
                .collect(),
            uncounted: self.uncounted,
            async_work: self.async_work.iter().map(work).collect(),
        }
    }
}
