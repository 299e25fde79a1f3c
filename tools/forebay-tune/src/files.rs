//! The two files that describe disks to the scheduler, see [`forebay::properties`].
//!
//! `io-properties.yaml` has the keys that Seastar knows, and no others. `forebay.yaml` names it
//! and adds what only forebay knows; it repeats the four figures, so that either file alone is
//! enough to run.

use std::path::PathBuf;
use std::time::Duration;

use forebay::properties::{
    CostAt, DiscardCost, DiskProperties, Lasting, Measured, MeasuredDirection, Properties,
    Steadiness,
};
use forebay_core::{Ceiling, DiskRates};

use crate::drift;
use crate::fit::{CostPoint, Fit, Knee, Sizes};
use crate::run::Run;

/// What a file may state at most, as the library reads it.
const IOPS_MAX: f64 = 1e8;
const BANDWIDTH_MAX: f64 = 1e12;
/// From this size on a saturation length makes a model.
const SATURATION_MIN: u64 = 8192;
const TIME_US_MAX: f64 = 1e8;

/// What both files say about the disks.
pub fn properties(disks: &[(&Run, &Fit)]) -> Properties {
    let disks = disks.iter().map(|(run, fit)| disk_properties(run, fit)).collect();
    Properties { disks }
}

fn disk_properties(run: &Run, fit: &Fit) -> DiskProperties {
    let rate = |value: f64, max: f64| value.round().clamp(1.0, max) as u64;
    let length = |sizes: &Sizes| sizes.saturation.bytes.map(|bytes| bytes.max(SATURATION_MIN));
    let rates = DiskRates {
        read_iops: rate(fit.read_iops.value, IOPS_MAX),
        write_iops: rate(fit.write_iops.value, IOPS_MAX),
        read_bandwidth: rate(fit.read_bandwidth.value, BANDWIDTH_MAX),
        write_bandwidth: rate(fit.write_bandwidth.value, BANDWIDTH_MAX),
    };
    let places = run.target.paths.iter().map(PathBuf::from).collect();
    DiskProperties {
        read_saturation_length: length(&fit.read),
        write_saturation_length: length(&fit.write),
        physical_block_size: fit.sector.disagrees().then(|| fit.sector.measured().into()),
        measured: measured(fit, &rates),
        ..DiskProperties::from_rates(&rates, places)
    }
}

fn measured(fit: &Fit, rates: &DiskRates) -> Measured {
    let behind_credits = fit.spent().is_some();
    Measured {
        seeks: fit.seeks.and_then(|seeks| seeks.known()) == Some(true),
        ceiling: if behind_credits { Ceiling::AfterBurst } else { Ceiling::Never },
        base_latency: Some(time(fit.base_latency_us)).filter(|base| !base.is_zero()),
        read: consistent(
            MeasuredDirection {
                iops_sustained: Some(lasting(fit.lasting.read_iops)),
                bandwidth_sustained: Some(lasting(fit.lasting.read_bandwidth)),
                sequential_iops: fit.read.in_sequence().filter(|_| !behind_credits),
                ..direction(&fit.read, &fit.read_knee, &fit.read_steadiness)
            },
            rates.read_iops,
            rates.read_bandwidth,
        ),
        write: consistent(
            MeasuredDirection {
                iops_sustained: Some(lasting(fit.lasting.write_iops)),
                bandwidth_sustained: Some(lasting(fit.lasting.write_bandwidth)),
                sequential_iops: fit.write.in_sequence().filter(|_| !behind_credits),
                ..direction(&fit.write, &fit.write_knee, &fit.write_steadiness)
            },
            rates.write_iops,
            rates.write_bandwidth,
        ),
        flush: fit.flush_us.map(time),
        discard: fit.discard.map(|discard| DiscardCost {
            command: time(discard.command_us),
            gib: time(discard.gib_us),
        }),
        regions: Vec::new(),
        region_goal: None,
        renamed_keys: Vec::new(),
    }
}

fn direction(sizes: &Sizes, knee: &Knee, steadiness: &drift::Steadiness) -> MeasuredDirection {
    let cost = |point: &CostPoint| CostAt {
        bytes: point.bytes.into(),
        cost: Duration::from_secs_f64(1.0 / point.rate.clamp(1.0 / 64.0, IOPS_MAX)),
    };
    MeasuredDirection {
        cost: sizes.cost.iter().map(cost).collect(),
        knee: knee.requests.map(f64::from),
        steadiness: Some(Steadiness {
            steady: steadiness.is_known(),
            burst_excess: rounded(steadiness.burst_excess, 1000.0),
            observed: Duration::from_secs(steadiness.observed_seconds.round() as u64),
        }),
        ..MeasuredDirection::default()
    }
}

fn lasting(seen: bool) -> Lasting {
    if seen { Lasting::Yes } else { Lasting::Unknown }
}

/// Without costs that the reader of the file would refuse: then the rates alone stand.
fn consistent(direction: MeasuredDirection, iops: u64, bandwidth: u64) -> MeasuredDirection {
    match direction.contradiction(iops, bandwidth) {
        Some(_) => MeasuredDirection { cost: Vec::new(), ..direction },
        None => direction,
    }
}

/// In whole parts, this many to one.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn time(us: f64) -> Duration {
    Duration::from_nanos((us.clamp(0.0, TIME_US_MAX) * 1e3).round() as u64)
}

/// The text of `forebay.yaml`, alongside a file of Seastar's called `properties_name`.
pub fn forebay_yaml(properties: &Properties, properties_name: &str) -> String {
    let keys = properties.to_forebay_yaml(properties_name);
    format!(
        "# Figures measured by forebay tune. Rates are per second; costs are lists of\n# [bytes, \
         nanoseconds of disk time].\n{keys}"
    )
}
