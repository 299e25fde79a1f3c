//! Which disks are traced.

use std::path::{Path, PathBuf};

use forebay_block::{BlockDevice, DeviceNumber, Machine, Stack};
use forebay_trace::Tracepoint;

use crate::failure::Failure;

/// The disks that are traced, and where in the kernel.
#[derive(Debug)]
pub(super) struct Subject {
    /// What they are called.
    pub(super) names: Vec<String>,
    /// Their numbers; none for all disks.
    pub(super) numbers: Vec<DeviceNumber>,
    pub(super) tracepoint: Tracepoint,
}

impl Subject {
    /// The disks below a device or a directory; all where neither is named.
    pub(super) fn find(device: Option<&PathBuf>, dir: Option<&PathBuf>) -> Result<Self, Failure> {
        let machine = Machine::this();
        let Some(top) = top(&machine, device, dir)? else {
            let tracepoint = Tracepoint::RequestIssue;
            return Ok(Self { names: Vec::new(), numbers: Vec::new(), tracepoint });
        };
        let disks = top.leaves();
        // without queues there are no requests, and bios have the number of the partition
        let has_requests = |disk: &&BlockDevice| {
            !machine.names(format!("sys/dev/block/{}/mq", disk.disk_number)).is_empty()
        };
        let (tracepoint, numbers) = match disks.iter().all(has_requests) {
            true => {
                let numbers = disks.iter().map(|disk| disk.disk_number).collect();
                (Tracepoint::RequestIssue, numbers)
            }
            false => {
                let both = disks.iter().flat_map(|disk| [disk.number, disk.disk_number]);
                (Tracepoint::BioQueue, both.collect())
            }
        };
        let mut numbers: Vec<DeviceNumber> = numbers;
        numbers.sort();
        numbers.dedup();
        let mut names: Vec<String> =
            disks.iter().map(|disk| format!("/dev/{}", disk.disk)).collect();
        names.sort();
        names.dedup();
        Ok(Self { names, numbers, tracepoint })
    }

    /// What is traced, for people.
    pub(super) fn name(&self) -> String {
        if self.names.is_empty() { "all disks".to_owned() } else { self.names.join(" and ") }
    }
}

/// The device that is named, or the one below a directory; none where neither is named.
pub(super) fn top(
    machine: &Machine,
    device: Option<&PathBuf>,
    dir: Option<&PathBuf>,
) -> Result<Option<BlockDevice>, Failure> {
    let number = match (device, dir) {
        (Some(device), _) => of_device(machine, device)?,
        (None, Some(dir)) => of_directory(machine, dir)?,
        (None, None) => return Ok(None),
    };
    let top = BlockDevice::find(machine, number);
    top.map(Some).ok_or_else(|| Failure::Input(format!("/sys has no device {number}")))
}

fn stack(machine: &Machine, path: &Path) -> Result<Stack, Failure> {
    Stack::of_path(machine, path).map_err(|error| {
        Failure::Input(format!("cannot look up `{}`: {error}; check the path", path.display()))
    })
}

fn of_device(machine: &Machine, device: &Path) -> Result<DeviceNumber, Failure> {
    // a name as lsblk and /sys have it
    let in_dev = Path::new("/dev").join(device);
    let device = if !device.exists() && in_dev.exists() { in_dev.as_path() } else { device };
    let stack = stack(machine, device)?;
    if stack.mount.is_some() {
        let device = device.display();
        return Err(Failure::Input(format!(
            "`{device}` is not a block device; name a directory with --dir"
        )));
    }
    Ok(stack.number)
}

fn of_directory(machine: &Machine, dir: &Path) -> Result<DeviceNumber, Failure> {
    let stack = stack(machine, dir)?;
    let kind = stack.mount.as_ref().map_or("no file system", |mount| mount.kind.as_str());
    if kind == "btrfs" && stack.layers.len() > 2 {
        return Err(Failure::Input(format!(
            "`{}` may be on several devices; name one with --device",
            dir.display()
        )));
    }
    stack.block_device().ok_or_else(|| {
        let dir = dir.display();
        Failure::Input(format!(
            "`{dir}` is not on a disk of this machine, but on {kind}; name a directory on a disk"
        ))
    })
}
