//! Plain counts and rates, as io-properties files state them.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::binary::Binary;
use super::{Unit, UnitError, deserialize};

/// A count or a rate in an io-properties file: operations per second, bytes per second, bytes.
///
/// A decimal number, alone or with a suffix of a [`ByteSize`](crate::ByteSize): `k`, `M`, `G` or
/// `T`, also as `kB`, `Ki`, `KiB` and so on. **The suffixes are powers of 1024**, on operations
/// too, as in Seastar: `read_iops: 100k` is 102,400. A fraction that remains is rounded to the
/// nearest whole number, halves up.
///
/// ```
/// use forebay_config::Quantity;
///
/// assert_eq!("218786".parse(), Ok(Quantity(218_786)));
/// assert_eq!("100k".parse(), Ok(Quantity(102_400)));
/// assert_eq!("1.5G".parse(), Ok(Quantity(3 << 29)));
/// assert_eq!("545MB".parse(), Ok(Quantity(545 << 20)));
/// assert!("100m".parse::<Quantity>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(
    /// The count, or the rate per second.
    pub u64,
);

impl Unit for Quantity {
    const EXPECTED: &'static str =
        "a number, alone or with k, M, G or T (powers of 1024), such as 150000 or 1.5G";
    const MAX: &'static str = "18446744073709551615";
}

impl FromStr for Quantity {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Binary::parse::<Self>(text)?.rounded::<Self>().map(Self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
