//! Measured surfaces as fio writes them for diskplorer: JSON+, one group of jobs a load.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use forebay_config::{ConfigError, Position};
use serde::Deserialize;

use super::grid::{Cell, Grid, LATENCY_MAX_US};

/// The longest file that is read, in bytes: histograms make some 100 KiB of each load.
const BYTES_MAX: u64 = 1 << 30;
/// The part of a load that the disk must have carried.
const CARRIED_MIN: f64 = 0.97;
/// The largest loads: far above any disk.
const BANDWIDTH_MAX: f64 = 1e15;
const IOPS_MAX: f64 = 1e12;
/// So many characters of a name are quoted.
const QUOTED_MAX: usize = 80;

/// What fio prints, as far as it is looked at.
#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    read: Reads,
    #[serde(default)]
    write: Writes,
}

#[derive(Default, Deserialize)]
struct Reads {
    #[serde(default)]
    iops: f64,
    #[serde(default)]
    clat_ns: Latencies,
}

#[derive(Default, Deserialize)]
struct Writes {
    #[serde(default)]
    bw_bytes: f64,
}

#[derive(Default, Deserialize)]
struct Latencies {
    percentile: Option<Percentiles>,
}

/// In nanoseconds.
#[derive(Clone, Copy, Deserialize)]
struct Percentiles {
    #[serde(rename = "50.000000")]
    p50: f64,
    #[serde(rename = "95.000000")]
    p95: f64,
    #[serde(rename = "99.000000")]
    p99: Option<f64>,
    #[serde(rename = "99.900000")]
    p999: Option<f64>,
}

impl Grid {
    /// Reads the surface in the file at `path`: fio's JSON if the name ends in `.json`, else CSV.
    /// A gigabyte of the first and a megabyte of the second at most.
    ///
    /// # Errors
    /// The file cannot be read or is too long; else those of [`Grid::parse_csv`] and
    /// [`Grid::parse_fio`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        if path.extension().is_none_or(|extension| extension != "json") {
            return Self::parse_csv(&name, &forebay_config::read(path)?);
        }
        let file = File::open(path)
            .map_err(|error| ConfigError::whole_file(&name, format!("cannot be read: {error}")))?;
        Self::parse_fio(&name, BufReader::new(file.take(BYTES_MAX)))
    }

    /// Reads what fio wrote for diskplorer into the file called `file`: JSON whose jobs are called
    /// `job(r_idx=0,w_idx=0,write_bw=0,r_iops=0)`, one for each load. Other jobs are skipped. A
    /// load of which the disk carried less than 97 % is one that it missed.
    ///
    /// # Errors
    /// The text is no such JSON, a figure is out of bounds, a load is given twice, or there are
    /// more than 1024 of them.
    pub fn parse_fio(file: &str, text: impl Read) -> Result<Self, ConfigError> {
        let output: Output = serde_json::from_reader(text).map_err(|error| {
            let at = Position { line: error.line() as u64, column: error.column() as u64 };
            let error = error.to_string();
            let what = error.split(" at line ").next().unwrap_or(&error);
            let message = format!("{what}; expected what fio writes with --output-format=json+");
            ConfigError::at(file, at, None, message)
        })?;
        let mut grid = Self { cells: Vec::new(), missed: Vec::new() };
        for job in &output.jobs {
            let fail = |message: &str| {
                let name = quoted(&job.jobname);
                ConfigError::whole_file(file, format!("job `{name}`: {message}"))
            };
            let Some(rest) = job.jobname.strip_prefix("job(") else { continue };
            let at = load(rest).ok_or_else(|| {
                fail("expected job(r_idx=N,w_idx=N,write_bw=BYTES,r_iops=N) with figures of a disk")
            })?;
            let is_new = grid.check_new(at, "run fio with group_reporting");
            let cell = is_new.and_then(|()| job.cell(at));
            grid.push(at, cell.map_err(|message| fail(&message))?);
        }
        if grid.loads().next().is_none() {
            let message = "no job is called job(r_idx=...; name the result file of diskplorer.py";
            return Err(ConfigError::whole_file(file, message));
        }
        Ok(grid)
    }
}

impl Job {
    /// What was measured under the load `at`, if the disk carried it.
    fn cell(&self, at: (f64, f64)) -> Result<Option<Cell>, String> {
        let carried =
            self.write.bw_bytes >= CARRIED_MIN * at.0 && self.read.iops >= CARRIED_MIN * at.1;
        let Some(Percentiles { p50, p95, p99, p999 }) = self.read.clat_ns.percentile else {
            return Ok(None);
        };
        if !carried {
            return Ok(None);
        }
        let known = [Some(p50), Some(p95), p99, p999];
        let mut least = f64::MIN_POSITIVE;
        for nanos in known.into_iter().flatten() {
            if !(least..=LATENCY_MAX_US * 1e3).contains(&nanos) {
                return Err(format!(
                    "a read percentile of {nanos} ns; expected more than 0, rising, to a minute"
                ));
            }
            least = nanos;
        }
        let us = |nanos: f64| nanos / 1e3;
        Ok(Some(Cell {
            write_bandwidth: at.0,
            read_iops: at.1,
            p50_us: us(p50),
            p95_us: us(p95),
            p99_us: p99.map(us),
            p999_us: p999.map(us),
            clipped: false,
        }))
    }
}

/// The load in what follows `job(`.
fn load(rest: &str) -> Option<(f64, f64)> {
    let (inside, _) = rest.split_once(')')?;
    let figure = |name: &str, max: f64| {
        let mut fields = inside.split(',').filter_map(|field| field.split_once('='));
        let (_, digits) = fields.find(|(key, _)| key.trim() == name)?;
        let value = digits.parse::<u64>().ok()? as f64;
        (value <= max).then_some(value)
    };
    Some((figure("write_bw", BANDWIDTH_MAX)?, figure("r_iops", IOPS_MAX)?))
}

fn quoted(text: &str) -> String {
    let text: String = text.chars().take(QUOTED_MAX).collect();
    text.escape_debug().to_string()
}
