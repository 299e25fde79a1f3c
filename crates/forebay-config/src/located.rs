//! Values that remember where in the file they stand.

use serde::{Deserialize, Deserializer};

/// A place in a file. The default, 0:0, is no place: the file as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u64,
    /// The column in characters, counted from 1.
    pub column: u64,
}

/// A parsed value and the place it stands at, for checks made after parsing.
///
/// Hand [`Located::at`] to [`Source::error`](crate::Source::error).
///
/// A value that comes through an alias stands where the alias does. A value that comes from
/// `#[serde(default)]`, or that serde buffers on the way (below `flatten`, or inside an
/// `untagged` or internally tagged enum), has no place: its position is 0:0. Wrap the buffered
/// type as a whole there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where the value stands; for a list or a mapping, where it begins.
    pub at: Position,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        let at = Position { line: spanned.referenced.line(), column: spanned.referenced.column() };
        Ok(Self { value: spanned.value, at })
    }
}
