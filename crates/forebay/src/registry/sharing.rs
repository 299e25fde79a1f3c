//! Disks that other processes use too: the demand and the part of this process.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use forebay_core::Time;

use super::apply::Applied;
use super::class::ClassRecord;
use super::disk::DiskRecord;
use super::shared::Shared;
use crate::messages;
use crate::siblings::{Demand, Segment, Siblings, Slot};
use crate::sys::clock::Clock;
use crate::sys::panics::contain;
use crate::sys::signals;

/// The time between two exchanges with the other processes. A shorter time costs CPU time. With a
/// longer one, disk time that others have just freed lies unused for longer.
const LOOK: Duration = Duration::from_millis(50);
/// The time in nanoseconds (1 s) for which a class counts after its last request, so that a class
/// with few requests counts all the time.
const COUNTS_NANOS: u64 = 1_000_000_000;
/// The usage is an average over about this many exchanges. With fewer it is noisy on a slow disk.
/// With more, disk time that others free is used later.
const LOOKS_AVERAGED: f64 = 6.0;
/// Work counts as waiting if it waited for at least this fraction (1/8) of the time between two
/// exchanges.
const WAITS_PART: u64 = 8;
/// Work also counts as waiting, in the disk, if it fills at least this fraction (1/2) of its
/// window. That keeps the disk busy, so that others need no more than their due.
const FILLS_PART: u64 = 2;
/// The time in nanoseconds (200 ms) after the last wait for which a process counts as wanting more.
const WANTS_NANOS: u64 = 200_000_000;
/// Queues are woken if the part grows by more than this fraction (1/8).
const WAKES_PART: u32 = 8;

/// Starts a thread for each disk that is shared through a segment and has none yet.
pub(crate) fn start(scheduler: &Arc<Shared>, applied: &[Applied]) {
    for (disk, _) in applied {
        let Some((segment, epoch)) = disk.take_segment() else { continue };
        let (scheduler, weak) = (Arc::downgrade(scheduler), Arc::downgrade(disk));
        let thread = thread::Builder::new().name(String::from("forebay-share"));
        let run = move || {
            let mut looker = Looker::new(segment);
            while contain(|| looker.look(&scheduler, &weak, epoch)) == Some(true) {
                thread::sleep(LOOK);
            }
        };
        if let Err(error) = signals::blocked(|| thread.spawn(run)) {
            let name = &disk.name;
            messages::warn(format!("disk `{name}` is not shared with other processes: {error}"));
        }
    }
}

/// The exchange of demands through the segment of a disk.
struct Looker {
    segment: Segment,
    siblings: Siblings,
    meters: [Meter; 2],
    sequence: u64,
    parts: [Option<u32>; 2],
    has_failed: bool,
}

impl Looker {
    fn new(segment: Segment) -> Self {
        let (siblings, meters) = (Siblings::default(), Default::default());
        Self { segment, siblings, meters, sequence: 0, parts: [None; 2], has_failed: false }
    }

    /// Does one exchange. Returns whether another one is needed.
    fn look(&mut self, scheduler: &Weak<Shared>, disk: &Weak<DiskRecord>, epoch: u64) -> bool {
        let (Some(scheduler), Some(disk)) = (scheduler.upgrade(), disk.upgrade()) else {
            return false;
        };
        let Ok(registry) = scheduler.registry() else { return false };
        let classes = registry.classes.clone();
        drop(registry);
        if !disk.is_shared_since(epoch) {
            return false;
        }
        let now = Clock::of_process().now();
        let mut demands = [Demand::default(); 2];
        for (direction, meter) in self.meters.iter_mut().enumerate() {
            let trim = self.siblings.trims()[direction];
            demands[direction] = Demand { trim, ..meter.read(now, &disk, direction, &classes) };
        }
        let parts = self.exchange(now, demands).unwrap_or_else(|error| {
            if !std::mem::replace(&mut self.has_failed, true) {
                let path = self.segment.path.display();
                messages::warn(format!(
                    "disk `{}` is not shared with other processes for now: {path}: {error}",
                    disk.name
                ));
            }
            [None; 2]
        });
        let grown = (0..2).any(|of| grows(self.parts[of], parts[of]));
        if !disk.set_parts_since(epoch, parts) {
            return false;
        }
        self.parts = parts;
        if grown {
            disk.wake_queues();
        }
        true
    }

    /// Writes the demand of this process. Returns its parts.
    fn exchange(&mut self, now: Time, demands: [Demand; 2]) -> io::Result<[Option<u32>; 2]> {
        if self.segment.is_gone() {
            let path: &Path = &self.segment.path;
            self.segment = Segment::open(path, false).map_err(io::Error::other)?;
        }
        self.sequence += 1;
        self.segment.write(Slot { sequence: self.sequence, demands })?;
        let slots = self.segment.read()?;
        let parts = self.siblings.look(now, demands, &slots, |slot| self.segment.has_owner(slot));
        self.has_failed = false;
        Ok(parts)
    }
}

fn grows(before: Option<u32>, after: Option<u32>) -> bool {
    let Some(before) = before else { return false };
    after.is_none_or(|after| after > before.saturating_add(before / WAKES_PART))
}

/// Measures the usage of one direction of a disk by this process.
#[derive(Debug, Default)]
struct Meter {
    at: Time,
    waited_nanos: u64,
    used: f64,
    wants_until: Time,
    /// The disk time that each class has used, by name, and when it last rose.
    classes: BTreeMap<String, (u64, Time)>,
}

impl Meter {
    fn read(
        &mut self,
        now: Time,
        disk: &DiskRecord,
        direction: usize,
        classes: &[Arc<ClassRecord>],
    ) -> Demand {
        let nanos = now.nanos_since(self.at).max(1);
        let (mut used_nanos, mut waited_nanos, mut groups, mut in_disk) = (0, 0, 0, 0);
        let mut shares = BTreeMap::new();
        let mut before = std::mem::take(&mut self.classes);
        let mut fills = false;
        for group in disk.groups_of(direction) {
            groups += 1;
            let window = group.io.window_in_force().units();
            fills |= group.io.in_flight().units() >= (window / FILLS_PART).max(1);
            waited_nanos =
                group.all_metrics().fold(waited_nanos, |sum, queue| sum + queue.waited_nanos());
        }
        for class in classes {
            let held = disk.held_of(direction, class);
            let (then, rose_at) =
                before.remove(&class.name).unwrap_or((held.cost_nanos, Time::ZERO));
            let more = held.cost_nanos.saturating_sub(then);
            used_nanos += more;
            in_disk += held.in_disk;
            let rose_at = if more > 0 || held.in_disk > 0 { now } else { rose_at };
            if rose_at > Time::ZERO && now.nanos_since(rose_at) < COUNTS_NANOS {
                let (name, of_top) = top(class);
                shares.insert(name, of_top);
            }
            self.classes.insert(class.name.clone(), (held.cost_nanos, rose_at));
        }
        let is_first = self.at == Time::ZERO;
        self.at = now;
        let waited =
            waited_nanos.saturating_sub(std::mem::replace(&mut self.waited_nanos, waited_nanos));
        if !is_first && (fills || waited >= nanos / WAITS_PART) {
            self.wants_until = now.plus_nanos(WANTS_NANOS);
        }
        let wants = now < self.wants_until;
        if !is_first && groups > 0 {
            let used = used_nanos as f64 / nanos as f64 / f64::from(groups);
            // A process with a small part is not idle between two requests.
            let is_idle = used_nanos == 0 && in_disk == 0 && !wants;
            self.used = if is_idle { 0.0 } else { self.used + (used - self.used) / LOOKS_AVERAGED };
        }
        Demand { weight: shares.values().sum(), used: (self.used * 1e6) as u32, wants, trim: 0 }
    }
}

/// The name and shares of the class, or of the outermost group that it is in.
fn top(class: &ClassRecord) -> (&str, u32) {
    let Some(mut group) = class.parent.as_ref() else {
        return (&class.name, class.settings.lock().shares);
    };
    while let Some(parent) = &group.parent {
        group = parent;
    }
    (&group.name, group.settings.lock().shares)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::Scheduler;
    use crate::properties::Properties;

    #[test]
    fn a_reload_to_a_fixed_part_is_not_undone_by_a_look_that_had_begun() {
        let dir = tempfile::tempdir().unwrap();
        let shown = dir.path().display();
        let file = |sharing: &str| {
            let text = format!(
                "disks:\n  - mountpoint: {shown}\n    read_iops: 2000\n    write_iops: 2000\n    \
                 read_bandwidth: 100M\n    write_bandwidth: 100M\n    {sharing}\n"
            );
            Properties::parse("forebay.yaml", &text).unwrap()
        };
        let scheduler = Scheduler::builder().properties(&file("")).build().unwrap();
        let disk = scheduler.disk_of_file(File::open(dir.path()).unwrap()).unwrap();
        let window = || disk.record.groups_of(0).next().unwrap().io.window_in_force();
        let (shared, part) =
            (file(&format!("shared: {{path: {shown}/segment}}")), file("share_of_disk: 0.1"));
        scheduler.reload(&part).unwrap();
        let fixed = window();
        for round in 0..300 {
            scheduler.reload(&shared).unwrap();
            thread::sleep(Duration::from_micros(10 * (round % 30)));
            scheduler.reload(&part).unwrap();
            thread::sleep(Duration::from_millis(1));
            assert_eq!(window(), fixed, "in round {round}");
        }
    }
}
