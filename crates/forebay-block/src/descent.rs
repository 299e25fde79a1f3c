//! The way down: which device lies on which.

use std::path::{Path, PathBuf};

use crate::mount_table::MountTable;
use crate::path_walk::resolve;
use crate::{BlockDevice, DeviceNumber, Layer, Machine, Mount};

/// File systems lie on files of file systems, but not for ever.
const DEPTH_MAX: u32 = 8;

/// Collects what is below a file system.
pub(crate) struct Descent<'a> {
    machine: &'a Machine,
    table: &'a MountTable,
    layers: Vec<Layer>,
}

impl<'a> Descent<'a> {
    pub(crate) fn new(machine: &'a Machine, table: &'a MountTable) -> Self {
        Self { machine, table, layers: Vec::new() }
    }

    /// All that is below the device or file system of this number, itself first.
    pub(crate) fn from(mut self, number: DeviceNumber, mount: Option<&Mount>) -> Vec<Layer> {
        self.file_system(number, mount, DEPTH_MAX);
        self.layers
    }

    fn add(&mut self, layer: Layer) {
        if !self.layers.contains(&layer) {
            self.layers.push(layer);
        }
    }

    fn file_system(&mut self, number: DeviceNumber, mount: Option<&Mount>, depth: u32) {
        self.add(Layer::Device(number));
        if depth == 0 {
            return;
        }
        if number.is_block() {
            return self.block_device(number, depth);
        }
        let Some(mount) = mount else { return };
        match mount.kind.as_str() {
            "overlay" => {
                if let Some(upper) = self.upper_mount(mount) {
                    self.file_system(upper.device, Some(upper), depth - 1);
                }
            }
            "zfs" => {
                let pool = mount.source.split('/').next().unwrap_or_default();
                self.add(Layer::Pool(pool.to_owned()));
            }
            _ if mount.may_not_answer() => {}
            _ => {
                for member in self.members(mount) {
                    self.block_device(member, depth);
                }
            }
        }
    }

    /// A block device, the disk that it is a part of, and layer by layer what they are made of.
    fn block_device(&mut self, number: DeviceNumber, depth: u32) {
        self.add(Layer::Device(number));
        let Some(device) = BlockDevice::find(self.machine, number) else { return };
        let mut level = vec![&device];
        while !level.is_empty() {
            for device in &level {
                self.add(Layer::Device(device.number));
                self.add(Layer::Device(device.disk_number));
                if let Some(file) = device.loop_file() {
                    self.file_of_loop(Path::new(file), depth);
                }
            }
            level = level.into_iter().flat_map(|device| &device.below).collect();
        }
    }

    fn file_of_loop(&mut self, file: &Path, depth: u32) {
        let Ok(found) = resolve(self.machine, self.table, file) else { return };
        if let Some(mount) = found.mount {
            self.file_system(mount.device, Some(mount), depth - 1);
        }
    }

    /// The mount of an overlay's upper directory, where that directory can be seen. The options
    /// name it as the process that mounted the overlay saw it, and here another may have its path; the
    /// directory that the kernel made in the overlay's own alongside it tells.
    fn upper_mount(&self, overlay: &Mount) -> Option<&'a Mount> {
        let holder = |path: PathBuf| {
            let is_full = path.is_absolute();
            let found = is_full.then(|| resolve(self.machine, self.table, &path).ok())??;
            found.mount.filter(|mount| mount.id != overlay.id)
        };
        let upper = holder(overlay.value("upperdir")?.into())?;
        let work = holder(Path::new(overlay.value("workdir")?).join("work"))?;
        (upper.id == work.id).then_some(upper)
    }

    /// The block devices of a file system that has a number of its own.
    fn members(&self, mount: &Mount) -> Vec<DeviceNumber> {
        let named = mount.source.split(':').filter_map(|name| name.strip_prefix("/dev/"));
        let named: Vec<DeviceNumber> = named.filter_map(|name| self.number_of(name)).collect();
        let all = named.iter().flat_map(|first| self.btrfs_members(*first));
        named.iter().copied().chain(all).collect()
    }

    /// The number of the block device that is called so in `/dev`. Containers see `/sys` and no
    /// `/dev`.
    fn number_of(&self, name: &str) -> Option<DeviceNumber> {
        let class = Path::new("sys/class/block");
        let number = |name: &str| self.machine.text(class.join(name).join("dev"))?.parse().ok();
        if let Some(mapped) = name.strip_prefix("mapper/") {
            let names = self.machine.names(class);
            let is_mapped = |name: &&String| {
                let path = class.join(name).join("dm/name");
                name.starts_with("dm-") && self.machine.text(path).as_deref() == Some(mapped)
            };
            return number(names.iter().find(is_mapped)?);
        }
        number(name).or_else(|| {
            resolve(self.machine, self.table, &Path::new("/dev").join(name)).ok()?.device
        })
    }

    /// All devices of the btrfs file system that this one is of.
    fn btrfs_members(&self, first: DeviceNumber) -> Vec<DeviceNumber> {
        let all = Path::new("sys/fs/btrfs");
        let devices = |id: &String| -> Vec<DeviceNumber> {
            let dir = all.join(id).join("devices");
            let names = self.machine.names(&dir);
            let number =
                |name: &String| self.machine.text(dir.join(name).join("dev"))?.parse().ok();
            names.iter().filter_map(number).collect()
        };
        let ids = self.machine.names(all);
        ids.iter().map(devices).find(|devices| devices.contains(&first)).unwrap_or_default()
    }
}
