//! The two files that describe disks to the scheduler.
//!
//! `io-properties.yaml` has the keys that Seastar knows, and no others. `forebay.yaml` names it
//! and adds what only forebay knows; it repeats the four figures, so that either file alone is
//! enough to run.

use std::fmt::Write as _;
use std::path::PathBuf;

use forebay::properties::{DiskProperties, Properties};
use forebay_config::{ConfigError, Located, Source};
use forebay_core::{CostCurve, DiskModel, DiskRates, DiskTime};
use serde::Deserialize;

use crate::fit::{Fit, Sizes};
use crate::phase::Work;
use crate::run::Run;

/// What a file may state at most, as the library reads it.
const IOPS_MAX: f64 = 1e8;
const BANDWIDTH_MAX: f64 = 1e12;
/// From this size on a saturation length makes a model.
const SATURATION_MIN: u64 = 8192;

/// What Seastar's file says about the disks.
pub fn properties(disks: &[(&Run, &Fit)]) -> Properties {
    let disks = disks.iter().map(|(run, fit)| disk_properties(run, fit)).collect();
    Properties { disks }
}

fn disk_properties(run: &Run, fit: &Fit) -> DiskProperties {
    let rate = |value: f64, max: f64| value.round().clamp(1.0, max) as u64;
    let length = |sizes: &Sizes| Some(sizes.saturation.bytes.max(SATURATION_MIN));
    let rates = DiskRates {
        read_iops: rate(fit.read_iops.value, IOPS_MAX),
        write_iops: rate(fit.write_iops.value, IOPS_MAX),
        read_bandwidth: rate(fit.read_bandwidth.value, BANDWIDTH_MAX),
        write_bandwidth: rate(fit.write_bandwidth.value, BANDWIDTH_MAX),
    };
    let places = run.facts.places.iter().map(PathBuf::from).collect();
    DiskProperties {
        read_saturation_length: length(&fit.read),
        write_saturation_length: length(&fit.write),
        physical_block_size: fit.sector.disagrees().then(|| fit.sector.measured().into()),
        ..DiskProperties::from_rates(&rates, places)
    }
}

/// The text of `forebay.yaml`, beside a file of Seastar's called `properties_name`.
pub fn forebay_yaml(disks: &[(&Run, &Fit)], properties_name: &str) -> String {
    let mut text = format!(
        "# What forebay tune measured. Rates are per second; costs are lists of\n\
         # [bytes, requests per second].\n\
         io_properties: {properties_name}\ndisks:\n"
    );
    for (run, fit) in disks {
        disk_yaml(&mut text, run, fit);
    }
    text
}

fn disk_yaml(text: &mut String, run: &Run, fit: &Fit) {
    // The properties are written by one hand only; here as a list entry, too.
    let properties = Properties { disks: vec![disk_properties(run, fit)] }.to_yaml();
    text.extend(properties.split_inclusive('\n').skip(1));
    let mut line = |key: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {key}: {value}");
    };
    line("base_latency_us", format!("{:.1}", fit.base_latency_us));
    line("read_knee", format!("{:.1}", fit.read_knee.requests));
    line("write_knee", format!("{:.1}", fit.write_knee.requests));
    line("read_cost", ladder(&fit.read));
    line("write_cost", ladder(&fit.write));
    if let Some(flush) = fit.flush.filter(|flush| flush.count > 0) {
        line("flush_us", format!("{:.1}", flush.mean));
    }
    if let Some(discard) = fit.discard {
        line("discard_us", format!("{:.1}", discard.command_us));
        line("discard_gib_us", format!("{:.1}", discard.gib_us));
    }
    for (name, work) in [("read", Work::Read), ("write", Work::Write)] {
        let steadiness = crate::steady::steadiness(run, work);
        line(&format!("{name}_steady"), steadiness.is_known().to_string());
        line(&format!("{name}_first_excess"), format!("{:.3}", steadiness.first_excess));
        line(&format!("{name}_observed_s"), format!("{:.0}", steadiness.observed_seconds));
    }
}

fn ladder(sizes: &Sizes) -> String {
    let rate = |rate: f64| rate.round().clamp(1.0, IOPS_MAX);
    let points =
        sizes.cost.iter().map(|point| format!("[{}, {:.0}]", point.bytes, rate(point.rate)));
    format!("[{}]", points.collect::<Vec<_>>().join(", "))
}

/// A disk as `forebay.yaml` describes it.
#[derive(Clone, Debug)]
pub struct DescribedDisk {
    /// Directories on it.
    pub mountpoints: Vec<PathBuf>,
    /// What requests cost.
    pub model: DiskModel,
    /// The latency of one small read at a time.
    pub base_latency: core::time::Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "io_properties")]
    _properties: String,
    disks: Vec<Located<Disk>>,
}

type Ladder = Vec<(u64, u64)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "keys that a reader of costs does not need")]
struct Disk {
    mountpoint: Option<PathBuf>,
    mountpoints: Option<Vec<PathBuf>>,
    read_iops: u64,
    read_bandwidth: u64,
    write_iops: u64,
    write_bandwidth: u64,
    read_saturation_length: Option<u64>,
    write_saturation_length: Option<u64>,
    physical_block_size: Option<u64>,
    base_latency_us: f64,
    read_knee: f64,
    write_knee: f64,
    read_cost: Located<Ladder>,
    write_cost: Located<Ladder>,
    flush_us: Option<f64>,
    discard_us: Option<f64>,
    discard_gib_us: Option<f64>,
    read_steady: bool,
    read_first_excess: f64,
    read_observed_s: f64,
    write_steady: bool,
    write_first_excess: f64,
    write_observed_s: f64,
}

/// The disks of a `forebay.yaml`.
///
/// # Errors
/// The text is not of that format, or its costs make no model.
pub fn parse(source: &Source<'_>) -> Result<Vec<DescribedDisk>, ConfigError> {
    let file: File = source.parse()?;
    file.disks.into_iter().map(|disk| described(source, disk.value)).collect()
}

fn described(source: &Source<'_>, disk: Disk) -> Result<DescribedDisk, ConfigError> {
    let curve = |ladder: &Located<Ladder>| {
        CostCurve::ladder(&ladder.value)
            .map_err(|error| source.error(ladder.at, format!("{error}; measure again")))
    };
    let time = |us: f64| DiskTime::from_nanos((us * 1e3) as u64);
    let mut model = DiskModel::new(curve(&disk.read_cost)?, curve(&disk.write_cost)?);
    if let Some(flush) = disk.flush_us {
        model = model.with_flush(time(flush));
    }
    Ok(DescribedDisk {
        mountpoints: disk.mountpoints.into_iter().flatten().chain(disk.mountpoint).collect(),
        model,
        base_latency: core::time::Duration::from_secs_f64((disk.base_latency_us / 1e6).max(0.0)),
    })
}
