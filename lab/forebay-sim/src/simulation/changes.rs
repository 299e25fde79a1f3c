//! What changes while the load runs.

use forebay_core::{Limits, Time, saturating_nanos};

use super::error::SimulationError;
use super::setup::Simulation;
use crate::config::What;

impl Simulation {
    pub(super) fn change(&mut self, now: Time, what: &What) -> Result<(), SimulationError> {
        match what {
            What::Shares { class, shares } => {
                self.scheduler.set_shares(&self.jobs, class, *shares)?;
                if let Some(invariants) = &mut self.env.invariants {
                    invariants.shares_changed(&self.jobs, class, *shares);
                }
            }
            What::Limit { class, bytes_per_second } => {
                let class = self.class_number(class, what)?;
                let limits =
                    Limits { bytes_per_second: *bytes_per_second, operations_per_second: None };
                self.scheduler.set_limits(class, &limits)?;
                if let Some(invariants) = &mut self.env.invariants {
                    invariants.limit_changed(class, bytes_per_second.is_some());
                }
            }
            What::Move { class, parent } => {
                let class = self.class_number(class, what)?;
                let groups = &self.jobs.groups;
                let named = |name: &String| groups.iter().position(|group| group.name == *name);
                self.move_class(now, class, parent.as_ref().and_then(named))?;
            }
            What::Target { target } => {
                let groups = &self.scheduler.groups;
                groups.iter().for_each(|group| group.group.set_latency_target(*target));
            }
            What::Pause { length } => {
                let until = now.plus_nanos(saturating_nanos(*length));
                self.shards.iter_mut().for_each(|shard| shard.pause(until));
            }
        }
        // A change takes effect with the next dispatch.
        self.shards.iter().for_each(|shard| self.env.wake(now, shard.index));
        Ok(())
    }

    fn class_number(&self, name: &str, what: &What) -> Result<usize, SimulationError> {
        let number = self.jobs.classes.iter().position(|class| class.name == name);
        number.ok_or_else(|| SimulationError::Change(what.clone()))
    }

    /// Takes back what waits of a class, removes it, and adds one in its stead.
    fn move_class(
        &mut self,
        now: Time,
        class: usize,
        parent: Option<usize>,
    ) -> Result<(), SimulationError> {
        for shard in &mut self.shards {
            shard.cancel_class(now, class, &mut self.env);
        }
        self.scheduler.replace_class(class, parent)?;
        for (group, classes) in self.scheduler.groups.iter().zip(&mut self.env.classes) {
            classes.clone_from(&group.classes);
        }
        if let Some(invariants) = &mut self.env.invariants {
            invariants.class_moved(class, parent);
        }
        Ok(())
    }
}
