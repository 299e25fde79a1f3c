//! Which of several disks a file is on.

use std::collections::HashMap;

use forebay_block::{DeviceNumber, Layer, Stack};

/// Disks, by what they lie on.
#[derive(Debug)]
pub(crate) struct Coverage<T> {
    /// By the device or file system that a mountpoint is on.
    by_device: HashMap<Layer, T>,
    /// By what is below a mountpoint: the disk of its partition, the members of its array.
    below: HashMap<Layer, T>,
}

impl<T> Default for Coverage<T> {
    fn default() -> Self {
        Self { by_device: HashMap::new(), below: HashMap::new() }
    }
}

impl<T: Clone> Coverage<T> {
    /// Adds a mountpoint of `disk`. What is below it may be below others too, and then stays with
    /// the first.
    pub(crate) fn add(&mut self, mountpoint: &Stack, disk: &T) {
        self.by_device.insert(Layer::Device(mountpoint.number), disk.clone());
        for layer in &mountpoint.layers {
            self.below.entry(layer.clone()).or_insert_with(|| disk.clone());
        }
    }

    /// The disks, each as often as it is in here.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &T> {
        self.by_device.values().chain(self.below.values())
    }

    /// Keeps those disks that `keeps` says yes to.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.by_device.retain(|_, disk| keeps(disk));
        self.below.retain(|_, disk| keeps(disk));
    }

    /// The disk that has a mountpoint on this device.
    pub(crate) fn by_device(&self, number: DeviceNumber) -> Option<&T> {
        self.by_device.get(&Layer::Device(number))
    }

    /// The disk of a file on `stack`: the one that covers the nearest of what it lies on.
    pub(crate) fn of(&self, stack: &Stack) -> Option<&T> {
        let mut layers = stack.layers.iter();
        layers.find_map(|layer| self.by_device.get(layer).or_else(|| self.below.get(layer)))
    }
}
