//! Job files: which load a run consists of.
//!
//! The format is that of Seastar's io_tester, so that its files run unchanged: a YAML list of
//! jobs.
//!
//! ```yaml
//! - name: reads            # part of the file names, and the class unless `class` is given
//!   type: randread         # seqread, overwrite (or seqwrite), randread, randwrite, append,
//!                          #   fsync, unlink, discard, cpu
//!   shards: all            # or a list such as [0, 2]
//!   data_size: 1GB         # over all shards of the job, see below
//!   files_count: 10        # files per shard, for unlink and discard only
//!   shard_info:            # what each shard does
//!     parallelism: 10      # fibers
//!     rps: 100             # ticks per second and fiber; without it a closed loop
//!     batch: 1             # requests sent together at each tick
//!     limit: 100000        # requests per shard
//!     reqsize: 4kB         # a multiple of 512 bytes
//!     shares: 100          # weight of the class, 1 to 10000; or
//!     class: query         #   another job's class, or one of the sched-groups file
//!     bandwidth: 100MB     # cap of the class in bytes per second, over all shards
//!     think_time: 1ms      # closed loop: a pause after each request, or
//!     think_after: 10ms    #   a pause of all fibers after each phase of this length
//!     execution_time: 1ms  # for cpu: how long a request keeps the thread busy
//!     vectorized: true     # split buffers into
//!     iov_count: 4         #   this many equal segments
//!   options:
//!     dsync: false         # O_DSYNC
//!     pause_distribution: uniform  # or poisson: how the ticks of a fiber are spaced
//!     extent_allocation_size_hint: 32MB
//!     sloppy_size_hint: 1MB
//!     fallocate: false
//!     sleep_type: lowres   # or steady, busyloop: read and of no effect
//!     fsync_every: 100     # a flush after this many completed writes
//!     extent_size: 1MB     # for unlink and discard: the extents that files lie in
//!     paced: true          # for discard: steps that cost the disk little
//! ```
//!
//! Sizes are powers of 1024, whatever their units are called. Defaults are those of the original:
//! `reqsize: 4kB`, `shares: 10`, `execution_time: 1ms`, `data_size` 1 GiB on each shard (none for
//! `append` and `fsync`). A given `data_size` is divided by the number of the job's shards, and
//! the part rounded up to 1 MiB; for `unlink` that part is divided by `files_count` and rounded
//! up again.
//!
//! `fsync` and `fsync_every` are forebay's own. A job of type `fsync` flushes its own file, one
//! flush at a time.
//!
//! So are `discard`, `extent_size` and `paced`. A job of type `discard` punches its files away,
//! `reqsize` bytes with each request, from the end of one file to its beginning and then of the
//! next, and flushes after each: `rps: 16` and `reqsize: 32MB` are 512 MiB per second for each
//! fiber. With `paced: true` the requests are cut into steps that cost the disk little, at the same
//! bytes per second.
//!
//! What differs from the original: an unknown key is an error, and so is a job that would do
//! nothing (`parallelism` is not given) or not what it says (`rps` with `think_time`, `batch`
//! without `rps`, both `shares` and `class`).
//!
//! A sched-groups file names classes apart from jobs:
//!
//! ```yaml
//! - name: query
//!   shares: 1000
//! - name: maintenance   # a group of classes, since it is the parent of one
//!   shares: 100
//! - name: compaction
//!   shares: 200         # among the classes of its group
//!   parent: maintenance
//! ```

mod checks;
mod classes;
mod model;
mod raw;

use forebay_config::{ConfigError, Located, Position, Source};

pub use model::{
    ClassSpec, FileOptions, Gaps, GroupSpec, HOLE, Job, JobFile, JobKind, Pace, Rate, StepSize,
    Think,
};

use checks::Checks;
use classes::Classes;
use raw::{RawGroup, RawJob};

impl JobFile {
    /// Reads the job file `jobs` and, if there is one, the sched-groups file, for a run with
    /// `shard_count` shards.
    ///
    /// # Errors
    /// A file is not of the format described for [this module](self), or does not fit the other
    /// or the number of shards.
    pub fn parse(
        jobs: &Source<'_>,
        sched_groups: Option<&Source<'_>>,
        shard_count: u32,
    ) -> Result<Self, ConfigError> {
        let jobs = &jobs.with_optional(&["options"]);
        let raw_jobs: Vec<Located<RawJob>> = jobs.parse()?;
        if raw_jobs.is_empty() {
            return Err(jobs.error(Position::default(), "there is no job; add one"));
        }
        let mut classes = Classes::default();
        if let Some(source) = sched_groups {
            let entries: Vec<RawGroup> = source.parse()?;
            classes.add_entries(source, &entries)?;
        }
        classes.add_jobs(jobs, &raw_jobs)?;
        let checks = Checks { source: jobs, shard_count };
        let checked = raw_jobs
            .iter()
            .map(|raw| checks.job(raw, classes.of_job(jobs, &raw.value)?))
            .collect::<Result<_, ConfigError>>()?;
        Ok(Self { jobs: checked, classes: classes.classes, groups: classes.groups })
    }
}
