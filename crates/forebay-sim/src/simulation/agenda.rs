//! What is to happen at given times of a run.

use forebay_core::Time;

use super::config::{Change, Period, SimulationConfig, What};
use super::error::SimulationError;

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The job with this index begins.
    Start(usize),
    /// It sends nothing more.
    Stop(usize),
    /// Something changes.
    Change(What),
}

/// The rest of what is to happen, the last first.
#[derive(Clone, Debug)]
pub(super) struct Agenda(Vec<(Time, Item)>);

impl Agenda {
    pub(super) fn new(config: &SimulationConfig) -> Result<Self, SimulationError> {
        let mut items = Vec::new();
        let mut seen = Vec::new();
        for Period { job: name, from, to } in &config.schedule {
            let unknown = || SimulationError::Period { job: name.clone() };
            let index = config.jobs.jobs.iter().position(|job| job.name == *name);
            let index = index.filter(|index| !seen.contains(index)).ok_or_else(unknown)?;
            seen.push(index);
            items.push((*from, Item::Start(index)));
            items.extend(to.map(|to| (to.max(*from), Item::Stop(index))));
        }
        for Change { at, what } in &config.changes {
            check_names(config, what)?;
            items.push((*at, Item::Change(what.clone())));
        }
        // What comes first in the configuration happens first.
        items.reverse();
        items.sort_by_key(|(at, _)| core::cmp::Reverse(*at));
        Ok(Self(items))
    }

    /// Whether a job does not begin with the run.
    pub(super) fn starts_later(&self, job: usize) -> bool {
        self.0.iter().any(|(_, item)| *item == Item::Start(job))
    }

    /// When something happens next, [`Time::MAX`] if nothing does.
    pub(super) fn next_time(&self) -> Time {
        self.0.last().map_or(Time::MAX, |(at, _)| *at)
    }

    /// What happens by `now`; to be asked until it returns `None`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Item> {
        let (at, item) = self.0.pop()?;
        if at > now {
            self.0.push((at, item));
            return None;
        }
        Some(item)
    }
}

/// Whether there are the classes and groups of classes that a change is about.
fn check_names(config: &SimulationConfig, what: &What) -> Result<(), SimulationError> {
    let is_class = |name: &String| config.jobs.classes.iter().any(|class| class.name == *name);
    let is_group = |name: &String| config.jobs.groups.iter().any(|group| group.name == *name);
    let known = match what {
        What::Shares { class, .. } => is_class(class) || is_group(class),
        What::Limit { class, .. } => is_class(class),
        What::Move { class, parent } => is_class(class) && parent.iter().all(is_group),
        What::Pause(_) => true,
    };
    if known { Ok(()) } else { Err(SimulationError::Change(what.clone())) }
}
