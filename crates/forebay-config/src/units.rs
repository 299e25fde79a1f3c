//! The units in which forebay's files state sizes, rates and times.
//!
//! Each is a type of its own, read from a YAML integer or string with [`serde::Deserialize`] and
//! from a command line with [`str::parse`]. None of them rounds silently beyond what its
//! documentation says, and a value too large for the type is an error.

mod binary;
mod byte_size;
mod quantity;
mod span;

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};

use crate::quote::printable;

pub use byte_size::ByteSize;
pub use quantity::Quantity;
pub use span::Span;

/// Why a text is not a size, a rate or a time: what it is, what was expected.
#[derive(Clone, PartialEq, Eq)]
pub struct UnitError(String);

impl UnitError {
    /// The same error, with what to write instead.
    fn or_write(self, instead: &str) -> Self {
        Self(format!("{}; write {instead}", self.0))
    }
}

/// What a `main` that returns an error shows of it.
impl fmt::Debug for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

/// A unit type: how it is parsed, and the words that say what it looks like.
trait Unit: FromStr<Err = UnitError> {
    /// Completes "expected ...", with an example.
    const EXPECTED: &'static str;
    /// Completes "expected at most ...".
    const MAX: &'static str;

    /// `text` does not look like this unit.
    fn malformed(text: &str) -> UnitError {
        UnitError(format!("found `{}`; expected {}", printable(text), Self::EXPECTED))
    }

    /// `text` looks like this unit, and is more than the type holds.
    fn too_large(text: &str) -> UnitError {
        UnitError(format!("found `{}`; expected at most {}", printable(text), Self::MAX))
    }
}

/// Splits `text` behind its leading digits and points, and trims both parts.
fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    (number, suffix.trim_start())
}

/// Parses a whole number without sign or point; `None` also when it exceeds a `u64`.
fn whole(number: &str) -> Result<Option<u64>, ()> {
    if number.is_empty() || number.contains('.') {
        return Err(());
    }
    Ok(number.parse().ok())
}

/// Reads a unit from whatever scalar the file holds: each is parsed as the text a person wrote.
fn deserialize<'de, U: Unit, D: Deserializer<'de>>(deserializer: D) -> Result<U, D::Error> {
    deserializer.deserialize_any(UnitVisitor(PhantomData))
}

struct UnitVisitor<U>(PhantomData<U>);

impl<U: Unit> Visitor<'_> for UnitVisitor<U> {
    type Value = U;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(U::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<U, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<U, E> {
        self.visit_str(&truth.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<U, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<U, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<U, E> {
        self.visit_str(&number.to_string())
    }
}
