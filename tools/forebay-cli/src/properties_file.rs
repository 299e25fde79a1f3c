//! A file of properties, for the commands whose results do not show its figures.

use std::path::Path;

use forebay::properties::Properties;

use crate::console::note;
use crate::failure::Failure;

/// Reads the file at `path`, and warns of figures that look wrong.
pub(crate) fn load(path: &Path) -> Result<Properties, Failure> {
    let properties = Properties::load(path)?;
    for disk in &properties.disks {
        let mountpoint = disk.mountpoints.first().map(|mountpoint| mountpoint.display());
        let name = mountpoint.map(|name| name.to_string()).unwrap_or_default();
        for warning in disk.figure_warnings() {
            note(format_args!("warning: {}: disk `{name}`: {warning}", path.display()));
        }
    }
    Ok(properties)
}
