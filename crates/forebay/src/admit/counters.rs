//! The counters of permits.

use forebay_core::{ClassCounters, QueueCounters};

use crate::{Class, Disk};

impl Class {
    /// The counters of this class's permits on its disk, without the requests of forebay's own
    /// files. All zero after the class is removed.
    pub fn permit_counters(&self) -> ClassCounters {
        let mut sum = ClassCounters::default();
        for group in self.disk.groups() {
            let (Some(permits), Some(id)) = (group.permits_if_used(), self.id_on(group)) else {
                continue;
            };
            permits.with_queue(|queue| queue.class(id).into_iter().for_each(|c| sum.merge(c)));
        }
        sum
    }
}

impl Disk {
    /// The counters of the permits of all classes on this disk.
    pub fn permit_counters(&self) -> QueueCounters {
        let mut sum = QueueCounters::default();
        for permits in self.record.groups().filter_map(|group| group.permits_if_used()) {
            permits.with_queue(|queue| sum.merge(&queue.counters()));
        }
        sum
    }
}
