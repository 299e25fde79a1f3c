//! A properties file and its companion, the file next to it that it names.

use std::io::ErrorKind;
use std::path::Path;

use forebay_config::{ConfigError, Source};

use super::format::{self, Parsed};
use super::{DiskProperties, Properties};

/// Reads the file at `path`. If it is a `forebay.yaml` and its io-properties file exists, both must
/// agree.
pub(super) fn load(path: &Path) -> Result<Properties, ConfigError> {
    let (name, text) = (path.display().to_string(), forebay_config::read(path)?);
    let source = Source::new(&name, &text);
    let parsed = format::parse(source)?;
    let Some(named) = &parsed.io_properties else { return Ok(parsed.properties) };
    let other = path.with_file_name(&named.value);
    match std::fs::metadata(&other) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(parsed.properties),
        // Reading a pipe would wait for ever. Other errors are found by reading.
        Ok(metadata) if !metadata.is_file() => {
            let message = "this is not a file; name a file, or remove the key";
            return Err(source.error(named.at, message));
        }
        _ => {}
    }
    let other_name = other.display().to_string();
    let text = forebay_config::read(&other)?;
    let companion = format::parse(Source::new(&other_name, &text))?;
    if companion.io_properties.is_some() {
        let message = "that file has an `io_properties` key too; name an io-properties file";
        return Err(source.error(named.at, message));
    }
    agree(source, &parsed, &companion.properties, &other_name)?;
    Ok(parsed.properties)
}

/// Checks that both agree on the disks that are in both.
fn agree(
    source: Source<'_>,
    parsed: &Parsed,
    companion: &Properties,
    other: &str,
) -> Result<(), ConfigError> {
    for (disk, at) in parsed.properties.disks.iter().zip(&parsed.places) {
        let shared = |other: &&DiskProperties| {
            other.mountpoints.iter().any(|path| disk.mountpoints.contains(path))
        };
        let differing =
            companion.disks.iter().find(shared).and_then(|other| differing(disk, other));
        if let Some(key) = differing {
            let message = format!(
                "`{key}` of this disk differs from that in `{other}`; measure again, or remove \
                 one of the two files"
            );
            return Err(source.error(*at, message));
        }
    }
    Ok(())
}

/// A key in which the two differ, of those that both files may have.
fn differing(one: &DiskProperties, other: &DiskProperties) -> Option<&'static str> {
    let keys = [
        ("mountpoints", one.mountpoints != other.mountpoints),
        ("read_iops", one.read_iops != other.read_iops),
        ("write_iops", one.write_iops != other.write_iops),
        ("read_bandwidth", one.read_bandwidth != other.read_bandwidth),
        ("write_bandwidth", one.write_bandwidth != other.write_bandwidth),
        ("read_saturation_length", one.read_saturation_length != other.read_saturation_length),
        ("write_saturation_length", one.write_saturation_length != other.write_saturation_length),
        ("physical_block_size", one.physical_block_size != other.physical_block_size),
        ("duplex", one.duplex != other.duplex),
        ("max_cost_function", one.max_cost_function != other.max_cost_function),
    ];
    keys.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
}
