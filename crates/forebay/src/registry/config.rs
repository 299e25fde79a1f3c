//! The configuration of a disk.

use std::path::PathBuf;
use std::time::Duration;

use forebay_core::{
    Control, DiskModel, DiskRates, LatencyTarget, ModelError, Policy, ServiceOrder,
};

use crate::properties::{DiskProperties, RegionChoice, Sharing};

/// The rules by which a new disk dispatches requests.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) order: ServiceOrder,
    pub(crate) duplex: bool,
    pub(crate) latency_target: Option<LatencyTarget>,
    pub(crate) control: Control,
}

/// One disk of a [`SchedulerBuilder`](crate::SchedulerBuilder).
#[derive(Clone, Debug)]
pub struct DiskConfig {
    pub(crate) name: String,
    pub(crate) properties: DiskProperties,
    pub(crate) policy: Policy,
    pub(crate) order: ServiceOrder,
    pub(crate) control: Control,
}

impl DiskConfig {
    /// A disk with these rates. The vendor's figures are enough to begin with. No files belong to
    /// it until it has a [mountpoint](Self::mountpoint), but it grants permits under its name.
    pub fn new(name: impl Into<String>, rates: DiskRates) -> Self {
        let properties = DiskProperties::from_rates(&rates, Vec::new());
        Self::of(name.into(), properties)
    }

    /// The disk of an entry of an io-properties file, under the name of its first mountpoint. If it
    /// is `duplex`, reads and all other requests have separate budgets, each as if it were alone.
    pub fn from_properties(properties: &DiskProperties) -> Self {
        let first = properties.mountpoints.first();
        let name = first.map(|path| path.display().to_string()).unwrap_or_default();
        Self::of(name, properties.clone())
    }

    const fn of(name: String, properties: DiskProperties) -> Self {
        let (policy, order) = (Policy::pace_window(), ServiceOrder::StartTime);
        Self { name, properties, policy, order, control: Control::Adaptive }
    }

    /// Adds a directory on the disk, or its block device. Files on the same device belong to the
    /// disk.
    #[must_use]
    pub fn mountpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.properties.mountpoints.push(path.into());
        self
    }

    /// Sets the policy, which decides when requests are dispatched; [`Policy::pace_window`] unless
    /// set.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the order in which classes are served; [`ServiceOrder::StartTime`] unless set.
    /// `ServiceOrder::ExponentialDecay` (feature `history` of the core) is for comparisons.
    #[must_use]
    pub fn order(mut self, order: ServiceOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the latency target under load, or `None` for no target; that of the properties unless
    /// set.
    ///
    /// [`Control::Adaptive`] makes the window smaller while the target is missed. Only
    /// [`Policy::PaceWindow`] has a target. Permits count too, so hold them only during the I/O.
    #[must_use]
    pub fn latency_target(mut self, target: Option<LatencyTarget>) -> Self {
        self.properties.latency_target = target;
        self
    }

    /// Sets how [`Policy::PaceWindow`] decides how much work is sent to the disk;
    /// [`Control::Adaptive`] unless set. A reload does not change the control of a disk.
    #[must_use]
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Gives reads and all other requests separate budgets, each as if it were alone, for a disk
    /// whose directions do not disturb each other.
    #[must_use]
    pub fn duplex(mut self, duplex: bool) -> Self {
        self.properties.duplex = duplex;
        self
    }

    /// Gives this process a fixed part of the disk, above 0 and up to 1, independent of other
    /// processes. It only has an effect with [`Policy::PaceWindow`] and [`Policy::TokenBucket`].
    /// While it applies, trials pause as with [`DiskConfig::shared`].
    #[must_use]
    pub fn share_of_disk(mut self, part: f64) -> Self {
        self.properties.sharing = Sharing::part(part);
        self
    }

    /// Shares the disk with other processes of the same user that do the same.
    ///
    /// They divide it by the shares of the classes in which each has work, and the others get what
    /// one leaves unused. They find each other by a file named after the device of the first
    /// mountpoint, in `$XDG_RUNTIME_DIR/forebay` or `/run/forebay`; see also [`Sharing::Segment`].
    /// All should have the same figures of the disk. While others use the disk, the figures
    /// determine the rate, trials pause, a latency target has no effect, and no base latency is
    /// learnt, because latencies are caused by all.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.properties.sharing = Sharing::Segment { path: None };
        self
    }

    /// [Shares](Self::shared) the disk through the file at `path`, for disks without a known
    /// device, or for processes that see different ones.
    #[must_use]
    pub fn shared_at(mut self, path: impl Into<PathBuf>) -> Self {
        self.properties.sharing = Sharing::Segment { path: Some(path.into()) };
        self
    }

    /// The policy, with the measured base latency unless it states one; the order; and whether each
    /// direction has its own budget.
    pub(crate) const fn rules(&self) -> Rules {
        let policy = match self.policy {
            Policy::PaceWindow { latency_goal, base_latency: None } => {
                let base_latency = self.properties.measured.base_latency;
                Policy::PaceWindow { latency_goal, base_latency }
            }
            policy => policy,
        };
        let DiskProperties { duplex, latency_target, .. } = self.properties;
        Rules { policy, order: self.order, duplex, latency_target, control: self.control }
    }

    /// The base latency: that of the policy, or the measured one.
    pub(crate) fn base_latency(&self) -> Option<Duration> {
        match self.rules().policy {
            Policy::PaceWindow { base_latency, .. } => base_latency,
            _ => None,
        }
    }

    /// Warnings about settings that are not used as they are stated.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let (name, base) = (&self.name, self.base_latency());
        let choice = self.properties.region_choice(&self.rules().policy);
        let far = choice.filter(RegionChoice::is_distant).map(|choice| {
            format!(
                "disk `{name}`: mixes of reads and writes go by a region of another goal: {choice}; \
                 run `forebay explore DIR --goal GOAL -o forebay.yaml` with the one that is meant"
            )
        });
        let target = self.properties.latency_target;
        let below = target.zip(base).filter(|(target, base)| target.latency() <= *base);
        let below = below.map(|(target, base)| {
            format!(
                "disk `{name}`: the latency target {target} is not above the base latency, {base:?}, \
                 and cannot be held: state a longer one"
            )
        });
        let bursts: Vec<&str> = self.properties.not_sustained().collect();
        let bursts = (!bursts.is_empty()).then(|| {
            format!(
                "disk `{name}`: {} may be burst rates: they were not sustained, and pace is \
                 too high once it is over; `forebay tune --budget thorough` measures longer",
                bursts.join(", ")
            )
        });
        let figures = self.properties.figure_warnings().into_iter();
        let figures = figures.map(move |warning| format!("disk `{name}`: {warning}"));
        [far, below, bursts].into_iter().flatten().chain(figures)
    }

    /// The costs of requests on one of `parts` equal parts of the disk. A mix costs the sum of its
    /// requests.
    pub(crate) fn model(&self, parts: u64) -> Result<DiskModel, ModelError> {
        self.properties.model_of_part(parts)
    }
}
