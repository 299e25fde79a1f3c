//! The files that `explore` writes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay::properties::{MixRegion, Properties, RADIUS_ONE, REGION_RADII};
use forebay_explore::{Fit, page, svg, unusable_warning};
use forebay_sim::surface::Grid;

use crate::console::note;
use crate::failure::Failure;
use crate::whole_file;

/// What is drawn.
#[derive(Args)]
pub(super) struct Pictures {
    /// Write a page with heat maps of the region and the straight line, and of the loads for which
    /// they are wrong
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write only the heat maps
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

impl Pictures {
    /// Whether they can be written.
    pub(super) fn check(&self) -> Result<(), Failure> {
        [&self.report, &self.svg].into_iter().flatten().try_for_each(|path| whole_file::check(path))
    }

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

/// Gives what is at `path` another name, which is said, so that the results of an earlier
/// measurement are there alongside the new ones.
pub(super) fn set_aside(path: &Path) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    let mut aside = OsString::from(path);
    aside.push(".old");
    let (from, to) = (path.display(), Path::new(&aside).display());
    fs::rename(path, &aside)
        .map_err(|error| Failure::Run(format!("cannot rename `{from}` to `{to}`: {error}")))?;
    note(format_args!("{to}: the old {from}"));
    Ok(())
}

/// Whether regions can be written into the forebay.yaml at `path`, which is there.
pub(super) fn check_regions(path: &Path) -> Result<(), Failure> {
    // any region will do: some files cannot hold one
    let region = MixRegion {
        read_percentile: 95.0,
        latency: Duration::from_millis(1),
        write_bandwidth: 1,
        read_iops: 1,
        radii: vec![RADIUS_ONE; REGION_RADII],
    };
    with_regions(path, &[region])?;
    whole_file::check(path)
}

/// Writes the regions into the forebay.yaml at `path`, except unusable ones. Where the surface ends
/// elsewhere than the figures of the file, it is of another disk, which must be meant
/// (`may_be_another`).
pub(super) fn regions(path: &Path, fits: &[Fit], may_be_another: bool) -> Result<(), Failure> {
    let (unusable, usable): (Vec<&Fit>, Vec<&Fit>) = fits.iter().partition(|fit| fit.is_unusable());
    unusable.iter().for_each(|fit| note(unusable_warning(fit)));
    let shown = path.display();
    if usable.is_empty() {
        note(format_args!("{shown}: not changed, because there is no region to write"));
        return Ok(());
    }
    if let Some(differences) = differences(path, &usable)?.filter(|_| !may_be_another) {
        return Err(Failure::Input(format!(
            "`{shown}` is not changed: the surface {differences}. The surface and the file seem \
             to be of different disks; measure this disk, or give --other-disk to write the \
             regions anyway"
        )));
    }
    let regions: Vec<MixRegion> = usable.iter().map(|fit| region(fit)).collect();
    whole_file::put(path, &with_regions(path, &regions)?)?;
    let goals: Vec<String> = usable.iter().map(|fit| fit.goal.to_string()).collect();
    note(format_args!("{shown}: regions written for {}", goals.join(", ")));
    Ok(())
}

/// Where the surface of `fits` ends elsewhere than the figures of the disk in the forebay.yaml at
/// `path`, in words.
fn differences(path: &Path, fits: &[&Fit]) -> Result<Option<String>, Failure> {
    let properties = Properties::load(path)?;
    let (Some(disk), Some(fit)) = (properties.disks.first(), fits.first()) else {
        return Ok(None);
    };
    let end = |figure: f64| figure.round() as u64;
    Ok(disk.differing_ends(end(fit.figures.read_iops), end(fit.figures.write_bandwidth)))
}

/// The forebay.yaml at `path` with these regions.
fn with_regions(path: &Path, regions: &[MixRegion]) -> Result<String, Failure> {
    let shown = path.display();
    if !path.exists() {
        return Err(Failure::Input(format!(
            "`{shown}` does not exist, and regions are a part of it: run `forebay tune DIR` on \
             the disk first, which writes it"
        )));
    }
    let text = forebay_config::read(path)?;
    // what is wrong with the file is said with line and key
    Properties::parse(&shown.to_string(), &text)?;
    Properties::with_regions(&text, regions).ok_or_else(|| {
        Failure::Input(format!(
            "`{shown}` is not a file of one disk with one line per key and the disks at its end, \
             as `forebay tune` writes it: make one for this disk"
        ))
    })
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
