//! A disk of which figures are known, or none.

use std::path::Path;
use std::time::Duration;

use forebay::properties::{DiskProperties, TargetBelowBase};
use forebay_core::{DiskModel, DiskRates, LatencyTarget, SATURATION_LENGTH_DEFAULT};
use forebay_load::results::model::PropertiesSource;

use crate::disk::Disk;
use crate::failure::Failure;
use crate::load_options::TargetOption;

/// What is said of a disk, and what the scheduler makes of it.
#[derive(Clone, Debug)]
pub(super) struct DescribedDisk {
    /// What the disk is called.
    pub(super) name: String,
    /// Where its figures come from.
    pub(super) source: String,
    /// The figures; none for a disk that nobody has described.
    pub(super) figures: Option<DiskFigures>,
    /// What requests cost.
    pub(super) model: DiskModel,
    /// The latency of the idle disk, if known.
    pub(super) base_latency: Option<Duration>,
    /// What looks wrong with figures of a file. Those of known disks are published as they are.
    pub(super) figure_warnings: Vec<String>,
}

/// The figures of a disk, and how it is priced with them.
#[derive(Clone, Debug)]
pub(super) struct DiskFigures {
    pub(super) properties: DiskProperties,
    pub(super) rates: DiskRates,
    /// The same figures under Seastar's cost.
    pub(super) summed: DiskModel,
}

impl DiskFigures {
    /// The size from which reads, and then writes, reach their bandwidth.
    pub(super) fn saturation(&self) -> [u64; 2] {
        let of = |length: Option<u64>| length.unwrap_or(SATURATION_LENGTH_DEFAULT);
        [of(self.properties.read_saturation_length), of(self.properties.write_saturation_length)]
    }

    /// Whether the file asks for Seastar's cost.
    pub(super) fn is_summed(&self) -> bool {
        self.properties.max_cost_function == Some(false)
    }
}

impl DescribedDisk {
    /// A disk of an io-properties file, or of a forebay.yaml.
    pub(super) fn from_file(disk: &DiskProperties, file: &Path) -> Result<Self, Failure> {
        let mountpoints: Vec<String> =
            disk.mountpoints.iter().map(|path| path.display().to_string()).collect();
        let base_latency = disk.measured.base_latency;
        let name = mountpoints.join(", ");
        let described = Self::new(name, file.display().to_string(), disk.clone(), base_latency)?;
        Ok(Self { figure_warnings: disk.figure_warnings(), ..described })
    }

    /// A disk of these figures.
    pub(super) fn new(
        name: String,
        source: String,
        properties: DiskProperties,
        base_latency: Option<Duration>,
    ) -> Result<Self, Failure> {
        let Disk { model, rates, .. } = Disk::new(&properties, PropertiesSource::File)?;
        let figures = rates.map(|rates| {
            let summed = DiskModel::from_rates_summed(&rates).map_err(|error| {
                Failure::Input(format!("the properties of {name} make no model: {error}"))
            })?;
            Ok::<_, Failure>(DiskFigures { properties, rates, summed })
        });
        let figures = figures.transpose()?;
        Ok(Self { name, source, figures, model, base_latency, figure_warnings: Vec::new() })
    }

    /// What requests may take in it while others wait.
    pub(super) fn latency_target(&self) -> Option<LatencyTarget> {
        self.figures.as_ref().and_then(|figures| figures.properties.latency_target)
    }

    /// The same disk with the latency target asked for, if any was.
    pub(super) fn with_target(mut self, asked: Option<TargetOption>) -> Result<Self, Failure> {
        if let (Some(TargetOption(target)), Some(figures)) = (asked, &mut self.figures) {
            figures.properties.latency_target = target;
        }
        TargetBelowBase::check(self.latency_target(), self.base_latency)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.name)))?;
        Ok(self)
    }

    /// A disk that nobody has described.
    pub(super) fn unmeasured() -> Self {
        Self {
            name: "any disk without an entry".into(),
            source: "the assumptions without io-properties".into(),
            figures: None,
            model: Disk::unmeasured().model,
            base_latency: None,
            figure_warnings: Vec::new(),
        }
    }
}
