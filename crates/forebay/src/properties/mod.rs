//! The io-properties file: what each disk can do, and which files lie on it.
//!
//! The format is the one of Seastar, unchanged, so that files made by its `iotune` or shipped
//! for a machine work as they are: a mapping with the single section `disks`, a list with one
//! entry per disk.
//!
//! | key | meaning |
//! |---|---|
//! | `mountpoint` | a directory on the disk, or its block device |
//! | `mountpoints` | a list of these, for a disk that holds several file systems |
//! | `read_iops`, `write_iops` | small operations per second |
//! | `read_bandwidth`, `write_bandwidth` | bytes per second |
//! | `read_saturation_length`, `write_saturation_length` | optional: the smallest request, in bytes, that reaches the bandwidth |
//! | `physical_block_size` | optional: the real sector size, in bytes, of a disk that misreports it |
//! | `duplex` | optional: reads and writes do not disturb each other |
//! | `rate_factor` | optional: all four rates are multiplied by it |
//! | `max_cost_function` | optional, of Redpanda's Seastar: which cost function to use |
//!
//! Numbers are [`Quantity`]s: `100k` is 102,400, for operations too.
//!
//! ```
//! use forebay::properties::Properties;
//!
//! let text = "
//! disks:
//!   - mountpoint: /var/lib/store
//!     read_iops: 218786
//!     read_bandwidth: 1542559872
//!     write_iops: 121499
//!     write_bandwidth: 1130867072
//! ";
//! let properties = Properties::parse("io_properties.yaml", text)?;
//! assert_eq!(properties.disks[0].read_iops, 218_786);
//! # Ok::<(), forebay::properties::ConfigError>(())
//! ```
//!
//! [`Quantity`]: forebay_config::Quantity

mod device;
mod format;
#[cfg(test)]
mod tests;
mod yaml;

use std::path::{Path, PathBuf};

pub use forebay_config::ConfigError;
use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates, ModelError, SATURATION_LENGTH_DEFAULT};

pub use device::{Device, PropertiesError};

/// The most disks in one file.
pub const DISKS_MAX: usize = 8;

/// The content of an io-properties file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The disks, in the order of the file; 1 to [`DISKS_MAX`] when they come from one.
    pub disks: Vec<DiskProperties>,
}

/// What one disk can do.
///
/// From a file, the rates are positive, at most 100 million operations and 10^12 bytes per
/// second, and already multiplied by the file's `rate_factor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskProperties {
    /// Directories on the disk, or its block devices; at least one.
    pub mountpoints: Vec<PathBuf>,
    /// Small reads per second.
    pub read_iops: u64,
    /// Small writes per second.
    pub write_iops: u64,
    /// Bytes read per second.
    pub read_bandwidth: u64,
    /// Bytes written per second.
    pub write_bandwidth: u64,
    /// The smallest read, in bytes, that reaches `read_bandwidth`; at most 16 MiB.
    pub read_saturation_length: Option<u64>,
    /// The smallest write, in bytes, that reaches `write_bandwidth`; at most 16 MiB.
    pub write_saturation_length: Option<u64>,
    /// The real sector size, in bytes, where the disk misreports it: a power of two from 512
    /// to 1 MiB.
    pub physical_block_size: Option<u64>,
    /// Whether reads and writes each have the whole disk to themselves.
    pub duplex: bool,
    /// Whether to charge the larger of an operation's two costs instead of their sum, where the
    /// file says so.
    pub max_cost_function: Option<bool>,
}

/// A saturation length at or below the size at which operations are measured
/// makes no model.
const SATURATION_LENGTH_MIN: u64 = 8192;

impl DiskProperties {
    /// A disk of these rates at `mountpoints`, of which nothing else is said.
    pub fn from_rates(rates: &DiskRates, mountpoints: Vec<PathBuf>) -> Self {
        Self {
            mountpoints,
            read_iops: rates.read_iops,
            write_iops: rates.write_iops,
            read_bandwidth: rates.read_bandwidth,
            write_bandwidth: rates.write_bandwidth,
            read_saturation_length: None,
            write_saturation_length: None,
            physical_block_size: None,
            duplex: false,
            max_cost_function: None,
        }
    }

    /// The four rates.
    pub const fn rates(&self) -> DiskRates {
        DiskRates {
            read_iops: self.read_iops,
            write_iops: self.write_iops,
            read_bandwidth: self.read_bandwidth,
            write_bandwidth: self.write_bandwidth,
        }
    }

    /// What requests cost: Seastar's sum of two costs if `max_cost_function` is
    /// false, else exactly what the rates say at the sizes they belong to.
    ///
    /// # Errors
    /// As for [`DiskModel::from_rates_saturating`].
    pub fn model(&self) -> Result<DiskModel, ModelError> {
        self.model_at(&self.rates())
    }

    /// [`DiskProperties::model`] for a part of the disk, which has these rates.
    pub(crate) fn model_at(&self, rates: &DiskRates) -> Result<DiskModel, ModelError> {
        if self.max_cost_function == Some(false) {
            return DiskModel::from_rates_summed(rates);
        }
        let saturation = |length: Option<u64>| {
            length.unwrap_or(SATURATION_LENGTH_DEFAULT).max(SATURATION_LENGTH_MIN)
        };
        let read = saturation(self.read_saturation_length);
        let write = saturation(self.write_saturation_length);
        DiskModel::from_rates_saturating(rates, read, write)
    }
}

impl Properties {
    /// Parses the `text` of an io-properties file; `file` is its name in messages.
    ///
    /// # Errors
    /// The text is not YAML, not in this format, or states what no disk can do. Every message
    /// names line, column and key, and what is expected there.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        format::parse(Source::new(file, text))
    }

    /// Reads and parses the io-properties file at `path`.
    ///
    /// # Errors
    /// As [`Properties::parse`]; also when the file cannot be read, is longer than
    /// [`MAX_FILE_BYTES`](forebay_config::MAX_FILE_BYTES), or is not UTF-8.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = forebay_config::read(path)?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// The disk that holds `dir`: the one with a mountpoint on the same device.
    ///
    /// A device is known by its number, so a file system mounted below a mountpoint is not
    /// covered by it. A mountpoint that is a block device stands for that device, and so does a
    /// `dir` that is one.
    ///
    /// # Errors
    /// `dir` or a mountpoint does not exist or cannot be looked up, no mountpoint is on the
    /// device of `dir`, or the mountpoints of two disks are.
    pub fn disk_for(&self, dir: &Path) -> Result<&DiskProperties, PropertiesError> {
        device::disk_for(&self.disks, dir, Device::of)
    }

    /// The text of an io-properties file with this content, which [`Properties::parse`] and
    /// Seastar read back.
    ///
    /// YAML is Unicode: of a mountpoint that is not, the offending bytes are replaced.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.disks)
    }
}
