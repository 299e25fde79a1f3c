//! Keys that had another name in the previous release.

use forebay_config::{ConfigError, Located, Source};

use super::Disk;

/// Moves the values of old keys to the new ones. Returns the pairs of old and new keys that the
/// file uses.
///
/// # Errors
/// The file has a key under both names.
pub(super) fn take_old_keys(
    source: Source<'_>,
    disk: &mut Disk,
) -> Result<Vec<(&'static str, &'static str)>, ConfigError> {
    let mut renamed = Vec::new();
    macro_rules! take {
        ($($old:ident => $new:ident,)*) => {
            $(if take_one(source, &mut disk.$old, &mut disk.$new, stringify!($new))? {
                renamed.push((stringify!($old), stringify!($new)));
            })*
        };
    }
    take! {
        read_first_excess => read_burst_excess,
        write_first_excess => write_burst_excess,
        read_iops_lasting => read_iops_sustained,
        read_bandwidth_lasting => read_bandwidth_sustained,
        write_iops_lasting => write_iops_sustained,
        write_bandwidth_lasting => write_bandwidth_sustained,
    }
    Ok(renamed)
}

/// Moves one value. Returns whether the file has the old key.
fn take_one<T>(
    source: Source<'_>,
    old: &mut Option<Located<T>>,
    new: &mut Option<Located<T>>,
    name: &str,
) -> Result<bool, ConfigError> {
    let Some(value) = old.take() else { return Ok(false) };
    if let Some(other) = new {
        let line = other.at.line;
        let message = format!("is the old name of `{name}` in line {line}; remove one of the two");
        return Err(source.error(value.at, message));
    }
    *new = Some(value);
    Ok(true)
}
