//! The scheduler of a run: its I/O groups, and the classes of the job file in them.

use forebay_core::{ClassError, ClassId, GroupConfig, GroupFull, IoGroup, IoQueue, Limits, Policy};
use forebay_load::job_file::JobFile;

use super::runner::Plan;
use crate::failure::Failure;

/// More requests than any job file makes.
const REQUESTS_MAX: u32 = u32::MAX - 1;

/// One I/O group, or where reads and writes do not disturb each other one for each of the two.
#[derive(Debug)]
pub(super) struct Scheduler {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    group: IoGroup,
    /// The classes in the order of the job file.
    classes: Vec<ClassId>,
}

/// A shard's place in a group.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) queue: IoQueue,
    /// The classes in the order of the job file.
    pub(super) classes: Vec<ClassId>,
}

impl Scheduler {
    /// The scheduler of `plan` on so many shards.
    ///
    /// The open policy stands for no scheduler at all: then limits do not hold either.
    pub(super) fn new(plan: &Plan<'_>, shard_count: usize) -> Result<Self, Failure> {
        let (disk, policy) = (plan.disk, plan.policy_in_force());
        let group = || {
            let mut config = GroupConfig::new(disk.model.clone(), policy);
            config.shards_max = shard_count;
            config.requests_max = REQUESTS_MAX;
            config.order = plan.order;
            let group = IoGroup::new(config);
            let classes = add_classes(&group, plan.jobs, policy != Policy::Open)?;
            Ok(Group { group, classes })
        };
        let count = if disk.duplex { 2 } else { 1 };
        let groups = (0..count).map(|_| group()).collect::<Result<_, ClassError>>();
        let groups = groups.map_err(|error| {
            Failure::Input(format!("the scheduler cannot take these classes: {error}"))
        })?;
        Ok(Self { groups })
    }

    /// A place for one more shard in each group.
    pub(super) fn join(&self) -> Result<Vec<Place>, GroupFull> {
        let place = |Group { group, classes }: &Group| {
            Ok(Place { queue: group.join()?, classes: classes.clone() })
        };
        self.groups.iter().map(place).collect()
    }
}

fn add_classes(group: &IoGroup, jobs: &JobFile, limited: bool) -> Result<Vec<ClassId>, ClassError> {
    let parents = jobs
        .groups
        .iter()
        .map(|parent| group.add_class_group(None, parent.shares))
        .collect::<Result<Vec<_>, _>>()?;
    let add = |class: &forebay_load::job_file::ClassSpec| {
        let parent = class.parent.and_then(|parent| parents.get(parent).copied());
        let id = group.add_class(parent, class.shares)?;
        let bytes_per_second = class.bandwidth_max.map(Into::into).filter(|_| limited);
        group.set_limits(id, &Limits { bytes_per_second, operations_per_second: None })?;
        Ok(id)
    };
    jobs.classes.iter().map(add).collect()
}
