//! Sizes in bytes, as job files state them.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::{Unit, UnitError, deserialize, split_number, whole};

/// A number of bytes: the size of a request, of a file, a rate in bytes per second.
///
/// A whole number, alone or with a unit. **All units are powers of 1024**, whatever they are
/// called, as in the job files of Seastar's io_tester: `4kB` is 4,096 bytes.
///
/// | unit | bytes |
/// |---|---|
/// | none, `B` | 1 |
/// | `k`, `K`, `kB`, `KB`, `KiB` | 1,024 |
/// | `M`, `MB`, `MiB` | 1,024² |
/// | `G`, `GB`, `GiB` | 1,024³ |
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
    const EXPECTED: &'static str = "a whole number of bytes, alone or with kB, MB or GB \
                                    (powers of 1024), such as 4096 or 4kB";
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text);
        let shift = match unit {
            "" | "B" => 0,
            "k" | "K" | "kB" | "KB" | "KiB" => 10,
            "M" | "MB" | "MiB" => 20,
            "G" | "GB" | "GiB" => 30,
            _ => return Err(Self::malformed(text)),
        };
        let number = whole(number).map_err(|()| Self::malformed(text))?;
        number
            .and_then(|number| number.checked_mul(1 << shift))
            .map(Self)
            .ok_or_else(|| Self::too_large(text, "18446744073709551615 bytes"))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}
