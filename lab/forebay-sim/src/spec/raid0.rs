//! The keys of a RAID0.

use std::path::Path;

use forebay_config::{ByteSize, ConfigError, Located};

use super::checks::Checks;
use super::raw::{RawCommon, disk_keys};
use super::{DiskSpec, Model, presets};

const MEMBERS_MAX: usize = 64;
const CHUNK_MAX: u64 = 1 << 30;
/// A RAID0 may have RAID0s as members; this deep it is a mistake, or a file that lists itself.
const DEPTH_MAX: u32 = 3;

disk_keys!(RawRaid0 {
    chunk: Located<ByteSize>,
    members: Located<Vec<Located<String>>>,
});

/// The keys of the file called `file`, which is a member of as many others as `depth` says.
pub(super) fn parse(
    checks: Checks<'_>,
    file: &str,
    depth: u32,
) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawRaid0 = checks.source.parse()?;
    let names = &raw.members.value;
    if !(2..=MEMBERS_MAX).contains(&names.len()) {
        let message = format!("{} members; expected 2 to {MEMBERS_MAX}", names.len());
        return Err(checks.source.error(raw.members.at, message));
    }
    if depth >= DEPTH_MAX {
        let message = format!("members may be nested at most {DEPTH_MAX} deep");
        return Err(checks.source.error(raw.members.at, message));
    }
    let member = |name: &Located<String>| {
        DiskSpec::resolve_at(&sibling(file, &name.value), depth + 1)
            .map_err(|error| checks.source.error(name.at, error.to_string()))
    };
    let members = names.iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let sector = checks.sector(raw.sector.as_ref())?;
    for (spec, name) in members.iter().zip(names) {
        if spec.sector() > sector {
            let message = format!(
                "its sectors are of {} bytes; write `sector: {}` for the whole",
                spec.sector(),
                spec.sector()
            );
            return Err(checks.source.error(name.at, message));
        }
    }
    let smallest = members.iter().map(DiskSpec::capacity).min().unwrap_or(0);
    let chunk = checks.size(&raw.chunk, sector, CHUNK_MAX.min(smallest))?;
    Ok((raw.common(), Model::Raid0 { chunk, members }))
}

/// What a RAID0 of `members` holds: the smallest one's whole chunks, on each.
pub(super) fn capacity(chunk: u64, members: &[DiskSpec]) -> u64 {
    let smallest = members.iter().map(DiskSpec::capacity).min().unwrap_or(0);
    (smallest / chunk * chunk).saturating_mul(members.len() as u64)
}

/// A preset's name as it is; a path relative to the file that it stands in.
fn sibling(file: &str, name: &str) -> String {
    if presets::text(name).is_some() || Path::new(name).extension().is_none() {
        return name.to_owned();
    }
    let path = Path::new(file).parent().map(|folder| folder.join(name));
    path.map_or_else(|| name.to_owned(), |path| path.display().to_string())
}
