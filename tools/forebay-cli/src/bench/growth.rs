//! `forebay bench --grow`: files that grow in different ways.

use std::io;
use std::path::Path;

use clap::Args;
use forebay_config::ByteSize;
use forebay_growth::{FILES_MAX, Grown, Growth, Strategy, grow};
use forebay_report::{Page, size, svg};
use indicatif::HumanBytes;
use serde::Serialize;

use super::storage;
use crate::console::{json, note, print};
use crate::failure::Failure;
use crate::growth::{EXTENTS, charts, table};
use crate::interrupt::Interrupt;
use crate::load_options::Format;
use crate::whole_file;
use crate::whole_number;

const MIB: u64 = 1 << 20;

/// How files grow.
#[derive(Args)]
pub(super) struct GrowthOptions {
    /// Compare methods of growing files, one file at a time and many at once, instead of running
    /// jobs [default: all methods; or name some, such as append,fallocate]
    #[arg(long, value_name = "METHODS", value_enum, value_delimiter = ',', num_args = 0..=1)]
    #[arg(default_missing_value = "append,truncate,fallocate,double", require_equals = true)]
    grow: Vec<Strategy>,
    /// Number of files that grow at once in one directory
    #[arg(long, value_name = "N", default_value_t = 16, requires = "grow")]
    #[arg(value_parser = whole_number::within::<u32>(2..=FILES_MAX.into()))]
    grow_files: u32,
    /// The final size of each file
    #[arg(long, value_name = "SIZE", default_value = "32MiB", requires = "grow")]
    grow_size: ByteSize,
    /// The size of each write to a growing file
    #[arg(long, value_name = "SIZE", default_value = "128KiB", requires = "grow")]
    grow_request: ByteSize,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    /// As it is shown: a path may be no text.
    dir: String,
    growth: Vec<Grown>,
}

impl GrowthOptions {
    /// Whether files shall grow, and no jobs run.
    pub(super) fn is_enabled(&self) -> bool {
        !self.grow.is_empty()
    }

    /// Grows files in `dir`, and shows what came of it.
    pub(super) fn run(
        &self,
        dir: &Path,
        format: Format,
        page: Option<&Path>,
    ) -> Result<(), Failure> {
        if format == Format::Yaml {
            return Err(Failure::Input("--grow has --format text and json".into()));
        }
        let ByteSize(file_bytes) = self.grow_size;
        let request = u32::try_from(self.grow_request.0).ok();
        let request = request.filter(|&bytes| bytes > 0 && u64::from(bytes).is_multiple_of(512));
        let request_bytes =
            request.filter(|&bytes| u64::from(bytes) <= 64 * MIB).ok_or_else(|| {
                Failure::Input(
                    "--grow-request: give a multiple of 512 bytes, at most 64 MiB".into(),
                )
            })?;
        if file_bytes < u64::from(request_bytes) {
            return Err(Failure::Input("--grow-size is less than --grow-request".into()));
        }
        check_space(dir, u64::from(self.grow_files).saturating_mul(file_bytes))?;
        storage::check_writable(dir)?;
        let interrupt = Interrupt::on_signals()?;
        let mut growth = Vec::new();
        for files in [1, self.grow_files] {
            for &strategy in &self.grow {
                note(format_args!(
                    "growing by {strategy}: files {files}, each {}",
                    size(file_bytes)
                ));
                let what = Growth { dir: dir.to_owned(), files, file_bytes, request_bytes };
                let grown = grow(&what, strategy, &|| interrupt.is_raised());
                growth.push(grown.map_err(|error| failed(dir, strategy, error))?);
            }
        }
        let report = Report { version: 1, dir: dir.display().to_string(), growth };
        print(&match format {
            Format::Json => json(&report)?,
            _ => table(&report.growth).to_string(),
        })?;
        page.map_or(Ok(()), |path| whole_file::put(path, &html(&report)?))
    }
}

fn failed(dir: &Path, strategy: Strategy, error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::Interrupted {
        return Failure::Interrupted;
    }
    let (dir, error) = (dir.display(), whole_file::nameless(error));
    Failure::Run(format!(
        "cannot grow files in `{dir}` by {strategy}: {error}; --grow=append,truncate leaves out \
         the others"
    ))
}

fn check_space(dir: &Path, needed: u64) -> Result<(), Failure> {
    let shown = dir.display();
    let space = rustix::fs::statvfs(dir).map_err(|error| {
        let todo = "name a directory that exists with --dir";
        Failure::Input(format!("cannot use `{shown}`: {error}; {todo}"))
    })?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if space.f_blocks == 0 || free >= needed {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "`{shown}` has {} free, and the files grow to {}; lower --grow-size or --grow-files",
        HumanBytes(free),
        HumanBytes(needed)
    )))
}

fn html(report: &Report) -> Result<String, Failure> {
    let title = format!("How files grow in {}", report.dir);
    let mut page = Page::new(&format!("forebay bench: {title}"));
    page.title(&title);
    page.table(&table(&report.growth));
    page.paragraph(EXTENTS);
    page.charts(&charts(&report.growth).iter().map(svg).collect::<Result<Vec<_>, _>>()?);
    page.json("results", &json(report)?);
    Ok(page.finish())
}
