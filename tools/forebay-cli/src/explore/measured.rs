//! Where the surface comes from: a file, a simulated disk, a disk.

use std::path::Path;

use forebay_explore::{Goal, Matrix, SimulatedDisk, SimulatedLoad, adaptive, adaptive_cells_max};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::{Axes, Cell, Grid};
use indicatif::HumanBytes;

use super::kept::{Kept, Task};
use super::locks;
use super::{Combined, Options, Timed};
use crate::bench::{MixedLoad, MixedLoadOptions};
use crate::console::{note, progress_bar};
use crate::failure::Failure;
use crate::{properties_file, whole_file};

const SECTOR: u64 = 512;
/// The longest read and write.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// A surface.
pub(super) struct Measured {
    /// Its name in texts and charts.
    pub(super) name: String,
    pub(super) surface: Grid,
    /// The loads of a disk, until they are saved.
    kept: Option<Kept>,
}

impl Measured {
    /// Writes the surface down.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let saved = whole_file::put(path, &self.surface.to_csv());
        match (&self.kept, &saved) {
            (Some(kept), Ok(())) => kept.forget(),
            (Some(kept), Err(_)) => kept.offer_to_go_on(),
            (None, _) => {}
        }
        saved?;
        note(format_args!("{}: what was measured, for --from", path.display()));
        Ok(())
    }
}

/// The surface, from where the options say.
pub(super) fn surface(options: &Options, goals: &[Goal]) -> Result<Measured, Failure> {
    if let Some(path) = &options.from {
        let (name, surface) = (path.display().to_string(), Grid::read(path)?);
        return Ok(Measured { name, surface, kept: None });
    }
    if let Some(place) = &options.place {
        return of_disk(options, place, goals);
    }
    let name = options.simulate.as_deref().unwrap_or_default();
    let disk = DiskSpec::resolve(name)?;
    let load = options.simulated_load()?;
    let mut disk = SimulatedDisk::with_load(disk, load)
        .map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    let matrix = Matrix::even(disk.rates(), options.rates() - 1);
    let template = "{bar:30} {pos} of at most {len} loads, {eta} left";
    let bar = progress_bar(most(options, &matrix).into(), template);
    let surface = measured(options, &matrix, goals, |at| {
        let cell = disk.measure(at);
        bar.inc(1);
        Ok(cell)
    })?;
    let surface = if load.times_writes { surface.of_writes() } else { surface };
    let surface = surface.over(load.axes);
    Ok(Measured { name: name.to_owned(), surface, kept: None })
}

/// The most loads that are measured.
fn most(options: &Options, matrix: &Matrix) -> u32 {
    if options.is_full() { matrix.cells() } else { adaptive_cells_max(matrix) }
}

fn measured(
    options: &Options,
    matrix: &Matrix,
    goals: &[Goal],
    measure: impl FnMut((f64, f64)) -> Result<Option<Cell>, Failure>,
) -> Result<Grid, Failure> {
    if options.is_full() { matrix.full(measure) } else { adaptive(matrix, goals, measure) }
}

/// Measures the disk at `place`.
fn of_disk(options: &Options, place: &Path, goals: &[Goal]) -> Result<Measured, Failure> {
    let properties = options.load.properties.as_deref().map(properties_file::load).transpose()?;
    let mut disk = MixedLoad::new(options.mixed_load(place)?)?;
    let name = place.display().to_string();
    let save = options.save_path().unwrap_or_default();
    let _locks = locks::of(disk.path(), &save)?;
    let mut kept = Kept::open(&save, Task::new(options, disk.path(), goals), options.resume)?;
    let stated = properties.as_ref().map(|stated| disk.rates(Some(stated))).transpose()?;
    let rates = match kept.most {
        Some(rates) => kept.check_rates(rates, stated)?,
        None => stated.map_or_else(|| disk.rates(None), Ok)?,
    };
    kept.most = Some(rates);
    let matrix = Matrix::even(rates, options.rates() - 1);
    let (most, seconds) = (most(options, &matrix), options.load.duration().as_secs_f64() * 1.25);
    let before = kept.count();
    note(format_args!(
        "measuring {}{most} loads of {seconds:.1} s each, up to {:.0} reads/s alongside {}/s written: \
         {:.0} s{}",
        if options.is_full() { "" } else { "at most " },
        rates.1,
        HumanBytes(rates.0 as u64),
        f64::from(most).max(before as f64) * seconds - before as f64 * seconds,
        if before > 0 { format!(", {before} of them are known") } else { String::new() },
    ));
    let surface = measured(options, &matrix, goals, |at| {
        if let Some(cell) = kept.get(at) {
            return Ok(cell);
        }
        let done = kept.count();
        let left = f64::from(most).max(done as f64) - done as f64;
        let title = format!(
            "load {} of at most {most}, {:.0} s left: {}/s written alongside {:.0} reads/s,",
            done + 1,
            left * seconds,
            HumanBytes(at.0 as u64),
            at.1
        );
        let cell = disk.measure(&title, at)?;
        kept.put(at, cell)?;
        Ok(cell)
    });
    match surface {
        Ok(surface) => Ok(Measured { name, surface, kept: Some(kept) }),
        Err(failure) => {
            kept.offer_to_go_on();
            Err(failure)
        }
    }
}

impl Options {
    fn simulated_load(&self) -> Result<SimulatedLoad, Failure> {
        let load = &self.load;
        let (read_bytes, write_bytes) = self.request_bytes()?;
        let wrong = |text: &str| Err(Failure::Input(text.to_owned()));
        let (axes, fixed_rates) = match (load.combine, &load.at_rates[..]) {
            (Combined::Sizes, &[reads, writes]) => (Axes::Sizes, (reads.into(), writes.into())),
            (Combined::Sizes, _) => {
                return wrong("--combine sizes: at which rates? Add --at-rates READS,WRITES");
            }
            (_, [_, ..]) => return wrong("--at-rates is for sizes: add --combine sizes"),
            (Combined::Reads, _) if load.trim || load.latency_of == Timed::Writes => {
                return wrong(
                    "--combine reads has no writes: leave out --trim and --latency-of writes",
                );
            }
            (Combined::Reads, _) => (Axes::LargeReads, (0.0, 0.0)),
            (Combined::Rates, _) => (Axes::Rates, (0.0, 0.0)),
        };
        Ok(SimulatedLoad {
            read_bytes: read_bytes.into(),
            write_bytes: write_bytes.into(),
            data_bytes: load.data_size.map(|size| size.0),
            duration: load.seconds,
            discarded_after: load.trim.then(|| load.trim_after.unwrap_or_default()),
            times_writes: load.latency_of == Timed::Writes,
            axes,
            fixed_rates,
        })
    }

    /// Bytes of a read and of a write.
    fn request_bytes(&self) -> Result<(u32, u32), Failure> {
        let request = |option: &str, bytes: u64| {
            let fits =
                bytes.is_multiple_of(SECTOR) && (SECTOR..=REQUEST_BYTES_MAX).contains(&bytes);
            fits.then_some(bytes as u32).ok_or_else(|| {
                Failure::Input(format!(
                    "{option} is {bytes} bytes; give a multiple of {SECTOR}, up to \
                     {REQUEST_BYTES_MAX}"
                ))
            })
        };
        let load = &self.load;
        Ok((request("--read-size", load.read_size.0)?, request("--write-size", load.write_size.0)?))
    }

    fn mixed_load(&self, place: &Path) -> Result<MixedLoadOptions, Failure> {
        let load = &self.load;
        let (read_bytes, write_bytes) = self.request_bytes()?;
        let options = MixedLoadOptions {
            place: place.to_owned(),
            may_overwrite_device: load.overwrite_device,
            read_bytes,
            write_bytes,
            data_bytes: load.data_bytes(),
            discards: load.trim,
            duration: load.duration(),
        };
        options.check()?;
        Ok(options)
    }
}
