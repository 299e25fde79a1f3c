//! Disk files: which disk to simulate.
//!
//! A disk file is a YAML mapping. These keys stand in every one:
//!
//! ```yaml
//! kind: ideal        # ideal, flash, raid0, cloud, hdd or surface; says which keys follow
//! source: where the parameters come from, in one line   # optional
//! capacity: 64GiB    # the default, except for raid0
//! sector: 512        # or 4096: offsets and lengths are multiples of it
//! faults: []         # what goes wrong, see below; optional
//! file_system: {}    # what is between deletes and the disk, see below; optional
//! ```
//!
//! Sizes may have units such as `4kB`, powers of 1024; times need a unit, such as `500us`; rates
//! and counts are plain numbers, where `k`, `M`, `G` are powers of 1024. The other keys are named
//! as the fields of the kind's parameters: [`Ideal`] (where `bandwidth` stands for both
//! directions), [`Flash`], [`Cloud`], [`Hdd`]. A RAID0 has `chunk`, a size, and `members`, a list
//! of presets and of disk files alongside this one.
//!
//! A surface names the region of the loads that the disk carries, and its latencies on the idle
//! disk; the other fields of [`SurfaceModel`](crate::surface::SurfaceModel) are optional:
//!
//! ```yaml
//! kind: surface
//! read_iops: 400000           # reads per second alone
//! write_bandwidth: 800000000  # bytes per second alone
//! exponent: 0.75              # (w / write_bandwidth)^exponent + (r / read_iops)^exponent <= 1
//! read_latency: 100us
//! write_latency: 100us
//! ```
//!
//! A measured surface is a file as [`Grid::read`] reads it, and the disk is fitted to it.
//!
//! Faults, as [`Fault`] explains them, each with any of these keys (`from: 0` unless given, and
//! without `to` for ever):
//!
//! ```yaml
//! faults:
//!   - {kind: slow, from: 10s, to: 10200ms, percent: 30}   # to 30 % of its speed
//!   - {kind: error, offset: 1GB, length: 1MB}             # EIO
//!   - {kind: hang, from: 5s, to: 6s}                      # also with offset and length
//!   - {kind: reorder, spread: 50us}
//! ```
//!
//! A [`FileSystem`] has any of these keys. Only simulated loads go through it; a disk that is
//! served as a file has the file system that is put on it.
//!
//! ```yaml
//! file_system:
//!   discard: true        # mounted with `-o discard`
//!   sync_period: 30s     # 1ms to 1h: how often the log is written, and then discards are sent
//!   first_sync: 15s      # the first time; half of the period unless given
//!   pending_max: 65536   # extents freed after which the log is written early
//!   in_flight: 1023      # discards in the disk at a time
//!   metadata: 552        # bytes that each delete writes, with the log; none unless given
//! ```

mod checks;
mod cloud;
mod faults;
mod file_system;
mod flash;
mod hdd;
mod ideal;
mod presets;
mod raid0;
mod raw;
mod sizes;
mod surface;

use std::path::Path;

use forebay_config::{ConfigError, Position, Source, nearest};
use forebay_load::Rng;

use crate::disk::{
    Arbiter, Cloud, CloudDisk, Fault, Faulty, Flash, FlashDisk, Hdd, HddDisk, Ideal, IdealDisk,
    Raid0, SimDisk, Surface, Timed,
};
use crate::file_system::FileSystem;
use crate::surface::Grid;

use checks::{CAPACITY_DEFAULT, CAPACITY_MAX, Checks, SECTOR_DEFAULT};
use raw::{Kind, RawHead};

/// What a disk file says: a disk that can be built as often as wanted.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    name: String,
    source: String,
    capacity: u64,
    sector: u64,
    model: Model,
    faults: Vec<Fault>,
    file_system: Option<FileSystem>,
}

/// The parameters of a disk, by its kind.
#[derive(Clone, Debug)]
enum Model {
    Ideal(Ideal),
    Flash(Flash),
    Raid0 { chunk: u64, members: Vec<DiskSpec> },
    Cloud(Cloud),
    Hdd(Hdd),
    Surface(Surface),
}

impl DiskSpec {
    /// The disk that `name_or_path` means: a preset, or else a size of [`DiskSpec::sizes`], or else
    /// a disk file (`.yaml`, `.yml`), or else a measured surface (`.csv`, or fio's `.json`).
    ///
    /// # Errors
    /// There is no such preset and no such file, or the file cannot be read, is not of the format
    /// described for [this module](self), or describes an impossible disk.
    pub fn resolve(name_or_path: &str) -> Result<Self, ConfigError> {
        Self::resolve_at(name_or_path, 0)
    }

    /// [`DiskSpec::resolve`] for a member, so deep inside other disks.
    fn resolve_at(name_or_path: &str, depth: u32) -> Result<Self, ConfigError> {
        if let Some(text) = presets::text(name_or_path) {
            let file = format!("preset {name_or_path}");
            return Self::parse_at(name_or_path, &Source::new(&file, text), depth);
        }
        if let Some(size) = sizes::resolve(name_or_path)? {
            return Ok(size);
        }
        let path = Path::new(name_or_path);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                let text = forebay_config::read(path)?;
                Self::parse_at(name_or_path, &Source::new(name_or_path, &text), depth)
            }
            Some("csv" | "json") => Self::measured(name_or_path, &Grid::read(path)?),
            _ if path.exists() => Err(ConfigError::whole_file(
                name_or_path,
                "its name does not say what is in it; call a disk file .yaml or .yml, and a measured \
                 surface .csv or .json",
            )),
            _ => Err(unknown(name_or_path)),
        }
    }

    /// The same disk with these faults in addition.
    #[must_use]
    pub fn with_faults(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.faults.extend(faults);
        self
    }

    /// The disk that comes nearest to the surface in the file called `file`.
    fn measured(file: &str, surface: &Grid) -> Result<Self, ConfigError> {
        surface.enough_for_a_disk(file)?;
        Ok(Self {
            name: file.to_owned(),
            source: format!("fitted to the surface {file}"),
            capacity: CAPACITY_DEFAULT,
            sector: SECTOR_DEFAULT,
            model: Model::Surface(Surface::fitted(surface)),
            faults: Vec::new(),
            file_system: None,
        })
    }

    /// Reads a disk file; its name is the disk's name.
    ///
    /// # Errors
    /// The text is not of the format described for [this module](self), or describes an impossible
    /// disk.
    pub fn parse(source: &Source<'_>) -> Result<Self, ConfigError> {
        let file = source.error(Position::default(), "").file;
        Self::parse_at(&file, source, 0)
    }

    /// The names of all presets, in alphabetical order.
    pub fn presets() -> impl Iterator<Item = &'static str> + Clone {
        presets::names()
    }

    /// The names of machines and volumes that clouds rent out; volumes of any size, such as
    /// `gp2-500GiB` and, with provisioned operations per second, `io2-500GiB-20000`, by an example
    /// each.
    ///
    /// # Errors
    /// The table that comes with the crate cannot be read.
    pub fn sizes() -> Result<Vec<String>, ConfigError> {
        sizes::names()
    }

    /// The size of the table called `name`, also where a preset has this name.
    ///
    /// # Errors
    /// A volume's size or operations are out of bounds, or there is no such row.
    pub fn of_table(name: &str) -> Result<Self, ConfigError> {
        sizes::resolve(name)?.ok_or_else(|| unknown(name))
    }

    fn of_size(name: &str, source: &str, capacity: u64, model: Model) -> Self {
        let (name, source) = (name.to_owned(), source.to_owned());
        let (sector, faults) = (SECTOR_DEFAULT, Vec::new());
        Self { name, source, capacity, sector, model, faults, file_system: None }
    }

    fn parse_at(name: &str, text: &Source<'_>, depth: u32) -> Result<Self, ConfigError> {
        let checks = Checks { source: text };
        let head: RawHead = text.parse()?;
        let (common, model) = match head.kind.value {
            Kind::Ideal => ideal::parse(checks)?,
            Kind::Flash => flash::parse(checks)?,
            Kind::Raid0 => raid0::parse(checks, name, depth)?,
            Kind::Cloud => cloud::parse(checks)?,
            Kind::Hdd => hdd::parse(checks)?,
            Kind::Surface => surface::parse(checks)?,
        };
        let (default, max) = match &model {
            Model::Raid0 { chunk, members } => {
                let all = raid0::capacity(*chunk, members);
                (all, all)
            }
            _ => (CAPACITY_DEFAULT, CAPACITY_MAX),
        };
        let sector = checks.sector(common.sector.as_ref())?;
        let capacity = checks.capacity(common.capacity.as_ref(), sector, default, max)?;
        Ok(Self {
            name: name.to_owned(),
            source: common.source.unwrap_or_else(|| format!("the file {name}")),
            capacity,
            sector,
            model,
            faults: faults::parse(checks, &common.faults, capacity)?,
            file_system: (common.file_system.as_ref())
                .map(|given| file_system::parse(checks, given))
                .transpose()?,
        })
    }

    /// What the disk is called: the preset's name, or the path of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the parameters come from, in one line.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How many bytes it has, a multiple of the sector.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The unit of offsets and lengths in bytes: 512 or 4096.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// The file system on it, for simulated loads; if there is none, each delete is a discard.
    pub fn file_system(&self) -> Option<FileSystem> {
        self.file_system
    }

    /// A disk of this kind, idle. What is random about it depends on `seed` alone.
    pub fn build(&self, seed: u64) -> Box<dyn SimDisk> {
        let disk: Box<dyn SimDisk> = match &self.model {
            Model::Ideal(ideal) => Box::new(Timed::new(IdealDisk::new(*ideal))),
            Model::Flash(flash) => {
                let disk = Timed::new(FlashDisk::new(*flash, seed));
                match flash.discard_batches {
                    Some(batches) => Box::new(Arbiter::new(disk, batches)),
                    None => Box::new(disk),
                }
            }
            Model::Cloud(cloud) => Box::new(Timed::new(CloudDisk::new(*cloud, seed))),
            Model::Hdd(hdd) => Box::new(HddDisk::new(*hdd, self.capacity)),
            Model::Surface(surface) => surface.build(seed),
            Model::Raid0 { chunk, members } => {
                let seeds = (0..).map(|place| Rng::new(seed, &[place]).next_u64());
                let disks = members.iter().zip(seeds).map(|(member, seed)| member.build(seed));
                Box::new(Raid0::new(*chunk, disks.collect()))
            }
        };
        if self.faults.is_empty() {
            return disk;
        }
        Box::new(Faulty::new(disk, self.faults.clone(), seed))
    }
}

fn unknown(name: &str) -> ConfigError {
    let begins = |known: &&str| known.to_lowercase().starts_with(&name.to_lowercase());
    let sizes = sizes::names().unwrap_or_default();
    let mut all: Vec<&str> = presets::names().collect();
    all.extend(sizes.iter().map(String::as_str));
    let begun = all.iter().copied().find(begins).filter(|_| !name.is_empty());
    let hint = nearest(name, all.iter().copied())
        .or(begun)
        .map_or_else(|| String::from("name"), |near| format!("did you mean `{near}`? Name"));
    let names: Vec<&str> = presets::names().collect();
    let message = format!(
        "no such disk; {hint} a .yaml, .csv or .json file, a machine or volume that `forebay info --list` \
         shows, or one of the presets: {}",
        names.join(", ")
    );
    ConfigError::whole_file(name, message)
}
