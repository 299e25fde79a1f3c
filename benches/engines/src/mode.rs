//! The three columns.

use std::path::Path;

use forebay::properties::Properties;
use forebay::{Class, DiskConfig, DiskRates, Entered, Policy, Scheduler};

use crate::engine::Failure;

/// Where nothing is known of the disk.
const RATES: DiskRates = DiskRates {
    read_iops: 400_000,
    write_iops: 100_000,
    read_bandwidth: 3_000_000_000,
    write_bandwidth: 1_500_000_000,
};

pub(crate) struct Mode {
    pub(crate) name: String,
    /// `None` where the engine is as it is.
    pub(crate) classes: Option<Classes>,
}

pub(crate) struct Classes {
    pub(crate) scheduler: Scheduler,
    pub(crate) reads: Class,
    /// Logs and flushes, which writers wait for.
    pub(crate) commits: Class,
    pub(crate) compaction: Class,
}

impl Mode {
    pub(crate) fn new(name: &str, dir: &Path, properties: Option<&Path>) -> Result<Self, Failure> {
        let policy = match name {
            "without" => return Ok(Self { name: name.into(), classes: None }),
            "control" => Some(Policy::Unlimited),
            "scheduled" => None,
            _ => return Err(format!("no mode is called {name}").into()),
        };
        let mut disk = match properties {
            Some(file) => DiskConfig::from_properties(Properties::load(file)?.disk_for(dir)?),
            None => DiskConfig::new("disk", RATES).mountpoint(dir),
        };
        if let Some(policy) = policy {
            disk = disk.policy(policy);
        }
        let scheduler = Scheduler::builder().disk(disk).build()?;
        let classes = Classes {
            reads: scheduler.add_class("reads", 1000)?,
            commits: scheduler.add_class("commits", 200)?,
            compaction: scheduler.add_class("compaction", 100)?,
            scheduler,
        };
        Ok(Self { name: name.into(), classes: Some(classes) })
    }

    /// Makes what this thread does that of a reader.
    pub(crate) fn enter_reads(&self) -> Option<Entered> {
        self.classes.as_ref().map(|classes| classes.reads.enter())
    }

    /// Makes what this thread does that of a writer.
    pub(crate) fn enter_commits(&self) -> Option<Entered> {
        self.classes.as_ref().map(|classes| classes.commits.enter())
    }
}
