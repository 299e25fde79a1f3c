//! The files that `explore` writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay::properties::{MixRegion, Properties};
use forebay_explore::{Fit, page, svg};
use forebay_sim::surface::Grid;

use crate::console::note;
use crate::failure::Failure;
use crate::whole_file;

/// What is drawn.
#[derive(Args)]
pub(super) struct Pictures {
    /// Write a page with heat maps: the region, the straight line, and where they are wrong
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the heat maps alone
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

impl Pictures {
    /// Writes the page and the pictures that were asked for.
    pub(super) fn write(
        &self,
        (name, surface): (&str, &Grid),
        fits: &[Fit],
    ) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            whole_file::put(path, &page(name, surface, fits))?;
        }
        if let Some(path) = &self.svg {
            whole_file::put(path, &svg(surface, fits))?;
        }
        Ok(())
    }
}

/// Writes the regions into the forebay.yaml at `path`, which is there.
pub(super) fn regions(path: &Path, fits: &[Fit]) -> Result<(), Failure> {
    if !path.exists() {
        return Err(Failure::Input(format!(
            "`{}` is not there, and regions are a part of it: run `forebay tune DIR` on the disk \
             first, which makes it",
            path.display()
        )));
    }
    let text = forebay_config::read(path)?;
    // what is wrong with the file is said with line and key
    Properties::parse(&path.display().to_string(), &text)?;
    let regions: Vec<MixRegion> = fits.iter().map(region).collect();
    let text = Properties::with_regions(&text, &regions).ok_or_else(|| {
        Failure::Input(format!(
            "`{}` is not a file of one disk, with a line for each key and the disks at its end, as \
             `forebay tune` writes it: make one for this disk",
            path.display()
        ))
    })?;
    whole_file::put(path, &text)?;
    note(format_args!("{}: {} regions written", path.display(), regions.len()));
    Ok(())
}

fn region(fit: &Fit) -> MixRegion {
    MixRegion {
        read_percentile: fit.goal.percentile.number(),
        latency: Duration::from_nanos((fit.goal.latency_us * 1e3).round().max(1.0) as u64),
        write_bandwidth: fit.figures.write_bandwidth.round().max(1.0) as u64,
        read_iops: fit.figures.read_iops.round().max(1.0) as u64,
        radii: fit.shape.table().to_vec(),
    }
}
