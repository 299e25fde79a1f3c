//! A disk under io.cost, whose old settings are recorded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forebay_block::Machine;
use forebay_core::LatencyTarget;

use crate::changes::{Changes, Kind, put_back};
use crate::disk::GovernedDisk;
use crate::error::GovernError;
use crate::files::Kernel;
use crate::hierarchy::root_of_cgroups;
use crate::qos::{DiskCosts, QosPoint};
use crate::state_file::{STATE_DIRECTORY, StateFile};

/// A latency goal for a disk.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The disk.
    pub disk: GovernedDisk,
    /// The latency goal.
    pub goal: LatencyTarget,
    /// The costs of requests on the disk.
    pub costs: DiskCosts,
}

impl Plan {
    /// Checks the requirements. Returns the root of the cgroups.
    ///
    /// # Errors
    /// A requirement is missing. The message says what to do.
    pub fn check(&self, machine: &Machine) -> Result<PathBuf, GovernError> {
        let root = root_of_cgroups(machine)?;
        require_root()?;
        self.require_io_cost(machine, &root)?;
        Ok(root)
    }

    fn require_io_cost(&self, machine: &Machine, root: &Path) -> Result<(), GovernError> {
        let has = |file| machine.has(root.strip_prefix("/").unwrap_or(root).join(file));
        if has("io.cost.qos") {
            return Ok(());
        }
        // the root of all cgroups has none
        Err(GovernError::Missing(if has("cgroup.type") {
            "io.cost is set at the root of all cgroups, of which a part is seen here: run it outside of \
             the container"
                .into()
        } else {
            format!(
                "the kernel has no io.cost (CONFIG_BLK_CGROUP_IOCOST). BFQ supports weights, with about \
                 a third of the throughput: echo bfq >/sys/block/{}/queue/scheduler",
                self.disk.name
            )
        }))
    }

    /// The lines of `io.cost.model` and `io.cost.qos`.
    pub fn lines(&self, point: QosPoint) -> [String; 2] {
        let number = &self.disk.number;
        [self.costs.line(number), point.line(number, &self.goal, &self.costs)]
    }
}

/// The writes of `io.cost.qos`, each of which holds up the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QosWrites {
    /// The number of writes.
    pub count: u32,
    /// The duration of the longest write.
    pub longest: Duration,
}

/// A disk under io.cost, until [`Governed::end`].
pub(crate) struct Governed<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) machine: &'a Machine,
    pub(crate) root: PathBuf,
    pub(crate) changes: Changes<Kernel>,
    pub(crate) writes: QosWrites,
}

impl<'a> Governed<'a> {
    /// Records the settings. It restores changes of an earlier governor, and makes none of its own yet.
    pub(crate) fn begin(
        plan: &'a Plan,
        machine: &'a Machine,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, GovernError> {
        let root = plan.check(machine)?;
        let disk = &plan.disk;
        let state = StateFile::lock(Path::new(STATE_DIRECTORY), &disk.name)?;
        let mut changes = Changes::begin(Kernel::default(), state, &disk.name, &disk.number, say)?;
        // They are restored in reverse order, because turning io.cost off changes wbt, and a scheduler
        // changes the tags.
        for (kind, path) in [
            (Kind::Controller, root.join("cgroup.subtree_control")),
            (Kind::Whole, disk.queue("wbt_lat_usec")),
            (Kind::Whole, disk.queue("nr_requests")),
            (Kind::Chosen, disk.queue("scheduler")),
            (Kind::Model, root.join("io.cost.model")),
            (Kind::Qos, root.join("io.cost.qos")),
        ] {
            changes.keep(kind, &path)?;
        }
        Ok(Self { plan, machine, root, changes, writes: QosWrites::default() })
    }

    /// Turns io.cost on, with weights for the cgroups below the root.
    pub(crate) fn turn_on(&mut self, point: QosPoint) -> Result<(), GovernError> {
        self.changes.set(Kind::Controller, &self.root.join("cgroup.subtree_control"), "+io")?;
        let [model, _] = self.plan.lines(point);
        self.changes.set(Kind::Model, &self.root.join("io.cost.model"), &model)?;
        self.set(point)
    }

    /// Writes `io.cost.qos`. The kernel holds up the disk during the write.
    pub(crate) fn set(&mut self, point: QosPoint) -> Result<(), GovernError> {
        let [_, line] = self.plan.lines(point);
        let began = Instant::now();
        self.changes.set(Kind::Qos, &self.root.join("io.cost.qos"), &line)?;
        self.writes.longest = self.writes.longest.max(began.elapsed());
        self.writes.count += 1;
        Ok(())
    }

    /// Sets the weight of a cgroup on the disk.
    pub(crate) fn set_weight(&mut self, cgroup: &Path, weight: u32) -> Result<(), GovernError> {
        let text = format!("{} {weight}", self.plan.disk.number);
        self.changes.set_weight(&self.root, cgroup, &text)
    }

    /// Puts all back, and returns the result of the work with any failure to do so.
    pub(crate) fn end<T>(self, done: Result<T, GovernError>) -> Result<T, GovernError> {
        with_failed_restore(done, self.changes.put_back())
    }
}

/// The result of the work, or the reason why not all could be put back. A failure of both names both.
fn with_failed_restore<T>(
    done: Result<T, GovernError>,
    back: Result<(), GovernError>,
) -> Result<T, GovernError> {
    match (done, back) {
        (done, Ok(())) => done,
        (Ok(_) | Err(GovernError::Interrupted), Err(back)) => Err(back),
        (Err(error), Err(back)) => Err(GovernError::Failed(format!("{error}; {back}"))),
    }
}

/// Restores all changes of a killed governor of this disk. Returns whether there were any.
///
/// # Errors
/// A governor of the disk is running, this process does not run as root, or a setting cannot be
/// restored. Then it stays in the state file.
pub fn restore(disk: &str) -> Result<bool, GovernError> {
    let name = disk.trim_start_matches("/dev/");
    if name.is_empty() || name.contains('/') {
        return Err(GovernError::Missing(format!(
            "`{disk}` is not the name of a disk, such as sda"
        )));
    }
    require_root()?;
    let state = StateFile::lock(Path::new(STATE_DIRECTORY), name)?;
    Ok(put_back(&Kernel::default(), &state)?.is_some())
}

/// Only root may change the kernel's settings.
fn require_root() -> Result<(), GovernError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(GovernError::Missing("only root may change the settings of disks: run it as root".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_io_cost_is_told_from_a_container() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(dir.path());
        let costs = DiskCosts {
            model: String::new(),
            half_period: Duration::ZERO,
            bandwidth: [1, 1],
            iops: [1, 1],
        };
        let disk = GovernedDisk { name: "sda".into(), number: "8:0".into() };
        let plan = Plan { disk, goal: "p95=2ms".parse().unwrap(), costs };
        let said =
            || plan.require_io_cost(&machine, Path::new("/cg")).map_err(|why| why.to_string());
        assert!(said().unwrap_err().contains("CONFIG_BLK_CGROUP_IOCOST"));
        std::fs::create_dir(dir.path().join("cg")).unwrap();
        for (file, words) in [("cgroup.type", "outside of the container"), ("io.cost.qos", "")] {
            std::fs::write(dir.path().join("cg").join(file), "").unwrap();
            assert!(said().map_or_else(|why| why.contains(words), |()| words.is_empty()), "{file}");
        }
    }

    #[test]
    fn a_failed_restore_is_reported_whatever_the_result() {
        let failed = |text: &str| GovernError::Failed(text.into());
        let left = || Err(failed("not put back: x"));
        assert_eq!(with_failed_restore(Ok(7), Ok(())), Ok(7));
        assert_eq!(with_failed_restore(Ok(7), left()), Err(failed("not put back: x")));
        let interrupted = with_failed_restore::<u32>(Err(GovernError::Interrupted), left());
        assert_eq!(interrupted, Err(failed("not put back: x")));
        let both = with_failed_restore::<u32>(Err(failed("the disk sda has gone")), left());
        assert_eq!(both, Err(failed("the disk sda has gone; not put back: x")));
    }
}
