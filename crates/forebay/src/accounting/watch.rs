//! The table of all disks of the process, and its updates.

use std::sync::{Arc, Weak};

use forebay_block::{Machine, Stack};
use forebay_core::Time;

use super::device::Device;
use super::held::HeldTable;
use super::kernel::{OwnIo, PageCache};
use super::ledger::Outstanding;
use super::mapped::mapped_file;
use super::mean_held::MeanHeld;
use super::unit::{Step, Unit, WRITES};
use crate::messages;
use crate::metrics::{DeviceTraffic, Held};
use crate::registry::{Applied, ClassRecord, DiskRecord, Shared};
use crate::sys::clock::Clock;
use crate::sys::lock::PerProcess;
use crate::sys::ticker;

/// The time after which an update also ends a second, in nanoseconds.
const TICK_NANOS: u64 = 900_000_000;

static WATCH: PerProcess<Option<Watch>> = PerProcess::new();

/// The disks of all schedulers of a process.
#[derive(Debug)]
struct Watch {
    schedulers: Vec<Weak<Shared>>,
    units: Vec<Unit>,
    /// The bytes that this process read and wrote and that no disk has transferred.
    own: [Outstanding; 2],
    own_io: Option<OwnIo>,
    page_cache: PageCache,
    ticked_at: Time,
    held: HeldTable,
    mean_held: MeanHeld,
}

/// Adds these disks of `scheduler` to the table.
pub(crate) fn watch(scheduler: &Arc<Shared>, applied: &[Applied]) {
    let (machine, now) = (Machine::this(), Clock::of_process().now());
    let mut all = WATCH.lock();
    let watch = Watch::here(&mut all, &machine, now);
    watch.schedulers.retain(|of| of.strong_count() > 0);
    if !watch.schedulers.iter().any(|of| of.as_ptr() == Arc::as_ptr(scheduler)) {
        watch.schedulers.push(Arc::downgrade(scheduler));
        watch.add(unit_of(&machine, &scheduler.default_disk, &[]));
    }
    applied.iter().for_each(|(disk, stacks)| watch.add(unit_of(&machine, disk, stacks)));
    ticker::set(tick);
}

/// The traffic of a disk, and the time in nanoseconds for which some permits of each of these
/// classes are held on it; 0 if none are.
pub(crate) fn snapshot_of(
    disks: &[Arc<DiskRecord>],
    classes: &[Arc<ClassRecord>],
) -> Vec<(DeviceTraffic, Vec<u64>)> {
    let now = Clock::of_process().now();
    let mut all = WATCH.lock();
    let watch = Watch::here(&mut all, &Machine::this(), now);
    let kept = watch.look(&Machine::this(), now);
    let unattributed = watch.unattributed();
    let of_disk = |disk: &Arc<DiskRecord>| {
        let unit = watch.units.iter().find(|unit| unit.has(disk));
        let traffic = unit.map_or_else(not_known, |unit| unit.traffic(unattributed));
        let held = classes.iter().map(|class| watch.held.nanos(now, disk, class).unwrap_or(0));
        (traffic, held.collect())
    };
    let found = disks.iter().map(of_disk).collect();
    drop(all);
    drop(kept);
    found
}

fn not_known() -> DeviceTraffic {
    let why = String::from("its devices are not observed yet");
    DeviceTraffic { unknown_because: Some(why), ..DeviceTraffic::default() }
}

/// Updates the table once a second. Returns whether it has any disks.
fn tick() -> bool {
    let (machine, now) = (Machine::this(), Clock::of_process().now());
    let mut all = WATCH.lock();
    let watch = Watch::here(&mut all, &machine, now);
    let kept = watch.look(&machine, now);
    let schedulers: Vec<_> = watch.schedulers.iter().filter_map(Weak::upgrade).collect();
    let mut said = watch.minutes(&machine, now);
    let with_all = watch.mean_held.is_over(now);
    drop(all);
    // Read without the table's lock, because it takes locks of queues.
    let held: Vec<_> = schedulers.iter().flat_map(|of| held_of(of, with_all)).collect();
    if let Some(watch) = WATCH.lock().as_mut() {
        said.extend(watch.held.look(now, held.iter().cloned()));
        if with_all {
            said.extend(watch.mean_held.look(held.iter().cloned()));
        }
    }
    said.into_iter().for_each(messages::warn);
    let is_used = !schedulers.is_empty();
    drop((held, kept, schedulers));
    is_used
}

/// The devices below a disk, as far as the kernel counts their traffic.
fn unit_of(machine: &Machine, disk: &Arc<DiskRecord>, stacks: &[Stack]) -> Unit {
    let mut devices: Vec<Device> = Vec::new();
    let mut unknown = String::from("no mountpoint of the disk is known");
    for stack in stacks {
        match stack.iostat_disk(machine) {
            Ok(found) if devices.iter().any(|device| device.disk == found) => {}
            Ok(found) => devices.push(Device::new(machine, found)),
            Err(why) => unknown = format!("its files {why}"),
        }
    }
    Unit::new(disk, devices, unknown)
}

/// The holding times of the classes on each disk: of all disks, or only of those that gave up
/// requests.
fn held_of(
    scheduler: &Arc<Shared>,
    with_all: bool,
) -> Vec<(Arc<DiskRecord>, Arc<ClassRecord>, Held)> {
    let Ok(registry) = scheduler.registry() else { return Vec::new() };
    let (disks, classes) = (registry.disks.clone(), registry.classes.clone());
    drop(registry);
    let mut all = Vec::new();
    for disk in disks {
        for group in disk.groups() {
            group.poll_permits();
            group.slow.decay();
        }
        if !with_all && !disk.has_given_up() {
            continue;
        }
        for class in &classes {
            all.push((Arc::clone(&disk), Arc::clone(class), disk.held(class)));
        }
    }
    all
}

impl Watch {
    fn here<'a>(all: &'a mut Option<Self>, machine: &Machine, now: Time) -> &'a mut Self {
        all.get_or_insert_with(|| Self {
            schedulers: Vec::new(),
            units: Vec::new(),
            own: Default::default(),
            own_io: OwnIo::of(machine),
            page_cache: PageCache::of(machine).unwrap_or_default(),
            ticked_at: now,
            held: HeldTable::default(),
            mean_held: MeanHeld::default(),
        })
    }

    /// Adds a disk with its devices, and joins it with units that have one in common.
    fn add(&mut self, mut unit: Unit) {
        while let Some(met) = self.units.iter().position(|other| other.meets(&unit)) {
            let mut other = self.units.remove(met);
            other.absorb(unit);
            unit = other;
        }
        self.units.push(unit);
    }

    /// Counts the bytes since the last update. The result is to be dropped without the lock,
    /// because the last owner of a disk waits for its threads.
    #[must_use]
    fn look(&mut self, machine: &Machine, now: Time) -> Vec<Arc<DiskRecord>> {
        let kept = self.units.iter().flat_map(Unit::upgraded).collect();
        self.units.retain_mut(Unit::is_used);
        let steps: Vec<Step> = self.units.iter_mut().map(|unit| unit.step(machine)).collect();
        let written_back = self.look_at_kernel(machine);
        for direction in 0..3 {
            self.count(direction, &steps, written_back);
        }
        if now.nanos_since(self.ticked_at) >= TICK_NANOS {
            self.ticked_at = now;
            self.own[0].tick(0);
            self.own[WRITES].tick(self.page_cache.dirty);
            self.units.iter_mut().for_each(|unit| unit.tick(&self.own));
        }
        kept
    }

    /// Counts the bytes of this process since the last update, on all disks. Returns the bytes that
    /// were written back, of all processes.
    fn look_at_kernel(&mut self, machine: &Machine) -> u64 {
        let page_cache = PageCache::of(machine).unwrap_or_default();
        let before = std::mem::replace(&mut self.page_cache, page_cache);
        let own_io = OwnIo::of(machine);
        if let (Some(now), Some(then)) = (own_io, self.own_io) {
            let [reads, writes] = &mut self.own;
            reads.add(now.read.saturating_sub(then.read));
            writes.add(now.written.saturating_sub(then.written));
            writes.take(then.written.saturating_sub(now.written));
        }
        self.own_io = own_io;
        page_cache.written_back.saturating_sub(before.written_back)
    }

    fn count(&mut self, direction: usize, steps: &[Step], written_back: u64) {
        let old = self.own.get(WRITES).map_or(0, Outstanding::old);
        let late_max = if direction == WRITES { written_back.min(old) } else { 0 };
        let mut unscheduled = Vec::new();
        let mut covered = 0u64;
        for (unit, step) in self.units.iter_mut().zip(steps) {
            let admitted = step.admitted[direction];
            // If a device cannot be read, its traffic is assumed to be the admitted bytes.
            let done = step.done.map_or(admitted, |done| done[direction]);
            let bytes = match step.done {
                Some(_) => unit.ledgers[direction].add(done, admitted, late_max),
                None => 0,
            };
            unscheduled.push(bytes);
            covered = covered.saturating_add(done - bytes);
        }
        let to_be_admitted = if direction == WRITES { self.dirty_of_writers() } else { 0 };
        let Some(own) = self.own.get_mut(direction) else { return };
        own.take(covered);
        let own_now = own.bytes().saturating_sub(to_be_admitted);
        let all: u64 = unscheduled.iter().sum();
        for (unit, bytes) in self.units.iter_mut().zip(unscheduled) {
            // If several disks did more than was admitted, the origin of the bytes is unknown.
            let of_this = own_now.saturating_sub(all - bytes).min(bytes);
            unit.ledgers[direction].add_own(of_this);
        }
        own.take(all);
    }

    fn dirty_of_writers(&self) -> u64 {
        self.units.iter().map(Unit::dirty_of_writers).sum()
    }

    /// The bytes of this process that may still reach a disk without a class.
    fn unattributed(&self) -> u64 {
        self.own[WRITES].bytes().saturating_sub(self.dirty_of_writers())
    }

    fn minutes(&mut self, machine: &Machine, now: Time) -> Vec<String> {
        let unattributed = self.unattributed();
        let minute = |unit: &mut Unit| {
            let DeviceTraffic { device, read, written, .. } = unit.traffic(unattributed);
            let Unit { minute, devices, .. } = unit;
            let disks: Vec<_> = devices.iter().map(|of| &of.disk).collect();
            let mapped = || mapped_file(machine, &disks);
            minute.over(now, &device, [read, written], mapped)
        };
        self.units.iter_mut().flat_map(minute).collect()
    }
}
