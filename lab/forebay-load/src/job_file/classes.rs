//! Which class each job runs in.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use forebay_config::{ConfigError, Located, Source, known};

use super::model::{ClassSpec, GroupSpec};
use super::raw::{RawGroup, RawJob, RawShardInfo};

const SHARES_MAX: u64 = 10_000;
const SHARES_DEFAULT: u32 = 10;

/// The classes and groups of a run, and who goes by which name.
#[derive(Default)]
pub(super) struct Classes {
    pub(super) classes: Vec<ClassSpec>,
    pub(super) groups: Vec<GroupSpec>,
    names: BTreeMap<String, Named>,
}

/// What a name stands for.
enum Named {
    /// A class, by its index.
    Class(usize),
    /// A group of classes, by its index.
    Group(usize),
    /// A job that runs in the class of this name.
    Job(String),
}

impl Classes {
    /// Adds the entries of the sched-groups file `source`. Those that are parents of others
    /// are groups.
    pub(super) fn add_entries(
        &mut self,
        source: &Source<'_>,
        entries: &[RawGroup],
    ) -> Result<(), ConfigError> {
        let parents = entries.iter().filter_map(|entry| entry.parent.as_ref());
        let parents: BTreeSet<&str> = parents.map(|parent| parent.value.as_str()).collect();
        let (groups, classes): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| parents.contains(entry.name.value.as_str()));
        for group in groups {
            self.check_name(source, &group.name)?;
            if let Some(parent) = &group.parent {
                let message = "a parent of classes cannot have a parent; groups nest one level";
                return Err(source.error(parent.at, message));
            }
            let (name, shares) = (group.name.value.clone(), shares(source, &group.shares)?);
            self.names.insert(name.clone(), Named::Group(self.groups.len()));
            self.groups.push(GroupSpec { name, shares });
        }
        for class in classes {
            self.check_name(source, &class.name)?;
            let shares = shares(source, &class.shares)?;
            let parent = class.parent.as_ref().map(|parent| self.group(source, parent));
            self.add_class(&class.name.value, shares, parent.transpose()?);
        }
        Ok(())
    }

    /// Adds the names of all jobs of the job file `source`, and the classes of those that name
    /// no other.
    pub(super) fn add_jobs(
        &mut self,
        source: &Source<'_>,
        jobs: &[Located<RawJob>],
    ) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for Located { value: job, .. } in jobs {
            let name = job.name.value.as_str();
            if !seen.insert(name) {
                let message = format!("two jobs are called `{name}`; rename one");
                return Err(source.error(job.name.at, message));
            }
            let info = job.shard_info.as_ref().map(|info| &info.value);
            if let Some(class) = info.and_then(|info| info.class.as_ref()) {
                if info.is_some_and(|info| info.shares.is_some()) {
                    let message = "shares are the class's own; remove `shares` or `class`";
                    return Err(source.error(class.at, message));
                }
                let job_of_class = Named::Job(class.value.clone());
                self.names.entry(name.to_owned()).or_insert(job_of_class);
                continue;
            }
            if self.names.contains_key(name) {
                let message = format!(
                    "the sched-groups file has an entry of this name; \
                     rename the job, or run it there with `class: {name}`"
                );
                return Err(source.error(job.name.at, message));
            }
            let given = info.and_then(|info| info.shares.as_ref());
            let shares = given.map_or(Ok(SHARES_DEFAULT), |given| shares(source, given))?;
            self.add_class(name, shares, None);
        }
        Ok(())
    }

    /// The class that `job` runs in. The job's cap becomes the class's.
    pub(super) fn of_job(
        &mut self,
        source: &Source<'_>,
        job: &RawJob,
    ) -> Result<usize, ConfigError> {
        let info = job.shard_info.as_ref().map(|info| &info.value);
        let class = info.and_then(|info| info.class.as_ref()).unwrap_or(&job.name);
        let name = class.value.as_str();
        let message = match self.names.get(name) {
            Some(&Named::Class(index)) => {
                if let Some(info) = info {
                    self.cap(source, index, info)?;
                }
                return Ok(index);
            }
            Some(Named::Group(_)) => {
                format!("`{name}` is a group of classes; name one of its classes")
            }
            Some(Named::Job(other)) if other == name => String::from(
                "the job's `class` is the job itself; remove `class` and give \
                              `shares`",
            ),
            Some(Named::Job(other)) => {
                format!("job `{name}` runs in class `{other}`; write `class: {other}`")
            }
            None => {
                let names = self.classes.iter().map(|class| class.name.as_str());
                format!("no job or sched group is called `{name}`; {}", known(name, names))
            }
        };
        Err(source.error(class.at, message))
    }

    fn cap(
        &mut self,
        source: &Source<'_>,
        index: usize,
        info: &RawShardInfo,
    ) -> Result<(), ConfigError> {
        let Some(bandwidth) = &info.bandwidth else { return Ok(()) };
        let (Some(class), Some(cap)) =
            (self.classes.get_mut(index), NonZeroU64::new(bandwidth.value.0))
        else {
            return Ok(());
        };
        match class.bandwidth_max.replace(cap) {
            Some(before) if before != cap => {
                let message = format!(
                    "another job caps class `{}` at {before} bytes/s; give one cap per class",
                    class.name
                );
                Err(source.error(bandwidth.at, message))
            }
            _ => Ok(()),
        }
    }

    fn group(&self, source: &Source<'_>, parent: &Located<String>) -> Result<usize, ConfigError> {
        if let Some(&Named::Group(index)) = self.names.get(&parent.value) {
            return Ok(index);
        }
        let groups = self.groups.iter().map(|group| group.name.as_str());
        let advice = known(&parent.value, groups);
        let message = format!("no entry is called `{}`; {advice}", parent.value);
        Err(source.error(parent.at, message))
    }

    fn add_class(&mut self, name: &str, shares: u32, parent: Option<usize>) {
        self.names.insert(name.to_owned(), Named::Class(self.classes.len()));
        let name = name.to_owned();
        self.classes.push(ClassSpec { name, shares, parent, bandwidth_max: None });
    }

    /// Checks the name of a sched group.
    fn check_name(&self, source: &Source<'_>, name: &Located<String>) -> Result<(), ConfigError> {
        if name.value.is_empty() {
            return Err(source.error(name.at, "the name is empty; write one"));
        }
        if self.names.contains_key(&name.value) {
            let message = format!("two entries are called `{}`; rename one", name.value);
            return Err(source.error(name.at, message));
        }
        Ok(())
    }
}

fn shares(source: &Source<'_>, given: &Located<u64>) -> Result<u32, ConfigError> {
    match u32::try_from(given.value) {
        Ok(shares) if (1..=SHARES_MAX).contains(&given.value) => Ok(shares),
        _ => {
            let message = format!("{} shares; expected 1 to {SHARES_MAX}", given.value);
            Err(source.error(given.at, message))
        }
    }
}
