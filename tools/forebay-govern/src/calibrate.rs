//! Calibration: finds the setting that meets a goal, with a load of its own on an idle disk.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use forebay_block::Machine;

use crate::error::GovernError;
use crate::governed::{Governed, Plan, QosWrites};
use crate::qos::QosPoint;
use crate::search::{Measured, Search, grid};
use crate::state_file::STATE_DIRECTORY;
use crate::tracer::Tracer;

/// The weights of the goal's reads, of the writer, and of the sequential reader.
const WEIGHTS: [(&str, u32); 3] = [("reads", 1000), ("writer", 100), ("reader", 50)];
/// The goal's reads are one in this many of the disk's random reads per second.
const READS_PART: u64 = 8;
const STREAMS_MAX: u64 = 40;
/// The reads per second of one stream.
const STREAM_RATE: u64 = 25;
/// How long a setting is measured.
const WINDOW: Duration = Duration::from_secs(5);
/// How long a setting takes to have its effect.
const SETTLE: Duration = Duration::from_secs(1);
/// The longest time for the disk to work off the queue of an earlier setting.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long the load takes to write its data and to begin.
const BEGIN: Duration = Duration::from_secs(4);
/// The time between two checks of the load.
const LOOK: Duration = Duration::from_millis(20);
/// The longest duration of a calibration.
const BUDGET: Duration = Duration::from_secs(285);

/// The load of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrationLoad {
    /// The program whose command `bench` makes the load.
    pub program: PathBuf,
    /// The options of `bench` that name the disk and its properties.
    pub place: Vec<OsString>,
    /// Whether `place` names a device, of which each job uses a part.
    pub is_device: bool,
}

/// The result of a calibration.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The search with all measurements.
    pub search: Search,
    /// Its duration.
    pub took: Duration,
    /// Whether the time was up before the search had ended.
    pub is_cut_short: bool,
    /// The writes of `io.cost.qos`, which held up the disk.
    pub writes: QosWrites,
}

/// Measures settings until the best is found, or with `all_of_grid` each setting once. Then it restores
/// everything.
///
/// It ends soon after `is_ended` returns true. `say` gets a line for each measurement.
///
/// # Errors
/// A requirement is missing, the load failed, or it was ended.
pub fn calibrate(
    plan: &Plan,
    machine: &Machine,
    load: &CalibrationLoad,
    all_of_grid: bool,
    is_ended: &dyn Fn() -> bool,
    say: &mut dyn FnMut(String),
) -> Result<Calibrated, GovernError> {
    let mut governed = Governed::begin(plan, machine, say)?;
    let done = Run::begin(&mut governed, load, is_ended)
        .and_then(|mut run| if all_of_grid { run.measure_grid(say) } else { run.search(say) });
    governed.end(done)
}

/// A running calibration.
struct Run<'a, 'b> {
    governed: &'a mut Governed<'b>,
    tracer: Tracer,
    cgroup: PathBuf,
    jobs: Vec<Job>,
    is_ended: &'a dyn Fn() -> bool,
    began: Instant,
    /// The latency of the last measurement's reads, which may still be in the disk.
    left: Duration,
}

/// A process that makes load. It ends when this value is dropped, and with the thread that started it.
struct Job {
    name: &'static str,
    child: Child,
    file: PathBuf,
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for file in [&self.file, &self.file.with_extension("err")] {
            let _ = fs::remove_file(file);
        }
    }
}

impl<'a, 'b> Run<'a, 'b> {
    fn begin(
        governed: &'a mut Governed<'b>,
        load: &CalibrationLoad,
        is_ended: &'a dyn Fn() -> bool,
    ) -> Result<Self, GovernError> {
        let began = Instant::now();
        let first = QosPoint { rate: 80, bound: None };
        governed.turn_on(first)?;
        let tracer = Tracer::begin(&mut governed.changes, governed.machine, &governed.plan.disk)?;
        let cgroup = governed.root.join(format!("governed-{}", governed.plan.disk.name));
        governed.changes.make(&cgroup, true)?;
        let mut jobs = Vec::new();
        for (index, (name, weight)) in WEIGHTS.into_iter().enumerate() {
            let own = cgroup.join(name);
            governed.changes.make(&own, true)?;
            governed.set_weight(&own, weight)?;
            let state = Path::new(STATE_DIRECTORY);
            jobs.push(Job::start(governed.plan, load, (index, name), &own, state)?);
        }
        let left = Duration::ZERO;
        let mut run = Self { governed, tracer, cgroup, jobs, is_ended, began, left };
        run.watch(BEGIN)?;
        Ok(run)
    }

    fn search(&mut self, say: &mut dyn FnMut(String)) -> Result<Calibrated, GovernError> {
        let mut search = Search::default();
        while let Some(point) = search.next() {
            if self.began.elapsed() + SETTLE + WINDOW > BUDGET {
                return Ok(self.calibrated(search, true));
            }
            self.measure(&mut search, point, say)?;
        }
        Ok(self.calibrated(search, false))
    }

    fn measure_grid(&mut self, say: &mut dyn FnMut(String)) -> Result<Calibrated, GovernError> {
        let mut search = Search::default();
        for point in grid() {
            self.measure(&mut search, point, say)?;
        }
        Ok(self.calibrated(search, false))
    }

    fn calibrated(&self, search: Search, is_cut_short: bool) -> Calibrated {
        let (took, writes) = (self.began.elapsed(), self.governed.writes);
        Calibrated { search, took, is_cut_short, writes }
    }

    fn measure(
        &mut self,
        search: &mut Search,
        point: QosPoint,
        say: &mut dyn FnMut(String),
    ) -> Result<(), GovernError> {
        self.governed.set(point)?;
        self.watch(SETTLE + self.left.min(DRAIN_MAX))?;
        let (before, began) = (self.bytes(), Instant::now());
        let mut latencies = self.watch(WINDOW)?;
        let seconds = began.elapsed().as_secs_f64();
        let after = self.bytes();
        let rate = |index: usize| (after[index].saturating_sub(before[index])) as f64 / seconds;
        let work = self.governed.plan.costs.disk_time([rate(0), rate(1)]);
        let goal = self.governed.plan.goal;
        // Without a single completed read the latency is at least this.
        let latency = percentile(&mut latencies, goal.permille()).unwrap_or(DRAIN_MAX);
        self.left = if latency > goal.latency() { latency } else { Duration::ZERO };
        let part = latency.as_secs_f64() / goal.latency().as_secs_f64();
        let took = latency.as_secs_f64() * 1e3;
        say(format!("{point}: {took:.2} ms, others {:.1} % of disk time", 100.0 * work));
        search.add(point, Measured { latency: part, work });
        Ok(())
    }

    /// Lets the load run for `time`. Returns the latencies of its reads.
    fn watch(&mut self, time: Duration) -> Result<Vec<Duration>, GovernError> {
        let began = Instant::now();
        let mut latencies = Vec::new();
        let name = self.cgroup.strip_prefix(&self.governed.root).unwrap_or(&self.cgroup);
        let reads = name.join("reads");
        let reads = reads.to_string_lossy();
        while began.elapsed() < time {
            if (self.is_ended)() {
                return Err(GovernError::Interrupted);
            }
            for job in &mut self.jobs {
                job.check()?;
            }
            thread::sleep(LOOK);
            self.tracer.read(|done| {
                if done.cgroup == reads && done.is_read {
                    latencies.push(done.latency);
                }
            })?;
        }
        Ok(latencies)
    }

    /// The bytes that the sequential reader has read and the writer has written so far.
    fn bytes(&self) -> [u64; 2] {
        let of = |name: &str, key: &str| {
            let stat = fs::read_to_string(self.cgroup.join(name).join("io.stat"));
            let number = format!("{} ", self.governed.plan.disk.number);
            let stat = stat.unwrap_or_default();
            let line = stat.lines().find(|line| line.starts_with(&number)).unwrap_or_default();
            let value = line.split(' ').find_map(|word| word.strip_prefix(key));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        [of("reader", "rbytes="), of("writer", "wbytes=")]
    }
}

/// The percentile in thousandths. `None` without values.
pub(crate) fn percentile(latencies: &mut [Duration], permille: u32) -> Option<Duration> {
    let last = latencies.len().checked_sub(1)?;
    let index = (latencies.len() * permille as usize).div_ceil(1000).saturating_sub(1).min(last);
    Some(*latencies.select_nth_unstable(index).1)
}

impl Job {
    /// Its files are in `state`, where nobody else can place a link in advance, and where those of a
    /// governor that was killed are the next one's.
    fn start(
        plan: &Plan,
        load: &CalibrationLoad,
        (index, name): (usize, &'static str),
        cgroup: &Path,
        state: &Path,
    ) -> Result<Self, GovernError> {
        let file = state.join(format!("{}.{name}.yaml", plan.disk.name));
        fs::write(&file, yaml(plan, name)).map_err(GovernError::at(&file))?;
        let mut command = Command::new(&load.program);
        command.arg("bench").arg(&file).args(&load.place);
        command.args(["--policy", "none", "--compare", "off", "--format", "json", "--shards", "1"]);
        command.args(["--warmup", "0s", "--duration", &format!("{}s", 2 * BUDGET.as_secs())]);
        command.args(["--end-with", &std::process::id().to_string()]);
        if load.is_device {
            command.args(["--share-device", &format!("{}/{}", index + 1, WEIGHTS.len())]);
        }
        let errors =
            fs::File::create(file.with_extension("err")).map_err(GovernError::at(&file))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let child = command.spawn().map_err(GovernError::at(&load.program))?;
        let pid = child.id().to_string();
        let job = Self { name, child, file };
        let procs = cgroup.join("cgroup.procs");
        fs::write(&procs, pid).map_err(GovernError::at(procs))?;
        Ok(job)
    }

    /// Fails if the process has ended.
    fn check(&mut self) -> Result<(), GovernError> {
        if let Ok(None) = self.child.try_wait() {
            return Ok(());
        }
        let said = fs::read_to_string(self.file.with_extension("err")).unwrap_or_default();
        let said = said.trim().trim_start_matches("error: ");
        Err(GovernError::Failed(format!("the load `{}` has ended: {said}", self.name)))
    }
}

/// The text of the job file for one process.
fn yaml(plan: &Plan, name: &str) -> String {
    let [iops, _] = plan.costs.iops;
    let (kind, streams, size, more, options) = match name {
        "reads" => {
            let rate = (iops / READS_PART).max(1);
            let streams = (rate / STREAM_RATE).clamp(4, STREAMS_MAX);
            let rps = format!(", rps: {}", rate.div_ceil(streams));
            ("randread", streams, "4kB", rps, "  options: {pause_distribution: poisson}\n")
        }
        "writer" => ("randwrite", 64, "128kB", String::new(), ""),
        _ => ("seqread", 8, "128kB", String::new(), ""),
    };
    format!(
        "- name: {name}\n  type: {kind}\n  shards: [0]\n  data_size: 16MB\n  shard_info: \
         {{parallelism: {streams}, reqsize: {size}, shares: 100{more}}}\n{options}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::GovernedDisk;
    use crate::qos::DiskCosts;

    #[test]
    fn the_files_of_a_job_are_in_the_directory_of_the_state_and_end_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let [cgroup, state] = ["cgroup", "state"].map(|name| dir.path().join(name));
        [&cgroup, &state].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let costs = DiskCosts {
            model: String::new(),
            half_period: Duration::from_millis(1),
            bandwidth: [1, 1],
            iops: [1, 1],
        };
        let disk = GovernedDisk { name: "sda".into(), number: "8:0".into() };
        let plan = Plan { disk, goal: "p95=2ms".parse().unwrap(), costs };
        let load = CalibrationLoad { program: "true".into(), place: Vec::new(), is_device: false };
        let job = Job::start(&plan, &load, (0, "reads"), &cgroup, &state).unwrap();
        let names = || fs::read_dir(&state).unwrap().count();
        assert_eq!((job.file.parent(), names()), (Some(state.as_path()), 2));
        drop(job);
        assert_eq!(names(), 0);
    }
}
