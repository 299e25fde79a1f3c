//! Measured surfaces as fio writes them for diskplorer: JSON+, one group of jobs a load.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use forebay_config::{ConfigError, Position};
use serde::Deserialize;
use serde_json::Deserializer;

use super::carried::{Carried, Scales};
use super::csv::quoted;
use super::fio_job::{Job, Judged};
use super::grid::Grid;

/// The longest file that is read, in bytes: histograms make some 100 KiB of each load.
const BYTES_MAX: u64 = 1 << 30;
/// fio and programs around it may print this many lines before the JSON, each so long.
const LINES_BEFORE_MAX: u64 = 100;
const LINE_BYTES_MAX: u64 = 1 << 16;
/// What some programs put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The largest loads: far above any disk.
const BANDWIDTH_MAX: f64 = 1e15;
const IOPS_MAX: f64 = 1e12;

/// What fio prints, as far as it is looked at.
#[derive(Deserialize)]
struct Output {
    jobs: Vec<Job>,
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
    /// `job(r_idx=0,w_idx=0,write_bw=0,r_iops=0)`, one for each load. Other jobs, a byte order mark
    /// and lines before and after the JSON are skipped.
    ///
    /// A load is what the job carried (`iops` of reads, `bw_bytes` of writes), and what its name
    /// says where both differ by 5 % at most. A load of which the disk carried less than 97 % is
    /// one that it missed. [`Grid::remarks`] says where loads and sizes of requests are not as
    /// expected.
    ///
    /// # Errors
    /// The text is no such JSON, a figure is out of bounds, a load is given twice, a job that was
    /// carried has no median or no 95th percentile, or there are more than 1024 loads.
    pub fn parse_fio(file: &str, text: impl Read) -> Result<Self, ConfigError> {
        let output = output(file, BufReader::new(text))?;
        let fail = |job: &Job, message: &str| {
            let name = quoted(&job.jobname);
            ConfigError::whole_file(file, format!("job `{name}`: {message}"))
        };
        let mut jobs: Vec<(&Job, (f64, f64))> = Vec::new();
        for job in &output.jobs {
            let Some(rest) = job.jobname.strip_prefix("job(") else { continue };
            let at = load(rest).ok_or_else(|| {
                let expected =
                    "expected job(r_idx=N,w_idx=N,write_bw=BYTES,r_iops=N) with figures of a disk";
                fail(job, expected)
            })?;
            if jobs.iter().any(|&(_, other)| other == at) {
                return Err(fail(job, "this load was given before; run fio with group_reporting"));
            }
            jobs.push((job, at));
        }
        if jobs.is_empty() {
            let message = "no job is called job(r_idx=...; name the result file of diskplorer.py";
            return Err(ConfigError::whole_file(file, message));
        }
        let loads = jobs.iter().map(|&(job, at)| (at, job.carried()));
        let scales = Scales::of(&loads.collect::<Vec<_>>());
        let mut carried = Carried::default();
        let mut grid = Self::new(Vec::new(), Vec::new());
        for (job, at) in jobs {
            let judged = job.judge(at, &scales, &mut carried);
            let (at, cell) = match judged.map_err(|message| fail(job, &message))? {
                Judged::Cell(cell) => ((cell.write_bandwidth, cell.read_iops), Some(cell)),
                Judged::Missed(at) => (at, None),
                Judged::Unknown => continue,
            };
            // a job may carry what another one was to carry
            if grid.loads().all(|other| other != at) {
                grid.check_new(at, "").map_err(|message| fail(job, &message))?;
                grid.push(at, cell);
            }
        }
        grid.remarks = carried.remarks(&scales);
        Ok(grid)
    }
}

/// The JSON, without what stands around it.
fn output(file: &str, mut text: impl BufRead) -> Result<Output, ConfigError> {
    let unreadable =
        |error: io::Error| ConfigError::whole_file(file, format!("cannot be read: {error}"));
    let expected = "expected what fio writes with --output-format=json+";
    let Some(before) = lines_before(&mut text).map_err(unreadable)? else {
        let message = format!(
            "no line begins with `{{`; {expected}; save the file as UTF-8 if it is in UTF-16"
        );
        return Err(ConfigError::whole_file(file, message));
    };
    let mut outputs = Deserializer::from_reader(&mut text).into_iter::<Output>();
    let output = outputs.next().transpose().map_err(|error| {
        let line = before + error.line() as u64;
        let at = Position { line, column: error.column() as u64 };
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or(&error);
        ConfigError::at(file, at, None, format!("{what}; {expected}"))
    })?;
    drop(outputs);
    let output = output.ok_or_else(|| ConfigError::whole_file(file, expected))?;
    // the rest of the last line is no line of its own
    let mut rest = Vec::new();
    while text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut rest).map_err(unreadable)? > 0 {
        if rest.trim_ascii_start().starts_with(b"{") {
            let message = "there are two results of fio in it; keep one of them";
            return Err(ConfigError::whole_file(file, message));
        }
        rest.clear();
    }
    Ok(output)
}

/// Skips what stands before the JSON: how many lines; none where no JSON comes.
fn lines_before(text: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut lines = 0;
    loop {
        let buffer = text.fill_buf()?;
        let mark = if buffer.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let blank = buffer[mark..].iter().take_while(|byte| byte.is_ascii_whitespace());
        let skipped = mark + blank.count();
        lines += buffer[..skipped].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let next = buffer.get(skipped).copied();
        text.consume(skipped);
        if next == Some(b'{') {
            return Ok(Some(lines));
        }
        if next.is_some() {
            text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut Vec::new())?;
            lines += 1;
        }
        if (next.is_none() && skipped == 0) || lines > LINES_BEFORE_MAX {
            return Ok(None);
        }
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
