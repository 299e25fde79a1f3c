//! The scheduler of a run: the disk, and the classes of the job file.

use forebay::engine::EngineConfig;
use forebay::properties::DiskProperties;
use forebay::{Class, ClassError, ClassGroup, DEFAULT_CLASS, Disk, DiskConfig, Policy, Scheduler};
use forebay_load::job_file::{ClassSpec, GroupSpec, JobFile};

use super::plan::{Plan, Topology};
use crate::failure::Failure;

/// More requests than any job file makes.
const REQUESTS_MAX: u32 = u32::MAX - 1;

/// The scheduler, and what of it a run uses.
#[derive(Clone, Debug)]
pub(super) struct Scheduled {
    pub(super) scheduler: Scheduler,
    pub(super) disk: Disk,
    /// The classes in the order of the job file, on the disk.
    pub(super) classes: Vec<Class>,
}

impl Scheduled {
    /// The scheduler of `plan` for this many threads; `engine` is for I/O threads.
    ///
    /// The open policy stands for no scheduler at all: then limits do not hold either.
    pub(super) fn new(
        plan: &Plan<'_>,
        thread_count: usize,
        engine: EngineConfig,
    ) -> Result<Self, Failure> {
        let queues = match plan.topology {
            Topology::PerThread => thread_count,
            Topology::Shared => 1,
            Topology::Coordinators => plan.io_queues,
        };
        let mut builder =
            Scheduler::builder().shards_max(queues).requests_max(REQUESTS_MAX).engine(engine);
        if plan.topology == Topology::Coordinators {
            builder = builder.io_queues(queues);
        }
        let policy = plan.policy_in_force();
        if let Some(properties) = &plan.disk.properties {
            let mountpoints = vec![plan.target.to_owned()];
            let here = DiskProperties { mountpoints, ..properties.clone() };
            let config = DiskConfig::from_properties(&here)
                .policy(policy)
                .latency_target(plan.latency_target)
                .control(plan.control)
                .order(plan.order);
            builder = builder.disk(config);
        }
        let scheduler = builder.build().map_err(|error| Failure::Input(error.to_string()))?;
        let disk = scheduler.default_class().disk();
        let classes = add_classes(&scheduler, plan.jobs, policy != Policy::Unlimited);
        let classes = classes.map_err(|error| {
            Failure::Input(format!("the scheduler cannot take these classes: {error}"))
        })?;
        Ok(Self { scheduler, disk, classes })
    }
}

fn add_classes(
    scheduler: &Scheduler,
    jobs: &JobFile,
    limited: bool,
) -> Result<Vec<Class>, ClassError> {
    let group = |spec: &GroupSpec| scheduler.add_class_group(&spec.name, spec.shares);
    let class = |spec: &ClassSpec, group: Option<&ClassGroup>| {
        let class = match group {
            Some(group) => group.add_class(&spec.name, spec.shares)?,
            None if spec.name == DEFAULT_CLASS => {
                let untagged = scheduler.default_class();
                untagged.set_shares(spec.shares)?;
                untagged
            }
            None => scheduler.add_class(&spec.name, spec.shares)?,
        };
        if limited {
            class.set_limits(&spec.limits())?;
        }
        Ok(class)
    };
    let (_, classes) = jobs.make_classes(group, class)?;
    Ok(classes)
}
