//! Warnings about two budgets for one disk.

use std::sync::atomic::{AtomicU64, Ordering};

use forebay_block::{Layer, Stack};

use crate::messages;
use crate::sys::fork::Process;
use crate::sys::lock::PerProcess;

/// The devices below the disks of all schedulers of this process.
static ALL: PerProcess<Vec<Claim>> = PerProcess::new();
static SCHEDULERS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Claim {
    scheduler: u64,
    disk: String,
    layer: Layer,
}

/// The devices below the disks of one scheduler, until it ends.
#[derive(Debug)]
pub(crate) struct Claims {
    scheduler: u64,
    process: Process,
}

impl Claims {
    pub(crate) fn new() -> Self {
        let scheduler = SCHEDULERS.fetch_add(1, Ordering::Relaxed);
        Self { scheduler, process: Process::current() }
    }

    /// Removes the devices of `disk`.
    pub(crate) fn remove(&self, disk: &str) {
        ALL.lock().retain(|claim| claim.scheduler != self.scheduler || claim.disk != disk);
    }

    /// Notes that `disk` is on `stack`. Warns if this is new and another disk has a device in
    /// common.
    pub(crate) fn add(&self, disk: &str, stack: &Stack) {
        if let Some(warning) = self.note(disk, stack) {
            messages::warn(warning);
        }
    }

    fn note(&self, disk: &str, stack: &Stack) -> Option<String> {
        let mut all = ALL.lock();
        let mut warning = None;
        for layer in &stack.layers {
            let is_mine = |claim: &&Claim| claim.scheduler == self.scheduler && claim.disk == disk;
            let mut there = all.iter().filter(|claim| claim.layer == *layer);
            if there.clone().any(|claim| is_mine(&claim)) {
                continue;
            }
            warning = warning.or_else(|| there.next().map(|other| self.warning(disk, other)));
            let (scheduler, disk, layer) = (self.scheduler, disk.to_owned(), layer.clone());
            all.push(Claim { scheduler, disk, layer });
        }
        warning
    }

    fn warning(&self, disk: &str, other: &Claim) -> String {
        let Claim { scheduler, disk: first, layer } = other;
        if *scheduler == self.scheduler {
            return format!(
                "the disks `{first}` and `{disk}` are both on {layer}, and each has a budget of \
                 its own: make one entry with the mountpoints of both, unless the rates of each \
                 are its part of what the disk does"
            );
        }
        format!(
            "the disk `{disk}` is on {layer}, as is the disk `{first}` of another scheduler of \
             this process, and each has a budget of its own: share one scheduler, unless the \
             rates of each are its part of what the disk does"
        )
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        if self.process.is_here() {
            ALL.lock().retain(|claim| claim.scheduler != self.scheduler);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_block::DeviceNumber;

    use super::*;

    /// A stack of devices that no other test of this process uses.
    fn stack(minors: &[u32]) -> Stack {
        let number = |minor| DeviceNumber { major: 4000, minor };
        let layers = minors.iter().map(|minor| Layer::Device(number(*minor))).collect();
        Stack { number: number(minors[0]), mount: None, layers }
    }

    #[test]
    fn two_volumes_of_one_disk_are_told_once() {
        let claims = Claims::new();
        assert_eq!(claims.note("a", &stack(&[1, 0])), None);
        assert_eq!(claims.note("a", &stack(&[2, 0])), None, "one budget for both");
        assert_eq!(claims.note("c", &stack(&[7])), None);
        let said = claims.note("b", &stack(&[3, 0])).unwrap();
        assert!(said.starts_with("the disks `a` and `b` are both on device 4000:0, "), "{said}");
        assert_eq!(claims.note("b", &stack(&[3, 0])), None, "a reload says it again");
        claims.remove("b");
        assert!(claims.note("b", &stack(&[3, 0])).is_some(), "a disk that came back is told anew");
    }

    #[test]
    fn two_schedulers_on_one_device_are_told_while_both_live() {
        let first = Claims::new();
        assert_eq!(first.note("a", &stack(&[11, 10])), None);
        let said = Claims::new().note("b", &stack(&[12, 10])).unwrap();
        assert!(said.contains("`b` is on device 4000:10, as is the disk `a` of another"), "{said}");
        drop(first);
        assert_eq!(Claims::new().note("b", &stack(&[12, 10])), None);
    }
}
