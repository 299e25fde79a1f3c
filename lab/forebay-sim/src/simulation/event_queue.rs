//! What is to happen at given times of a run, by its configuration.

use forebay_core::Time;

use super::error::SimulationError;
use crate::config::{Change, Period, SimulationConfig, What};

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The job with this index begins.
    StartJob(usize),
    /// It sends nothing more.
    StopJob(usize),
    /// Something changes.
    Change(What),
}

/// The events that are still to come, the last first.
#[derive(Clone, Debug)]
pub(super) struct EventQueue(Vec<(Time, Event)>);

impl EventQueue {
    pub(super) fn new(config: &SimulationConfig) -> Result<Self, SimulationError> {
        let mut events = Vec::new();
        let mut seen = Vec::new();
        for Period { job: name, from, to } in &config.schedule {
            let unknown = || SimulationError::Period { job: name.clone() };
            let index = config.jobs.jobs.iter().position(|job| job.name == *name);
            let index = index.filter(|index| !seen.contains(index)).ok_or_else(unknown)?;
            seen.push(index);
            events.push((*from, Event::StartJob(index)));
            events.extend(to.map(|to| (to.max(*from), Event::StopJob(index))));
        }
        for Change { at, what } in &config.changes {
            check_names(config, what)?;
            events.push((*at, Event::Change(what.clone())));
        }
        // What comes first in the configuration happens first.
        events.reverse();
        events.sort_by_key(|(at, _)| core::cmp::Reverse(*at));
        Ok(Self(events))
    }

    /// Whether a job does not begin with the run.
    pub(super) fn starts_later(&self, job: usize) -> bool {
        self.0.iter().any(|(_, event)| *event == Event::StartJob(job))
    }

    /// When something happens next, [`Time::MAX`] if nothing does.
    pub(super) fn next_time(&self) -> Time {
        self.0.last().map_or(Time::MAX, |(at, _)| *at)
    }

    /// What happens by `now`; to be asked until it returns `None`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Event> {
        let (at, event) = self.0.pop()?;
        if at > now {
            self.0.push((at, event));
            return None;
        }
        Some(event)
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
        What::Target { .. } | What::Pause { .. } => true,
    };
    if known { Ok(()) } else { Err(SimulationError::Change(what.clone())) }
}
