//! What a job file says, once read, checked and resolved.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use forebay_core::{DISCARD_STEP_NANOS, DiskModel, GroupConfig, IoGroup, Limits, Policy, StepMax};
use serde::Deserialize;

/// The jobs of a run and the priority classes that they run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// The jobs, in the order of the file; at least one.
    pub jobs: Vec<Job>,
    /// The priority classes: first those of the sched-groups file, then one for every job that
    /// names no class, called as the job is.
    pub classes: Vec<ClassSpec>,
    /// The groups of classes: the entries of the sched-groups file that are parents of others.
    pub groups: Vec<GroupSpec>,
}

impl JobFile {
    /// Makes all groups and then all classes, each with the group it belongs to; what was made
    /// is in the order of [`JobFile::groups`] and [`JobFile::classes`].
    ///
    /// # Errors
    /// The first that `group` or `class` returns.
    pub fn make_classes<G, C, E>(
        &self,
        group: impl FnMut(&GroupSpec) -> Result<G, E>,
        mut class: impl FnMut(&ClassSpec, Option<&G>) -> Result<C, E>,
    ) -> Result<(Vec<G>, Vec<C>), E> {
        let groups = self.groups.iter().map(group).collect::<Result<Vec<_>, _>>()?;
        let group_of = |spec: &ClassSpec| groups.get(spec.parent?);
        let classes = self.classes.iter().map(|spec| class(spec, group_of(spec)));
        let classes = classes.collect::<Result<_, _>>()?;
        Ok((groups, classes))
    }
}

/// A priority class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    /// The name, unique among classes and groups.
    pub name: String,
    /// Its weight among its siblings, 1 to 10,000.
    pub shares: u32,
    /// The group it belongs to, an index into [`JobFile::groups`].
    pub parent: Option<usize>,
    /// The most it may transfer over all shards together, in bytes per second.
    pub bandwidth_max: Option<NonZeroU64>,
}

impl ClassSpec {
    /// Its upper limits, as a scheduler takes them.
    pub fn limits(&self) -> Limits {
        Limits { bytes_per_second: self.bandwidth_max.map(Into::into), operations_per_second: None }
    }
}

/// A group of priority classes, which share what the group is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// The name, unique among classes and groups.
    pub name: String,
    /// Its weight among the groups and the classes outside groups, 1 to 10,000.
    pub shares: u32,
}

/// One kind of load, run by some shards, each with a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name, unique in the file; fit to be part of a file name.
    pub name: String,
    /// What its requests do.
    pub kind: JobKind,
    /// The shards that run it, ascending, each once; at least one.
    pub shards: Vec<u32>,
    /// Bytes in each file before the run.
    pub file_size: u64,
    /// Files made for each shard before the run: none for [`JobKind::Cpu`], several for
    /// [`JobKind::Unlink`] and [`JobKind::Delete`], one for the others.
    pub files_count: u64,
    /// The class it runs in, an index into [`JobFile::classes`].
    pub class: usize,
    /// Fibers per shard, at least 1.
    pub parallelism: u32,
    /// When it begins, from the start of the run, warm-up included.
    pub start: Duration,
    /// When each fiber sends its next request.
    pub pace: Pace,
    /// The most requests that each shard sends; flushes of [`Job::fsync_every`] are not counted.
    pub limit: Option<NonZeroU64>,
    /// Bytes per request, a multiple of 512.
    pub reqsize: u32,
    /// The equal segments that a request's buffer is split into.
    pub iov_count: u32,
    /// How long a request of [`JobKind::Cpu`] keeps its thread busy.
    pub execution_time: Duration,
    /// After how many completed writes of a file a flush follows.
    pub fsync_every: Option<NonZeroU64>,
    /// How the file is opened and laid out.
    pub options: FileOptions,
    /// How it is cut where it is paced: see [`Job::in_steps`]. Job files do not have it.
    pub steps: Option<StepSize>,
}

/// The hole at the end of each [extent](FileOptions::extent_size), in bytes.
pub const HOLE: u64 = 4096;

impl Job {
    /// The job as it runs on a disk: where it is [paced](FileOptions::paced), in steps that are cut
    /// as those of the library's deleter, from the extents that files were laid out in, at the
    /// same bytes per second. A file that was not laid out in extents is taken for one. No step
    /// costs more by `model` than may wait in the disk under `policy`.
    #[must_use]
    pub fn in_steps(&self, model: &DiskModel, policy: Policy) -> Self {
        if self.kind != JobKind::Delete || !self.options.paced {
            return self.clone();
        }
        let policy = if policy == Policy::Unlimited { Policy::pace_window() } else { policy };
        let goal = IoGroup::new(GroupConfig::new(model.clone(), policy)).effective_goal();
        let most = StepMax::at_rate(goal, DISCARD_STEP_NANOS, self.bytes_per_second(), None);
        Self { steps: Some(StepSize { most, model: model.clone() }), ..self.clone() }
    }

    /// What all fibers of a shard ask for, in an open loop.
    fn bytes_per_second(&self) -> Option<u64> {
        let Pace::Open(rate) = self.pace else { return None };
        let of_fiber = u64::from(rate.rps.get()) * u64::from(rate.batch.get());
        Some(of_fiber.saturating_mul(self.parallelism.into()).saturating_mul(self.reqsize.into()))
    }

    /// The most files that each shard deletes: then nothing is left.
    pub(crate) fn deletions(&self) -> Option<u64> {
        self.kind.deletes().then_some(self.files_count)
    }
}

/// How large the steps of a [paced](FileOptions::paced) job are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSize {
    /// What a step may have at most.
    pub most: StepMax,
    /// What it costs.
    pub model: DiskModel,
}

/// What the requests of a job do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// Read the file from its beginning to its end, again and again.
    SeqRead,
    /// Write the file from its beginning to its end, again and again.
    #[serde(alias = "seqwrite")]
    Overwrite,
    /// Read at random places.
    RandRead,
    /// Write at random places.
    RandWrite,
    /// Write behind the end of the file.
    Append,
    /// Make the file durable.
    Fsync,
    /// Remove one file.
    Unlink,
    /// Give files back to the disk in steps of the request's size: each is punched out of a file,
    /// from its end to its beginning and then of the next, and a flush follows, after which the
    /// file system has told the disk. Discard jobs (`type: discard`).
    #[serde(rename = "discard")]
    Delete,
    /// Keep the thread busy.
    Cpu,
    /// Give back what was written longest ago, where another job of the same file writes it from
    /// its beginning to its end: half of the file away. Job files do not have it.
    #[serde(skip)]
    Discard,
}

impl JobKind {
    /// Whether the requests move bytes from or to the job's file.
    pub fn transfers(self) -> bool {
        self.writes() || matches!(self, Self::SeqRead | Self::RandRead)
    }

    /// Whether the requests delete files that were made for it, or parts of them.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Unlink | Self::Delete)
    }

    /// Whether the requests write the job's file.
    pub fn writes(self) -> bool {
        matches!(self, Self::Overwrite | Self::RandWrite | Self::Append)
    }
}

/// When a fiber sends its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Once the last one has completed, and perhaps a while later: a closed loop.
    Closed(Think),
    /// At given times, however long requests take: an open loop.
    Open(Rate),
}

/// The pauses of a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// How long a pause lasts; zero for no pauses.
    pub time: Duration,
    /// How long a phase without pauses lasts, before one pause follows for all fibers; zero for a
    /// pause of each fiber after each of its requests.
    pub after: Duration,
}

/// The times of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Ticks of each fiber per second.
    pub rps: NonZeroU32,
    /// Requests sent together at each tick.
    pub batch: NonZeroU32,
    /// How the ticks of a fiber are spaced.
    pub gaps: Gaps,
    /// Whether a fiber skips the ticks that it misses while it waits, and its latencies count from
    /// when a request is sent, as io_tester does it: a stall is then seen by no more requests than
    /// there are fibers. To repeat what was measured so; job files do not have it.
    pub skips_missed: bool,
}

/// How the ticks of a fiber are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gaps {
    /// All gaps are the same.
    #[default]
    Uniform,
    /// A Poisson process: gaps are random and independent, arrivals come in bunches.
    Poisson,
}

/// How a job's file is opened and laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Whether each write returns only when it is durable (`O_DSYNC`).
    pub dsync: bool,
    /// Allocate blocks for the whole file before it is filled.
    pub fallocate: bool,
    /// The extent size asked of the filesystem, in bytes; the file's size if not given.
    pub extent_allocation_size_hint: Option<u64>,
    /// To how many bytes a growing file is extended ahead of its writes at first, and to twice its
    /// length each time after; not at all if not given.
    pub sloppy_size_hint: Option<u64>,
    /// The extents in which a file that is to be deleted lies on the disk, in bytes: the last
    /// [`HOLE`] bytes of each are a hole. As the file system likes if not given.
    pub extent_size: Option<u64>,
    /// Whether the steps of [`JobKind::Delete`] are cut to what costs the disk little: see
    /// [`Job::in_steps`].
    pub paced: bool,
}
