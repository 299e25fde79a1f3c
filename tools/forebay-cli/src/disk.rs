//! What is known of the disk under a load.

use std::path::PathBuf;
use std::time::Duration;

use forebay::properties::{DiskProperties, RADIUS_ONE, RegionChoice};
use forebay_core::{DiskModel, DiskRates, Policy};
use forebay_load::results::model::{Properties, PropertiesSource, RegionAsked, RegionInUse};
use forebay_sim::disk::SimDisk;

use crate::failure::Failure;

/// What is known of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// What is said of it, if anything is.
    pub(crate) properties: Option<DiskProperties>,
    /// What requests cost.
    pub(crate) model: DiskModel,
    /// Its figures; none for a disk that nobody has measured.
    pub(crate) rates: Option<DiskRates>,
    /// Where the figures come from.
    pub(crate) source: PropertiesSource,
    /// Whether reads and writes have a budget each.
    pub(crate) duplex: bool,
    /// The latency of the idle disk, if known.
    pub(crate) base_latency: Option<Duration>,
}

impl Disk {
    /// A disk with these properties.
    pub(crate) fn new(
        properties: &DiskProperties,
        source: PropertiesSource,
    ) -> Result<Self, Failure> {
        let model = properties.model().map_err(|error| {
            Failure::Input(format!("the properties of the disk make no model: {error}"))
        })?;
        let (rates, duplex) = (Some(properties.rates()), properties.duplex);
        let base_latency = properties.measured.base_latency;
        let properties = Some(properties.clone());
        Ok(Self { properties, model, rates, source, duplex, base_latency })
    }

    /// A simulated disk, as it is.
    pub(crate) fn simulated(disk: &dyn SimDisk) -> Result<Self, Failure> {
        let mut properties = properties_of(disk, Vec::new());
        properties.measured.base_latency = Some(disk.base_latency());
        Self::new(&properties, PropertiesSource::Simulated)
    }

    /// A disk of which nothing is known: requests have a price, and no rate binds.
    pub(crate) fn unmeasured() -> Self {
        Self {
            properties: None,
            model: DiskModel::unmeasured(),
            rates: None,
            source: PropertiesSource::None,
            duplex: false,
            base_latency: None,
        }
    }

    /// By which region mixes are priced under `policy`, if by one.
    fn region(&self, policy: &Policy) -> Option<RegionChoice<'_>> {
        self.properties.as_ref().and_then(|properties| properties.region_choice(policy))
    }

    /// What requests and mixes of them cost under `policy`.
    pub(crate) fn model_under(&self, policy: &Policy) -> DiskModel {
        let priced = self.properties.as_ref().and_then(|disk| disk.model_under(policy).ok());
        priced.unwrap_or_else(|| self.model.clone())
    }

    /// The figures as results under `policy` show them.
    pub(crate) fn in_results(&self, policy: &Policy) -> Properties {
        let rate = |rate: fn(&DiskRates) -> u64| self.rates.as_ref().map(rate);
        let stated = self.properties.as_ref().filter(|_| self.source == PropertiesSource::File);
        Properties {
            source: self.source,
            read_iops: rate(|rates| rates.read_iops),
            read_bandwidth: rate(|rates| rates.read_bandwidth),
            write_iops: rate(|rates| rates.write_iops),
            write_bandwidth: rate(|rates| rates.write_bandwidth),
            region: self.region(policy).map(|choice| in_use(&choice)),
            warnings: stated.map(DiskProperties::figure_warnings).unwrap_or_default(),
        }
    }
}

/// What a simulated disk that is mounted at `mountpoints` can do.
pub(crate) fn properties_of(disk: &dyn SimDisk, mountpoints: Vec<PathBuf>) -> DiskProperties {
    let mut properties = DiskProperties::from_rates(&disk.rates(), mountpoints);
    properties.measured.seeks = disk.seeks();
    properties.measured.flush = disk.flush();
    properties
}

/// A region as results show it.
pub(crate) fn in_use(choice: &RegionChoice<'_>) -> RegionInUse {
    let RegionChoice { region, goal } = *choice;
    let us = |latency: Duration| latency.as_secs_f64() * 1e6;
    let ends = [region.write_bandwidth as f64, region.read_iops as f64];
    let steps = region.radii.len().saturating_sub(1).max(1) as f64;
    let point = |(step, &radius): (u32, &u32)| {
        let (part, radius) = (f64::from(step) / steps, f64::from(radius) / f64::from(RADIUS_ONE));
        [radius * part * ends[0], radius * (1.0 - part) * ends[1]]
    };
    let is_it = (region.read_percentile, region.latency) == (goal.read_percentile, goal.latency);
    RegionInUse {
        read_percentile: region.read_percentile,
        latency_us: us(region.latency),
        asked: (!is_it).then(|| RegionAsked {
            read_percentile: goal.read_percentile,
            latency_us: us(goal.latency),
            far: choice.is_distant(),
        }),
        border: (0..).zip(&region.radii).map(point).collect(),
        ends,
    }
}
