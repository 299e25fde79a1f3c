//! What every disk file has, as it stands in the text.

use forebay_config::{ByteSize, Located};
use serde::Deserialize;

use super::faults::RawFault;
use super::file_system::RawFileSystem;

/// The key that says which other keys there are.
#[derive(Deserialize)]
pub(super) struct RawHead {
    pub(super) kind: Located<Kind>,
}

/// The kinds of disks.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Ideal,
    Surface,
    Flash,
    Raid0,
    Cloud,
    Hdd,
}

/// The keys of every kind.
pub(super) struct RawCommon {
    pub(super) source: Option<String>,
    pub(super) capacity: Option<Located<ByteSize>>,
    pub(super) sector: Option<Located<u64>>,
    pub(super) faults: Vec<Located<RawFault>>,
    pub(super) file_system: Option<Located<RawFileSystem>>,
}

/// Declares a kind's keys alongside those of every kind. (What serde offers for that, `flatten`,
/// loses the places of values and accepts unknown keys.)
macro_rules! disk_keys {
    ($name:ident { $($key:ident: $type:ty,)* }) => {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            #[serde(rename = "kind")]
            _kind: serde::de::IgnoredAny,
            source: Option<String>,
            capacity: Option<forebay_config::Located<forebay_config::ByteSize>>,
            sector: Option<forebay_config::Located<u64>>,
            #[serde(default)]
            faults: Vec<forebay_config::Located<crate::spec::faults::RawFault>>,
            file_system: Option<forebay_config::Located<crate::spec::file_system::RawFileSystem>>,
            $($key: $type,)*
        }

        impl $name {
            fn common(&self) -> crate::spec::raw::RawCommon {
                crate::spec::raw::RawCommon {
                    source: self.source.clone(),
                    capacity: self.capacity,
                    sector: self.sector,
                    faults: self.faults.clone(),
                    file_system: self.file_system,
                }
            }
        }
    };
}

pub(super) use disk_keys;
