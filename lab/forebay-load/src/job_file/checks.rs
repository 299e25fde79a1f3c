//! Checks an entry of a job file, and resolves its defaults.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use forebay_config::{ConfigError, Located, Position, Source};

use super::model::{FileOptions, HOLE, Job, JobKind, Pace, Rate, Think};
use super::raw::{RawJob, RawShardInfo, RawShards};

const MIB: u64 = 1 << 20;
const DATA_SIZE_DEFAULT: u64 = 1 << 30;
const REQSIZE_DEFAULT: u64 = 4096;
const REQSIZE_MAX: u64 = 1 << 30;
const SECTOR: u64 = 512;
const PAGE: u64 = 4096;
const EXECUTION_TIME_DEFAULT: Duration = Duration::from_millis(1);
/// Job names become part of file names, which have at most 255 bytes.
const NAME_BYTES_MAX: usize = 128;
const PARALLELISM_MAX: u64 = 65_536;
const RPS_MAX: u64 = 1_000_000;
const BATCH_MAX: u64 = 65_536;
const IOV_COUNT_MAX: u64 = 1024;
const FILES_COUNT_MAX: u64 = 1_000_000;
/// Of one file that is laid out in extents: each is a call before the run.
const EXTENTS_MAX: u64 = 65_536;

/// What jobs are checked against.
pub(super) struct Checks<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) shard_count: u32,
}

impl Checks<'_> {
    /// The job that an entry describes, in the class number `class`.
    pub(super) fn job(&self, entry: &Located<RawJob>, class: usize) -> Result<Job, ConfigError> {
        let (raw, kind) = (&entry.value, entry.value.kind.value);
        self.name(&raw.name)?;
        let none = RawShardInfo::default();
        let info = raw.shard_info.as_ref().map_or(&none, |info| &info.value);
        let info_at = raw.shard_info.as_ref().map_or(entry.at, |info| info.at);
        let shards = self.shards(&raw.shards)?;
        let files_count = self.files_count(raw, entry.at)?;
        let file_size = file_size(raw, shards.len() as u64, files_count);
        let reqsize = self.reqsize(raw, info, file_size)?;
        let parallelism = self.parallelism(info, info_at, kind)?;
        let pace = self.pace(info, raw)?;
        Ok(Job {
            name: raw.name.value.clone(),
            kind,
            shards,
            file_size,
            files_count,
            class,
            parallelism,
            start: info.start.unwrap_or_default().0,
            pace,
            limit: self.at_least_one(info.limit.as_ref(), "requests")?,
            reqsize,
            iov_count: self.iov_count(info, reqsize)?,
            execution_time: self.execution_time(info, kind)?,
            fsync_every: self.fsync_every(raw)?,
            options: FileOptions {
                dsync: raw.options.dsync,
                fallocate: raw.options.fallocate,
                extent_allocation_size_hint: raw
                    .options
                    .extent_allocation_size_hint
                    .or(raw.extent_allocation_size_hint)
                    .map(|size| size.0),
                sloppy_size_hint: raw.options.sloppy_size_hint.map(|size| size.0),
                extent_size: self.extent_size(raw, file_size)?,
                paced: self.paced(raw)?,
            },
            steps: None,
        })
    }

    fn name(&self, name: &Located<String>) -> Result<(), ConfigError> {
        let text = &name.value;
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            let message =
                format!("a name has 1 to {NAME_BYTES_MAX} bytes; this has {}", text.len());
            return Err(self.error(name.at, message));
        }
        if text.contains(|c: char| c == '/' || c.is_control()) {
            let message = "the name becomes part of file names; \
                           write it without `/` and control characters";
            return Err(self.error(name.at, message));
        }
        Ok(())
    }

    fn shards(&self, given: &Located<RawShards>) -> Result<Vec<u32>, ConfigError> {
        let RawShards::List(listed) = &given.value else {
            return Ok((0..self.shard_count).collect());
        };
        if listed.is_empty() {
            let message = "no shard would run the job; list one, or write `all`";
            return Err(self.error(given.at, message));
        }
        let mut shards = Vec::with_capacity(listed.len());
        for &Located { value: shard, at } in listed {
            if shard >= u64::from(self.shard_count) {
                let message = format!(
                    "shard {shard} does not exist, the run has shards 0 to {}; \
                     remove it, or run with more shards",
                    self.shard_count.saturating_sub(1)
                );
                return Err(self.error(at, message));
            }
            shards.push(shard as u32);
        }
        shards.sort_unstable();
        if let Some(pair) = shards.array_windows().find(|[a, b]| a == b) {
            let message = format!("shard {} is listed twice; remove one", pair[0]);
            return Err(self.error(given.at, message));
        }
        Ok(shards)
    }

    fn files_count(&self, raw: &RawJob, at: Position) -> Result<u64, ConfigError> {
        match (raw.kind.value, &raw.files_count) {
            (JobKind::Cpu, _) => Ok(0),
            (kind, None) if kind.deletes() => {
                let job = if kind == JobKind::Unlink { "an unlink" } else { "a discard" };
                let message = format!(
                    "{job} job needs files to remove; \
                     add `files_count`, their number on each shard"
                );
                Err(self.error(at, message))
            }
            (kind, Some(given)) if kind.deletes() => {
                self.source.number(given, 1..=FILES_COUNT_MAX, "files")
            }
            _ => Ok(1),
        }
    }

    fn reqsize(
        &self,
        raw: &RawJob,
        info: &RawShardInfo,
        file_size: u64,
    ) -> Result<u32, ConfigError> {
        let kind = raw.kind.value;
        let bytes = info.reqsize.map_or(REQSIZE_DEFAULT, |given| given.value.0);
        let at = info.reqsize.map_or(raw.kind.at, |given| given.at);
        if kind == JobKind::Delete && (info.reqsize.is_none() || !bytes.is_multiple_of(HOLE)) {
            let message = format!(
                "a discard job needs the size of its steps; \
                 add `reqsize`, a multiple of {HOLE} bytes such as 32MB"
            );
            return Err(self.error(at, message));
        }
        if !(SECTOR..=REQSIZE_MAX).contains(&bytes) || !bytes.is_multiple_of(SECTOR) {
            let message = format!(
                "requests of {bytes} bytes; expected a multiple of {SECTOR} up to {REQSIZE_MAX}"
            );
            return Err(self.error(at, message));
        }
        if kind.transfers() && kind != JobKind::Append && bytes > file_size {
            let message = format!(
                "requests of {bytes} bytes do not fit into the file of {file_size} bytes \
                 on each shard; lower `reqsize` or raise `data_size`"
            );
            return Err(self.error(at, message));
        }
        Ok(bytes as u32)
    }

    fn parallelism(
        &self,
        info: &RawShardInfo,
        info_at: Position,
        kind: JobKind,
    ) -> Result<u32, ConfigError> {
        let Some(given) = &info.parallelism else {
            let message = "`parallelism` is not given, and without fibers the job would do \
                           nothing; add `parallelism: 1` or more";
            return Err(self.error(info_at, message));
        };
        if given.value == 0 {
            let message = "without fibers the job would do nothing; write 1 or more";
            return Err(self.error(given.at, message));
        }
        if kind == JobKind::Fsync && given.value > 1 {
            let message = "a file has one flush in flight; write 1";
            return Err(self.error(given.at, message));
        }
        self.source.number(given, 1..=PARALLELISM_MAX, "fibers")
    }

    fn pace(&self, info: &RawShardInfo, raw: &RawJob) -> Result<Pace, ConfigError> {
        let rps =
            info.rps.as_ref().map_or(Ok(0), |rps| self.source.number(rps, 0..=RPS_MAX, "ticks"))?;
        // A file has at most one flush in flight.
        let batch_max = if raw.kind.value == JobKind::Fsync { 1 } else { BATCH_MAX };
        let batch = info.batch.as_ref();
        let batch =
            batch.map_or(Ok(1), |batch| self.source.number(batch, 1..=batch_max, "requests"))?;
        let (Some(rps), Some(batch)) = (NonZeroU32::new(rps), NonZeroU32::new(batch)) else {
            return self.think(info).map(Pace::Closed);
        };
        for pause in [info.think_time, info.think_after].into_iter().flatten() {
            if !pause.value.0.is_zero() {
                let message = "`rps` says when requests are sent, so there is no room for pauses; \
                               remove one of the two";
                return Err(self.error(pause.at, message));
            }
        }
        let gaps = raw.options.pause_distribution;
        Ok(Pace::Open(Rate { rps, batch, gaps, skips_missed: false }))
    }

    fn think(&self, info: &RawShardInfo) -> Result<Think, ConfigError> {
        if let Some(batch) = info.batch.filter(|batch| batch.value > 1) {
            let message = "batches belong to an open loop; add `rps` or remove `batch`";
            return Err(self.error(batch.at, message));
        }
        let time = info.think_time.unwrap_or_default().value.0;
        let after = info.think_after.unwrap_or_default();
        if time.is_zero() && !after.value.0.is_zero() {
            let message = "there is no pause; add `think_time`, or remove `think_after`";
            return Err(self.error(after.at, message));
        }
        Ok(Think { time, after: after.value.0 })
    }

    fn iov_count(&self, info: &RawShardInfo, reqsize: u32) -> Result<u32, ConfigError> {
        let Some(given) = info.iov_count.as_ref().filter(|given| given.value != 1) else {
            return Ok(1);
        };
        let count: u32 = self.source.number(given, 1..=IOV_COUNT_MAX, "segments")?;
        if !info.vectorized.is_some_and(|vectorized| vectorized.value) {
            let message = "`iov_count` splits buffers of vectored requests only; add `vectorized: \
                           true` or remove `iov_count`";
            return Err(self.error(given.at, message));
        }
        let unit = if u64::from(reqsize) < PAGE { SECTOR } else { PAGE };
        if !u64::from(reqsize).is_multiple_of(u64::from(count) * unit) {
            let message = format!(
                "{reqsize} bytes do not split into {count} equal segments of a multiple of \
                 {unit} bytes; change `iov_count` or `reqsize`"
            );
            return Err(self.error(given.at, message));
        }
        Ok(count)
    }

    fn execution_time(&self, info: &RawShardInfo, kind: JobKind) -> Result<Duration, ConfigError> {
        let Some(given) = info.execution_time else { return Ok(EXECUTION_TIME_DEFAULT) };
        if given.value.0.is_zero() && kind == JobKind::Cpu {
            return Err(self.error(given.at, "a request must take some time; write 1us or more"));
        }
        Ok(given.value.0)
    }

    fn extent_size(&self, raw: &RawJob, file_size: u64) -> Result<Option<u64>, ConfigError> {
        let Some(given) = raw.options.extent_size else { return Ok(None) };
        let bytes = given.value.0;
        let message = if !raw.kind.value.deletes() {
            String::from(
                "`extent_size` is for jobs that delete files; remove it, or use unlink \
                          or discard",
            )
        } else if bytes <= HOLE || !bytes.is_multiple_of(HOLE) {
            format!("extents of {bytes} bytes; expected a multiple of {HOLE}, and more than that")
        } else if file_size / bytes > EXTENTS_MAX {
            format!(
                "{} extents in a file; at most {EXTENTS_MAX} are supported: raise `extent_size`",
                file_size / bytes
            )
        } else {
            return Ok(Some(bytes));
        };
        Err(self.error(given.at, message))
    }

    fn paced(&self, raw: &RawJob) -> Result<bool, ConfigError> {
        match raw.options.paced {
            Some(given) if raw.kind.value != JobKind::Delete => {
                let message = "only steps are paced; remove `paced`, or use a discard job";
                Err(self.error(given.at, message))
            }
            given => Ok(given.is_some_and(|given| given.value)),
        }
    }

    fn fsync_every(&self, raw: &RawJob) -> Result<Option<NonZeroU64>, ConfigError> {
        let given = raw.options.fsync_every.as_ref();
        if raw.kind.value == JobKind::Delete {
            let message = "a discard job already flushes after each step; remove `fsync_every`";
            let given = given.map(|given| self.error(given.at, message));
            return given.map_or(Ok(Some(NonZeroU64::MIN)), Err);
        }
        if let Some(given) = given.filter(|_| !raw.kind.value.writes()) {
            let message = "the job does not write; remove `fsync_every`, \
                           or use overwrite, randwrite or append";
            return Err(self.error(given.at, message));
        }
        self.at_least_one(given, "writes")
    }

    /// A number of `things` that may be left out, but not 0.
    fn at_least_one(
        &self,
        given: Option<&Located<u64>>,
        things: &str,
    ) -> Result<Option<NonZeroU64>, ConfigError> {
        given
            .map(|given| {
                let message = || format!("0 {things}; expected 1 or more, or remove the key");
                NonZeroU64::new(given.value).ok_or_else(|| self.error(given.at, message()))
            })
            .transpose()
    }

    fn error(&self, at: Position, message: impl Into<String>) -> ConfigError {
        self.source.error(at, message)
    }
}

/// Bytes in each of the `files_count` files that each of `shards` shards has.
fn file_size(raw: &RawJob, shards: u64, files_count: u64) -> u64 {
    let whole_mib = |bytes: u64| bytes.div_ceil(MIB).saturating_mul(MIB);
    let part = match (raw.kind.value, &raw.data_size) {
        (JobKind::Cpu, _) | (JobKind::Append | JobKind::Fsync, None) => 0,
        (_, None) => DATA_SIZE_DEFAULT,
        (_, Some(given)) => whole_mib(given.value.0 / shards.max(1)),
    };
    whole_mib(part.div_ceil(files_count.max(1)))
}
