//! Disk files: which disk to simulate.
//!
//! A disk file is a YAML mapping. These keys stand in every one:
//!
//! ```yaml
//! kind: ideal        # ideal, flash, raid0, cloud, hdd or surface; says which keys follow
//! source: where the parameters come from, in one line   # optional
//! capacity: 64GiB    # the default, except for raid0
//! sector: 512        # or 4096: offsets and lengths are multiples of it
//! faults: []         # what goes wrong, see below
//! ```
//!
//! Sizes (`capacity`) may have units such as `4kB`, powers of 1024; times need a unit, such as
//! `500us`; rates and counts are plain numbers, where `k`, `M`, `G` are powers of 1024.
//! The keys of each kind are fields of its parameters: [`Ideal`](crate::disk::Ideal) and so on.

mod checks;
mod ideal;
mod presets;
mod raw;

use std::path::Path;

use forebay_config::{ConfigError, Located, Source, nearest};

use crate::disk::{Ideal, IdealDisk, SimDisk, Timed};

use checks::Checks;
use raw::{Kind, RawCommon, RawHead};

/// What a disk file says: a disk that can be built as often as wanted.
#[derive(Clone, Debug)]
pub struct DiskSpec {
    name: String,
    source: String,
    capacity: u64,
    sector: u64,
    model: Model,
}

/// The parameters of a disk, by its kind.
#[derive(Clone, Debug)]
enum Model {
    Ideal(Ideal),
}

impl DiskSpec {
    /// The disk that `name_or_path` means: a preset, or else a disk file (`.yaml`, `.yml`), or
    /// else a measured surface (`.csv`).
    ///
    /// # Errors
    /// There is no such preset and no such file, or the file cannot be read, is not of the format
    /// described for [this module](self), or describes an impossible disk.
    pub fn resolve(name_or_path: &str) -> Result<Self, ConfigError> {
        if let Some(text) = presets::text(name_or_path) {
            let file = format!("preset {name_or_path}");
            return Self::parse_named(name_or_path, &Source::new(&file, text));
        }
        let path = Path::new(name_or_path);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                let text = forebay_config::read(path)?;
                Self::parse(&Source::new(name_or_path, &text))
            }
            Some("csv") => Err(surfaces_missing(name_or_path)),
            _ => Err(unknown(name_or_path)),
        }
    }

    /// Reads a disk file; its name is the disk's name.
    ///
    /// # Errors
    /// The text is not of the format described for [this module](self), or describes an impossible
    /// disk.
    pub fn parse(source: &Source<'_>) -> Result<Self, ConfigError> {
        let file = source.error(forebay_config::Position::default(), "").file;
        Self::parse_named(&file, source)
    }

    /// The names of all presets, in alphabetical order.
    pub fn presets() -> impl Iterator<Item = &'static str> + Clone {
        presets::names()
    }

    fn parse_named(name: &str, source: &Source<'_>) -> Result<Self, ConfigError> {
        let checks = Checks { source };
        let head: RawHead = source.parse()?;
        let (common, model) = match head.kind.value {
            Kind::Ideal => ideal::parse(checks)?,
        };
        Self::checked(name, checks, &common, model)
    }

    fn checked(
        name: &str,
        checks: Checks<'_>,
        common: &RawCommon,
        model: Model,
    ) -> Result<Self, ConfigError> {
        let sector = checks.sector(common.sector.as_ref())?;
        let capacity = checks.capacity(common.capacity.as_ref(), sector)?;
        let source = common.source.clone().unwrap_or_else(|| format!("the file {name}"));
        Ok(Self { name: name.to_owned(), source, capacity, sector, model })
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

    /// A disk of this kind, idle. What is random about it depends on `seed` alone.
    pub fn build(&self, _seed: u64) -> Box<dyn SimDisk> {
        match &self.model {
            Model::Ideal(parameters) => Box::new(Timed::new(IdealDisk::new(*parameters))),
        }
    }
}

fn surfaces_missing(file: &str) -> ConfigError {
    let message = "surface disks cannot be built yet; choose another kind";
    ConfigError::whole_file(file, message)
}

fn unknown(name: &str) -> ConfigError {
    let hint = nearest(name, presets::names())
        .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    let names: Vec<&str> = presets::names().collect();
    let message = format!(
        "no such disk; {hint}Name a .yaml or .csv file, or one of the presets: {}",
        names.join(", ")
    );
    ConfigError::whole_file(name, message)
}
