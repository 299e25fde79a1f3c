//! The scheduler of a run: its I/O groups, and the classes of the job file in them.

use forebay_core::{
    ClassError, ClassGroupId, ClassId, DiskModel, GroupConfig, IoGroup, IoQueue, Limits, Policy,
};
use forebay_load::job_file::{ClassSpec, GroupSpec, JobFile};

use super::error::SimulationError;
use crate::config::{SchedulerConfig, What};

/// More requests than any job file makes.
const REQUESTS_MAX: u32 = u32::MAX - 1;

/// One I/O group, or where reads and writes do not disturb each other one for each of the two.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) groups: Vec<Group>,
}

/// An I/O group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) group: IoGroup,
    /// The classes in the order of the job file.
    pub(crate) classes: Vec<ClassId>,
    /// The groups of classes in the order of the job file.
    pub(crate) parents: Vec<ClassGroupId>,
}

impl Scheduler {
    pub(crate) fn new(
        jobs: &JobFile,
        config: &SchedulerConfig,
        (model, policy): (&DiskModel, Policy),
        shard_count: usize,
    ) -> Result<Self, ClassError> {
        let group = || {
            let mut group_config = GroupConfig::new(model.clone(), policy);
            group_config.shards_max = shard_count;
            group_config.requests_max = REQUESTS_MAX;
            group_config.order = config.order;
            group_config.tick_nanos = config.tick_nanos;
            group_config.latency_target = config.latency_target;
            group_config.control = config.control;
            let io_group = IoGroup::new(group_config);
            io_group.set_ceiling(config.ceiling);
            Group::new(io_group, jobs, policy != Policy::Unlimited)
        };
        let count = if config.duplex { 2 } else { 1 };
        Ok(Self { groups: (0..count).map(|_| group()).collect::<Result<_, _>>()? })
    }

    pub(super) fn io_groups(&self) -> Vec<IoGroup> {
        self.groups.iter().map(|group| group.group.clone()).collect()
    }

    /// A queue in each group for one more shard.
    pub(crate) fn join(&self) -> Result<Vec<IoQueue>, SimulationError> {
        let join = |group: &Group| group.group.join().map_err(SimulationError::Shards);
        self.groups.iter().map(join).collect()
    }

    /// Changes the shares of a class or of a group of classes.
    pub(crate) fn set_shares(
        &self,
        jobs: &JobFile,
        name: &str,
        shares: u32,
    ) -> Result<(), SimulationError> {
        let class = jobs.classes.iter().position(|class| class.name == name);
        let parent = jobs.groups.iter().position(|group| group.name == name);
        for group in &self.groups {
            let changed = match (class, parent) {
                (Some(class), _) => group.group.set_shares(group.classes[class], shares),
                (_, Some(parent)) => group.group.set_shares(group.parents[parent], shares),
                _ => {
                    let class = name.to_owned();
                    return Err(SimulationError::Change(What::Shares { class, shares }));
                }
            };
            changed.map_err(SimulationError::Classes)?;
        }
        Ok(())
    }

    /// Changes the limits of a class.
    pub(crate) fn set_limits(&self, class: usize, limits: &Limits) -> Result<(), SimulationError> {
        let set = |group: &Group| group.group.set_limits(group.classes[class], limits);
        self.groups.iter().try_for_each(set).map_err(SimulationError::Classes)
    }

    /// Removes a class, and adds one of its shares without limits in its stead.
    pub(crate) fn replace_class(
        &mut self,
        class: usize,
        parent: Option<usize>,
    ) -> Result<(), SimulationError> {
        let replace = |Group { group, classes, parents }: &mut Group| {
            let shares = group.shares(classes[class])?;
            group.remove(classes[class])?;
            classes[class] = group.add_class(parent.map(|parent| parents[parent]), shares)?;
            Ok(())
        };
        self.groups.iter_mut().try_for_each(replace).map_err(SimulationError::Classes)
    }
}

impl Group {
    fn new(group: IoGroup, jobs: &JobFile, limited: bool) -> Result<Self, ClassError> {
        let add_group = |spec: &GroupSpec| group.add_class_group(None, spec.shares);
        let add_class = |spec: &ClassSpec, parent: Option<&ClassGroupId>| {
            let id = group.add_class(parent.copied(), spec.shares)?;
            if limited {
                group.set_limits(id, &spec.limits())?;
            }
            Ok(id)
        };
        let (parents, classes) = jobs.make_classes(add_group, add_class)?;
        Ok(Self { group, classes, parents })
    }
}
