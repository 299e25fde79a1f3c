//! Sizes in bytes, as job files state them.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::binary::Binary;
use super::{Unit, UnitError, deserialize};

/// A number of bytes: the size of a request, of a file, a rate in bytes per second.
///
/// A whole number, alone or with a suffix: `B`, or one of `k`, `K`, `M`, `G`, `T`, alone or with
/// `B`, `i` or `iB` behind it. **All suffixes are powers of 1024**, whatever they are called, as
/// in the files of Seastar: `4kB` is 4,096 bytes.
///
/// ```
/// use forebay_config::ByteSize;
///
/// assert_eq!("512".parse(), Ok(ByteSize(512)));
/// assert_eq!("4kB".parse(), Ok(ByteSize(4096)));
/// assert_eq!("1 GiB".parse(), Ok(ByteSize(1 << 30)));
/// assert!("1.5GB".parse::<ByteSize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(
    /// The number of bytes.
    pub u64,
);

impl Unit for ByteSize {
    const EXPECTED: &'static str = "a whole number of bytes, alone or with k, M, G or T (powers \
                                    of 1024; also kB, KiB and the like), such as 4096 or 4kB";
    const MAX: &'static str = "18446744073709551615 bytes";
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let size = Binary::parse::<Self>(text)?;
        let bytes = size.rounded::<Self>()?;
        if size.has_fraction() {
            return Err(Self::malformed(text).or_write(&in_words(bytes)));
        }
        Ok(Self(bytes))
    }
}

/// The size as a whole number of the largest unit that divides it.
fn in_words(bytes: u64) -> String {
    let units = [(40, "TB"), (30, "GB"), (20, "MB"), (10, "kB")];
    let fits = |&(shift, _): &(u32, &str)| bytes > 0 && bytes.is_multiple_of(1 << shift);
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
