//! The io-properties file: the rates of each disk, and its mountpoints.
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
//! | `physical_block_size` | optional: the real sector size, in bytes, of a disk that misreports it: files are written in multiples of it, and requests cost whole sectors |
//! | `duplex` | optional: reads and writes do not disturb each other |
//! | `rate_factor` | optional: all four rates are multiplied by it |
//! | `max_cost_function` | optional, of Redpanda's Seastar: which cost function to use |
//!
//! Numbers are [`Quantity`]s: `100k` is 102,400, for operations too. Rates that are probably wrong
//! are accepted with a warning: [`DiskProperties::figure_warnings`].
//!
//! A `forebay.yaml`, which `forebay tune` writes next to such a file, has these keys too, and more
//! that only forebay uses, see [`Measured`]. Each is optional:
//!
//! | key | meaning |
//! |---|---|
//! | `io_properties` | at the top: the file of the same disks for Seastar, in the same directory; it may be missing, and must not say anything else |
//! | `latency_target` | the longest time of requests from enqueueing to completion under load: `p95=1ms` of reads, `writes:p99.9=5ms`, `disk:p95=1ms` in the disk, or `off` |
//! | `shared` | whether processes with the library share the disk: `true`, or `{path: FILE}` |
//! | `share_of_disk` | the fixed part of the disk for this process |
//! | `base_latency_us` | of one small read at a time |
//! | `seeks` | whether a request that continues where one of its file ended is charged only for its bytes |
//! | `ceiling` | whether the rates are limits, and not only prices; true with a `rate_factor` below 1 |
//! | `burst` | whether the rates are the sustained ones after a burst: they are limits once it is over |
//! | `read_cost_ns`, `write_cost_ns` | lists of `[bytes, nanoseconds of disk time]`, sizes rising |
//! | `read_knee`, `write_knee` | requests in flight that keep the disk busy |
//! | `read_sequential_iops`, `write_sequential_iops` | small requests per second in sequence |
//! | `flush_us` | disk time of a flush |
//! | `discard_us`, `discard_gib_us` | disk time of each discard, and of each GiB |
//! | `read_steady`, `write_steady` | whether the rates were observed for long enough, and were level |
//! | `read_burst_excess`, `write_burst_excess` | by which fraction they were higher at first |
//! | `read_observed_s`, `write_observed_s` | for how long they were observed |
//! | `read_iops_sustained`, `read_bandwidth_sustained`, `write_iops_sustained`, `write_bandwidth_sustained` | `true` if the rate was measured without buffers and credits, `unknown` if it may be a burst |
//! | `regions` | the mixes of reads and writes that meet a latency: see [`MixRegion`] |
//! | `region_goal` | the goal that chooses the region for pricing mixes: see [`RegionGoal`] |
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

mod companion;
mod coverage;
mod device;
mod edit;
mod figure_warnings;
mod format;
mod latency_target;
mod measured;
mod mix_prices;
mod region;
mod region_choice;
mod sharing;
#[cfg(test)]
mod tests;
mod yaml;

use std::path::{Path, PathBuf};

use forebay_block::Machine;
pub use forebay_config::ConfigError;
use forebay_config::Source;
use forebay_core::{
    Ceiling, CostCurve, CostError, DiskModel, DiskRates, IOPS_SIZE_DEFAULT, LatencyTarget,
    ModelError, Op, SATURATION_LENGTH_DEFAULT,
};

pub(crate) use coverage::Coverage;
pub use device::PropertiesError;
pub use forebay_block::DeviceNumber as Device;
pub use latency_target::{TargetBelowBase, parse_latency_target};
pub use measured::{CostAt, DiscardCost, Lasting, Measured, MeasuredDirection, Steadiness};
pub use region::{MixRegion, RADIUS_ONE, REGION_RADII, REGIONS_MAX, RegionGoal};
pub use region_choice::RegionChoice;
pub use sharing::Sharing;

/// The most disks in one file.
pub const DISKS_MAX: usize = 64;

/// The content of an io-properties file, or of a `forebay.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    /// The disks, in the order of the file; 1 to [`DISKS_MAX`] when they come from one.
    pub disks: Vec<DiskProperties>,
}

/// The properties of one disk.
///
/// In a file the rates are positive, at most 100 million operations and 10^12 bytes per second.
/// Here they are already multiplied by the file's `rate_factor`.
#[derive(Clone, Debug, PartialEq)]
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
    /// The real sector size, in bytes, if the disk misreports it: a power of two from 512 to 1 MiB.
    /// [Direct](crate::DirectFile::is_direct) files of the disk are written in multiples of it, and
    /// reads and writes cost whole sectors.
    pub physical_block_size: Option<u64>,
    /// Whether reads and writes do not disturb each other.
    pub duplex: bool,
    /// Whether to charge the higher one of an operation's two costs instead of their sum, if the
    /// file has this key.
    pub max_cost_function: Option<bool>,
    /// The latency target under load.
    pub latency_target: Option<LatencyTarget>,
    /// Whether other processes use the disk too.
    pub sharing: Sharing,
    /// The further measured properties, from a `forebay.yaml`.
    pub measured: Measured,
}

/// A saturation length at or below the size at which operations are measured
/// makes no model.
const SATURATION_LENGTH_MIN: u64 = 8192;

impl DiskProperties {
    /// A disk with these rates at `mountpoints`, without further properties.
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
            latency_target: None,
            sharing: Sharing::Alone,
            measured: Measured::default(),
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

    /// The keys of the measured rates that may not be sustained: the disk may be slower after its
    /// buffers are full and its credits are used up.
    pub fn not_sustained(&self) -> impl Iterator<Item = &'static str> + use<> {
        let Measured { read, write, .. } = &self.measured;
        let rates = [
            ("read_iops", read.iops_sustained),
            ("read_bandwidth", read.bandwidth_sustained),
            ("write_iops", write.iops_sustained),
            ("write_bandwidth", write.bandwidth_sustained),
        ];
        let unknown = rates.into_iter().filter(|(_, lasting)| *lasting == Some(Lasting::Unknown));
        unknown.map(|(name, _)| name)
    }

    /// The cost model: the measured costs of each size if they are known, else Seastar's sum of two
    /// costs if `max_cost_function` is false, else a model that matches the rates at their sizes.
    ///
    /// # Errors
    /// A rate is zero or more than a model accepts, or measured sizes do not rise.
    pub fn model(&self) -> Result<DiskModel, ModelError> {
        self.model_of_part(1)
    }

    /// [`DiskProperties::model`] for one of `parts` equal parts of the disk.
    pub(crate) fn model_of_part(&self, parts: u64) -> Result<DiskModel, ModelError> {
        let wrong = |direction| move |cause| ModelError { direction, cause };
        let read = Direction {
            measured: &self.measured.read,
            iops: self.read_iops,
            bandwidth: self.read_bandwidth,
            saturation: self.read_saturation_length,
        };
        let write = Direction {
            measured: &self.measured.write,
            iops: self.write_iops,
            bandwidth: self.write_bandwidth,
            saturation: self.write_saturation_length,
        };
        let summed = self.max_cost_function == Some(false);
        let random = |of: &Direction<'_>, op| of.curve(summed, parts).map_err(wrong(op));
        let sector = self.physical_block_size.unwrap_or(1);
        let mut model = DiskModel::new(random(&read, Op::Read)?, random(&write, Op::Write)?)
            .with_sector(sector);
        if self.measured.seeks {
            let sequential = |of: &Direction<'_>, op| {
                CostCurve::transfer(of_part(of.bandwidth, parts)).map_err(wrong(op))
            };
            model =
                model.with_sequential(sequential(&read, Op::Read)?, sequential(&write, Op::Write)?);
        }
        self.measured.refine(model, parts).map_err(wrong(Op::Discard))
    }
}

/// What is known of one direction of a disk.
struct Direction<'a> {
    measured: &'a MeasuredDirection,
    iops: u64,
    bandwidth: u64,
    saturation: Option<u64>,
}

/// The rate of one of `parts` equal parts of a disk; one of zero stays zero, to be refused.
fn of_part(rate: u64, parts: u64) -> u64 {
    if rate == 0 { 0 } else { (rate / parts).max(1) }
}

impl Direction<'_> {
    fn curve(&self, summed: bool, parts: u64) -> Result<CostCurve, CostError> {
        if !self.measured.cost.is_empty() {
            return self.measured.curve(parts);
        }
        let (iops, bandwidth) = (of_part(self.iops, parts), of_part(self.bandwidth, parts));
        if summed {
            return CostCurve::sum(iops, bandwidth);
        }
        let length = self.saturation.unwrap_or(SATURATION_LENGTH_DEFAULT);
        let saturation = length.max(SATURATION_LENGTH_MIN);
        CostCurve::two_point(iops, bandwidth, IOPS_SIZE_DEFAULT, saturation)
    }
}

impl Properties {
    /// Parses the `text` of an io-properties file, or of a `forebay.yaml`; `file` is its name in
    /// messages.
    ///
    /// # Errors
    /// The text is not YAML, not in this format, or states what no disk can do. Every message
    /// names line, column and key, and what is expected there.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        Ok(format::parse(Source::new(file, text))?.properties)
    }

    /// Reads and parses the io-properties file, or the `forebay.yaml`, at `path`.
    ///
    /// Either is enough. The io-properties file that a `forebay.yaml` names may be missing. If it
    /// exists, both must agree.
    ///
    /// # Errors
    /// As [`Properties::parse`]; also when a file cannot be read, is longer than
    /// [`MAX_FILE_BYTES`](forebay_config::MAX_FILE_BYTES), or is not UTF-8, or when the two files
    /// contradict each other.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        companion::load(path)
    }

    /// The disk that holds `dir`: the one with a mountpoint on the same file system, else on the
    /// nearest device below it.
    ///
    /// [`Scheduler::disk_of`](crate::Scheduler::disk_of) describes which devices are below others.
    /// A mountpoint does not cover file systems that are mounted below it, unless they are on the
    /// same disk. A mountpoint that is a block device stands for that device, and so does a `dir`
    /// that is one.
    ///
    /// # Errors
    /// `dir` or a mountpoint does not exist or cannot be looked up, no mountpoint is on a disk of
    /// `dir`, or mountpoints of two disks are on its file system.
    pub fn disk_for(&self, dir: &Path) -> Result<&DiskProperties, PropertiesError> {
        device::disk_for(&self.disks, dir, &Machine::this())
    }

    /// The text of an io-properties file with this content, which [`Properties::parse`] and
    /// Seastar read back; [`DiskProperties::measured`] and [`DiskProperties::latency_target`] are
    /// not in it.
    ///
    /// YAML is Unicode: of a mountpoint that is not, the offending bytes are replaced.
    pub fn to_yaml(&self) -> String {
        yaml::io_properties(&self.disks)
    }

    /// The text of a `forebay.yaml` with this content, which [`Properties::parse`] reads back, and
    /// which names the file `io_properties` next to it.
    pub fn to_forebay_yaml(&self, io_properties: &str) -> String {
        yaml::forebay(&self.disks, Some(io_properties))
    }

    /// The text of a file of only the disks, which [`Properties::parse`] reads back. It is an
    /// io-properties file, which Seastar reads. If a disk [seeks](Measured::seeks), or has a
    /// [ceiling](Measured::ceiling) or a [latency target](DiskProperties::latency_target), it is a
    /// `forebay.yaml`, because Seastar has no key for that.
    pub fn to_yaml_alone(&self) -> String {
        let is_beyond_seastar = |disk: &DiskProperties| {
            let Measured { seeks, ceiling, .. } = &disk.measured;
            *seeks || *ceiling != Ceiling::Never || disk.latency_target.is_some()
        };
        if self.disks.iter().any(is_beyond_seastar) {
            yaml::forebay(&self.disks, None)
        } else {
            self.to_yaml()
        }
    }

    /// The `text` of a `forebay.yaml` of one disk with its regions replaced by `regions`.
    ///
    /// Comments and everything else are not changed. `None` if the text is not such a file,
    /// describes several disks, or is not in the usual form with one line per key and the disks at
    /// its end.
    pub fn with_regions(text: &str, regions: &[MixRegion]) -> Option<String> {
        edit::with_regions(text, regions)
    }
}
