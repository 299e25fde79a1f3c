//! What is to happen at given times of a run.

use forebay_core::Time;

use super::config::{Period, SimulationConfig};
use super::error::SimulationError;

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The job with this index begins.
    Start(usize),
    /// It sends nothing more.
    Stop(usize),
    /// A class or a group of classes has so many shares from now on.
    Shares { class: String, shares: u32 },
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
        for change in &config.share_changes {
            let (class, shares) = (change.class.clone(), change.shares);
            let classes = config.jobs.classes.iter().map(|class| &class.name);
            let mut names = classes.chain(config.jobs.groups.iter().map(|group| &group.name));
            if !names.any(|name| *name == class) {
                return Err(SimulationError::ShareChange { class });
            }
            items.push((change.at, Item::Shares { class, shares }));
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
