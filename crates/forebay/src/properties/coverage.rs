//! The assignment of files to disks.

use std::collections::HashMap;

use forebay_block::{DeviceNumber, Layer, Stack};

/// Disks, by the devices below their mountpoints.
#[derive(Debug)]
pub(crate) struct Coverage<T> {
    /// The disks by the device or file system of a mountpoint.
    by_device: HashMap<Layer, T>,
    /// The disks by the devices below a mountpoint: the disk of its partition, the members of its
    /// array.
    below: HashMap<Layer, T>,
}

impl<T> Default for Coverage<T> {
    fn default() -> Self {
        Self { by_device: HashMap::new(), below: HashMap::new() }
    }
}

impl<T: Clone> Coverage<T> {
    /// Adds a mountpoint of `disk`. A device below it that is also below another mountpoint stays
    /// with the first one.
    pub(crate) fn add(&mut self, mountpoint: &Stack, disk: &T) {
        self.by_device.insert(Layer::Device(mountpoint.number), disk.clone());
        for layer in &mountpoint.layers {
            self.below.entry(layer.clone()).or_insert_with(|| disk.clone());
        }
    }

    /// All disks. A disk is repeated for each of its devices.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &T> {
        self.by_device.values().chain(self.below.values())
    }

    /// Keeps the disks for which `keeps` returns true.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.by_device.retain(|_, disk| keeps(disk));
        self.below.retain(|_, disk| keeps(disk));
    }

    /// The disk that has a mountpoint on this device.
    pub(crate) fn by_device(&self, number: DeviceNumber) -> Option<&T> {
        self.by_device.get(&Layer::Device(number))
    }

    /// The disk of a file on `stack`: the one that covers the nearest device below the file.
    pub(crate) fn of(&self, stack: &Stack) -> Option<&T> {
        let mut layers = stack.layers.iter();
        layers.find_map(|layer| self.by_device.get(layer).or_else(|| self.below.get(layer)))
    }
}
