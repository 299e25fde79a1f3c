//! Parsing of an io-properties file, or of a `forebay.yaml`, into checked properties.

mod latency_target;
mod measured;
mod region;
mod renamed;
mod sharing;

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use forebay_config::{ConfigError, Located, Position, Quantity, Source};
use serde::Deserialize;

use super::{DISKS_MAX, DiskProperties, Measured, Properties, yaml};

/// The highest accepted number of operations per second. No disk is faster, so a higher number is
/// an error.
const IOPS_MAX: u64 = 100_000_000;
const BANDWIDTH_MAX: u64 = 1_000_000_000_000;
/// The highest accepted saturation length in bytes. No request sent to a disk is longer.
const SATURATION_LENGTH_MAX: u64 = 16 << 20;
const BLOCK_SIZES: RangeInclusive<u64> = 512..=1 << 20;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    io_properties: Option<Located<PathBuf>>,
    disks: Located<Vec<Located<Disk>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Disk {
    mountpoint: Option<Located<PathBuf>>,
    mountpoints: Option<Located<Vec<Located<PathBuf>>>>,
    read_iops: Located<Quantity>,
    write_iops: Located<Quantity>,
    read_bandwidth: Located<Quantity>,
    write_bandwidth: Located<Quantity>,
    read_saturation_length: Option<Located<Quantity>>,
    write_saturation_length: Option<Located<Quantity>>,
    physical_block_size: Option<Located<Quantity>>,
    #[serde(default)]
    duplex: bool,
    rate_factor: Option<Located<f64>>,
    max_cost_function: Option<Located<bool>>,
    latency_target: Option<Located<String>>,
    #[serde(default)]
    shared: sharing::Shared,
    share_of_disk: Option<Located<f64>>,
    base_latency_us: Option<Located<f64>>,
    #[serde(default)]
    seeks: bool,
    #[serde(default)]
    ceiling: bool,
    #[serde(default)]
    burst: bool,
    read_cost_ns: Option<Located<Ladder>>,
    write_cost_ns: Option<Located<Ladder>>,
    read_knee: Option<Located<f64>>,
    write_knee: Option<Located<f64>>,
    read_sequential_iops: Option<Located<Quantity>>,
    write_sequential_iops: Option<Located<Quantity>>,
    flush_us: Option<Located<f64>>,
    discard_us: Option<Located<f64>>,
    discard_gib_us: Option<Located<f64>>,
    read_steady: Option<Located<bool>>,
    read_burst_excess: Option<Located<f64>>,
    read_observed_s: Option<Located<u64>>,
    read_iops_sustained: Option<Located<Word>>,
    read_bandwidth_sustained: Option<Located<Word>>,
    write_steady: Option<Located<bool>>,
    write_burst_excess: Option<Located<f64>>,
    write_observed_s: Option<Located<u64>>,
    write_iops_sustained: Option<Located<Word>>,
    write_bandwidth_sustained: Option<Located<Word>>,
    regions: Option<Located<Vec<Located<region::Region>>>>,
    region_goal: Option<Located<region::Goal>>,
    // Old names of the keys above, which are accepted for one release.
    read_first_excess: Option<Located<f64>>,
    write_first_excess: Option<Located<f64>>,
    read_iops_lasting: Option<Located<Word>>,
    read_bandwidth_lasting: Option<Located<Word>>,
    write_iops_lasting: Option<Located<Word>>,
    write_bandwidth_lasting: Option<Located<Word>>,
}

/// Whether a rate is sustained, as it is written.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    True,
    Unknown,
}

/// Pairs of bytes and nanoseconds.
type Ladder = Vec<Located<(u64, u64)>>;

/// A parsed file, with the positions for errors of checks that need other files.
pub(super) struct Parsed {
    pub(super) properties: Properties,
    /// The position of each disk.
    pub(super) places: Vec<Position>,
    /// The io-properties file that it names, in the same directory.
    pub(super) io_properties: Option<Located<PathBuf>>,
}

pub(super) fn parse(source: Source<'_>) -> Result<Parsed, ConfigError> {
    let File { io_properties, disks } = source.parse().map_err(with_plural)?;
    if let Some(named) = &io_properties
        && !is_name(&named.value)
    {
        let message = "expected the name of a file in the same directory, such as \
                       io-properties.yaml";
        return Err(source.error(named.at, message));
    }
    if disks.value.is_empty() {
        return Err(source.error(disks.at, "the list is empty; expected at least one disk"));
    }
    if let Some(disk) = disks.value.get(DISKS_MAX) {
        let message = format!("one disk too many; expected at most {DISKS_MAX}; remove some");
        return Err(source.error(disk.at, message));
    }
    let mut seen = HashSet::new();
    let places = disks.value.iter().map(|disk| disk.at).collect();
    let disks = disks
        .value
        .into_iter()
        .map(|disk| check(source, disk, &mut seen))
        .collect::<Result<_, _>>()?;
    Ok(Parsed { properties: Properties { disks }, places, io_properties })
}

impl DiskProperties {
    /// Checks properties that were made by code with the rules of a file, except for mountpoints.
    /// `disk` is the name of the disk in the message.
    ///
    /// # Errors
    /// The key that is invalid, and the allowed values.
    pub(crate) fn check_figures(&self, disk: &str) -> Result<(), ConfigError> {
        let disk = format!("the disk `{disk}`");
        let stated = Self { mountpoints: vec![PathBuf::from("/")], ..self.clone() };
        let text = yaml::forebay(&[stated], None);
        let parsed = parse(Source::new(&disk, &text));
        parsed.map(|_| ()).map_err(|error| {
            let key = error.key.as_deref().map(|key| key.strip_prefix("disks[0].").unwrap_or(key));
            // There is no file, and so no line.
            ConfigError::at(&disk, Position::default(), key.map(str::to_owned), error.message)
        })
    }
}

/// The same error. If it is about several paths under `mountpoint`, it names `mountpoints`.
fn with_plural(mut error: ConfigError) -> ConfigError {
    let is_one = error.key.as_deref().is_some_and(|key| key.ends_with(".mountpoint"));
    if is_one && error.message.starts_with("found a list") {
        error.message.push_str("; several paths have the key `mountpoints`");
    }
    error
}

/// The path without `.` and `..`. Links are not resolved.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir && plain.file_name().is_some() {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

fn is_name(path: &Path) -> bool {
    let mut parts = path.components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == path)
}

/// Checks one disk. `seen` has the mountpoints of earlier disks.
fn check(
    source: Source<'_>,
    disk: Located<Disk>,
    seen: &mut HashSet<PathBuf>,
) -> Result<DiskProperties, ConfigError> {
    let Located { value: mut disk, at } = disk;
    let mountpoints = mountpoints(source, at, disk.mountpoint.take(), disk.mountpoints.take())?;
    for Located { value, at } in &mountpoints {
        if value.as_os_str().is_empty() {
            let message = "the path is empty; write a directory or a block device";
            return Err(source.error(*at, message));
        }
        if !seen.insert(plain(value)) {
            let message = "used twice; a mountpoint belongs to one disk; remove one of the two";
            return Err(source.error(*at, message));
        }
    }
    let factor = rate_factor(source, disk.rate_factor)?;
    let renamed_keys = renamed::take_old_keys(source, &mut disk)?;
    let measured = Measured { renamed_keys, ..measured::check(source, &disk, factor)? };
    let latency_target =
        latency_target::check(source, disk.latency_target.as_ref(), measured.base_latency)?;
    let sharing = sharing::check(source, &disk.shared, disk.share_of_disk)?;
    let rate = |rate, max, unit| scaled_rate(source, rate, factor, max, unit);
    let operations = "operations per second";
    let bytes = "bytes per second";
    let saturation = |value| {
        let expected = "1 to 16777216 bytes (16M)";
        length(source, value, expected, |length| (1..=SATURATION_LENGTH_MAX).contains(&length))
    };
    let block_size = |value| {
        let expected = "a power of two from 512 to 1048576";
        length(source, value, expected, |length| {
            length.is_power_of_two() && BLOCK_SIZES.contains(&length)
        })
    };
    Ok(DiskProperties {
        mountpoints: mountpoints.into_iter().map(|mountpoint| mountpoint.value).collect(),
        read_iops: rate(disk.read_iops, IOPS_MAX, operations)?,
        write_iops: rate(disk.write_iops, IOPS_MAX, operations)?,
        read_bandwidth: rate(disk.read_bandwidth, BANDWIDTH_MAX, bytes)?,
        write_bandwidth: rate(disk.write_bandwidth, BANDWIDTH_MAX, bytes)?,
        read_saturation_length: saturation(disk.read_saturation_length)?,
        write_saturation_length: saturation(disk.write_saturation_length)?,
        physical_block_size: block_size(disk.physical_block_size)?,
        duplex: disk.duplex,
        max_cost_function: disk.max_cost_function.map(|max| max.value),
        latency_target,
        sharing,
        measured,
    })
}

/// The mountpoints of the disk at `at`, from whichever of the two keys is present.
fn mountpoints(
    source: Source<'_>,
    at: Position,
    one: Option<Located<PathBuf>>,
    many: Option<Located<Vec<Located<PathBuf>>>>,
) -> Result<Vec<Located<PathBuf>>, ConfigError> {
    match (one, many) {
        (Some(one), None) => Ok(vec![one]),
        (None, Some(many)) if many.value.is_empty() => {
            Err(source.error(many.at, "the list is empty; expected at least one path"))
        }
        (None, Some(many)) => Ok(many.value),
        (Some(_), Some(many)) => {
            let message = "the disk has both `mountpoint` and `mountpoints`; keep one of them";
            Err(source.error(many.at, message))
        }
        (None, None) => {
            let message = "the disk has no mountpoint; add `mountpoint: PATH`, a directory on it";
            Err(source.error(at, message))
        }
    }
}

fn rate_factor(source: Source<'_>, factor: Option<Located<f64>>) -> Result<f64, ConfigError> {
    match factor {
        None => Ok(1.0),
        Some(Located { value, .. }) if value.is_finite() && value > 0.0 => Ok(value),
        Some(Located { value, at }) => {
            let message = format!("found {value:?}; expected a number above 0, such as 0.95");
            Err(source.error(at, message))
        }
    }
}

/// `rate * factor`, rounded to the nearest whole number, halves up.
fn scaled_rate(
    source: Source<'_>,
    rate: Located<Quantity>,
    factor: f64,
    max: u64,
    unit: &str,
) -> Result<u64, ConfigError> {
    // This is exact: every whole number up to `max` is an f64, and larger ones are refused.
    let scaled = (rate.value.0 as f64 * factor).round();
    if (1.0..=max as f64).contains(&scaled) {
        return Ok(scaled as u64);
    }
    let found = if factor == 1.0 {
        rate.value.0.to_string()
    } else {
        format!("{} times the rate_factor {factor:?}", rate.value.0)
    };
    let message = format!("found {found}; expected 1 to {max} {unit}; correct it or measure again");
    Err(source.error(rate.at, message))
}

/// An optional length, which must be `valid` if it is present.
fn length(
    source: Source<'_>,
    length: Option<Located<Quantity>>,
    expected: &str,
    valid: impl Fn(u64) -> bool,
) -> Result<Option<u64>, ConfigError> {
    match length {
        Some(Located { value: Quantity(length), at }) if !valid(length) => {
            let message =
                format!("found {length}; expected {expected}; correct it or remove the key");
            Err(source.error(at, message))
        }
        length => Ok(length.map(|length| length.value.0)),
    }
}
