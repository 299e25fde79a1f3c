//! What a disk is said to do, by whoever configures the scheduler.

use std::path::PathBuf;

use forebay_core::{DiskModel, DiskRates, ModelError, Policy, SATURATION_LENGTH_DEFAULT};

use crate::properties::DiskProperties;

/// A saturation length at or below the size at which operations are measured
/// makes no model.
const SATURATION_LENGTH_MIN: u64 = 8192;

/// One disk of a [`SchedulerBuilder`](crate::SchedulerBuilder).
#[derive(Clone, Debug)]
pub struct DiskConfig {
    pub(super) name: String,
    pub(super) mountpoints: Vec<PathBuf>,
    pub(super) figures: Figures,
    pub(super) policy: Policy,
}

/// What a disk can do, and how requests are priced with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) rates: DiskRates,
    read_saturation: u64,
    write_saturation: u64,
    summed: bool,
}

impl DiskConfig {
    /// A disk of these rates: the vendor's figures are enough to start with.
    /// It holds no files until it has a [mountpoint](Self::mountpoint), but
    /// grants permits under its name.
    pub fn new(name: impl Into<String>, rates: DiskRates) -> Self {
        let figures = Figures {
            rates,
            read_saturation: SATURATION_LENGTH_DEFAULT,
            write_saturation: SATURATION_LENGTH_DEFAULT,
            summed: false,
        };
        let policy = Policy::pace_window();
        Self { name: name.into(), mountpoints: Vec::new(), figures, policy }
    }

    /// The disk of an entry of an io-properties file, under the name of its
    /// first mountpoint.
    ///
    /// Of `duplex` nothing is used: reads and writes share one budget.
    pub fn from_properties(properties: &DiskProperties) -> Self {
        let first = properties.mountpoints.first();
        let name = first.map(|path| path.display().to_string()).unwrap_or_default();
        let mountpoints = properties.mountpoints.clone();
        let figures = Figures::of(properties);
        Self { name, mountpoints, figures, policy: Policy::pace_window() }
    }

    /// Adds a directory on the disk, or its block device: files on the same
    /// device belong to the disk.
    #[must_use]
    pub fn mountpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.mountpoints.push(path.into());
        self
    }

    /// Sets when requests may go to the disk; [`Policy::pace_window`] unless set.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }
}

impl Figures {
    fn of(properties: &DiskProperties) -> Self {
        let saturation = |length: Option<u64>| {
            length.unwrap_or(SATURATION_LENGTH_DEFAULT).max(SATURATION_LENGTH_MIN)
        };
        Self {
            rates: DiskRates {
                read_iops: properties.read_iops,
                write_iops: properties.write_iops,
                read_bandwidth: properties.read_bandwidth,
                write_bandwidth: properties.write_bandwidth,
            },
            read_saturation: saturation(properties.read_saturation_length),
            write_saturation: saturation(properties.write_saturation_length),
            summed: properties.max_cost_function == Some(false),
        }
    }

    /// What requests cost on one of `parts` equal parts of the disk.
    pub(super) fn model(&self, parts: u64) -> Result<DiskModel, ModelError> {
        // A rate of zero stays zero, to be refused.
        let part = |rate: u64| if rate == 0 { 0 } else { (rate / parts).max(1) };
        let rates = DiskRates {
            read_iops: part(self.rates.read_iops),
            write_iops: part(self.rates.write_iops),
            read_bandwidth: part(self.rates.read_bandwidth),
            write_bandwidth: part(self.rates.write_bandwidth),
        };
        if self.summed {
            return DiskModel::from_rates_summed(&rates);
        }
        DiskModel::from_rates_saturating(&rates, self.read_saturation, self.write_saturation)
    }
}
