//! Values that remember where in the file they stand.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Asks for a value with its position: as a list of the line, the column and the value.
pub(crate) const LOCATED: &str = "forebay_config::Located";

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
        deserializer.deserialize_newtype_struct(LOCATED, LocatedVisitor(PhantomData))
    }
}

struct LocatedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LocatedVisitor<T> {
    type Value = Located<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<Located<T>, D::Error> {
        Ok(Located { value: T::deserialize(value)?, at: Position::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Located<T>, A::Error> {
        let missing = || A::Error::custom("no value");
        let line = parts.next_element()?.ok_or_else(missing)?;
        let column = parts.next_element()?.ok_or_else(missing)?;
        let value = parts.next_element()?.ok_or_else(missing)?;
        Ok(Located { value, at: Position { line, column } })
    }
}
