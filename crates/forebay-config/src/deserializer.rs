//! Deserializing from a syntax tree.
//!
//! A YAML library is generic over what it reads, so each type of a file compiles much of it again.
//! What is generic here is short.
//!
//! Decision: `docs/decisions/0049-reading-files.md`.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Display;

use serde::de::value::{MapAccessDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};

use crate::Position;
use crate::located::LOCATED;
use crate::syntax_tree::{Node, NodeKind, SyntaxTree, is_null};

/// The deepest nesting of lists and mappings, with those that aliases stand for.
const DEPTH_MAX: usize = 64;

/// The most values that the aliases of one file may stand for, together.
const ALIASED_VALUES_MAX: usize = 50_000;

/// Reads the document of `tree` as a `T`.
pub(crate) fn from_tree<T: DeserializeOwned>(tree: &SyntaxTree<'_>) -> Result<T, Error> {
    let value = Value { tree, aliased_values: &Cell::new(0), index: 0, alias: None, depth: 0 };
    T::deserialize(value)
}

/// What is wrong with a value, and where.
pub(crate) struct Error(Box<(Fault, Option<Position>)>);

/// What is wrong with a value.
pub(crate) enum Fault {
    UnknownField {
        field: String,
        expected: &'static [&'static str],
    },
    MissingField(&'static str),
    UnknownVariant {
        variant: String,
        expected: &'static [&'static str],
    },
    Unfit {
        unexpected: String,
        expected: String,
    },
    Length {
        len: usize,
        expected: String,
    },
    /// A value of another kind: what was expected, in serde's words.
    Kind(&'static str),
    /// A scalar that is no value of this type.
    Scalar(&'static str),
    NotFinite,
    DuplicateKey,
    MergeKey,
    TooManyAliased,
    Message(String),
}

impl Error {
    fn at(fault: Fault, at: Position) -> Self {
        Self(Box::new((fault, Some(at))))
    }

    fn unplaced(fault: Fault) -> Self {
        Self(Box::new((fault, None)))
    }

    pub(crate) fn fault(&self) -> &Fault {
        &self.0.0
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.0.1
    }

    /// The same error, which is here unless its place is known: at `key` if serde found it, at
    /// `value` if the type did.
    fn or_at(mut self, key: Position, value: Option<Position>) -> Self {
        let here = if matches!(self.fault(), Fault::Message(_)) { value } else { Some(key) };
        self.0.1 = self.0.1.or(here);
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.fault() {
            Fault::Message(message) => message,
            _ => "a value that does not fit its type",
        })
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::unplaced(Fault::Message(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (unexpected, expected) = (unexpected.to_string(), expected.to_string());
        Self::unplaced(Fault::Unfit { unexpected, expected })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::unplaced(Fault::Length { len, expected: expected.to_string() })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::unplaced(Fault::UnknownVariant { variant: variant.to_owned(), expected })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unplaced(Fault::UnknownField { field: field.to_owned(), expected })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::unplaced(Fault::MissingField(field))
    }
}

/// A value of a tree.
#[derive(Clone, Copy)]
struct Value<'t> {
    tree: &'t SyntaxTree<'t>,
    /// How many values were read through aliases.
    aliased_values: &'t Cell<usize>,
    index: usize,
    /// The position of the alias through which this value is read, itself or as a part.
    alias: Option<Position>,
    depth: usize,
}

/// A scalar without the blanks around it, as the type that its text looks like.
enum Plain<'t> {
    Bool(bool),
    Negative(i64),
    Whole(u64),
    Float(f64),
    Text(&'t str),
}

impl<'t> Value<'t> {
    fn node(&self) -> Result<&'t Node<'t>, Error> {
        self.tree.node(self.index).ok_or_else(|| Error::custom("unexpected end of file"))
    }

    /// Where the value stands, or the alias in its place.
    fn place(&self) -> Result<Position, Error> {
        Ok(self.node()?.at)
    }

    /// Where the value stands, or the alias that it comes through.
    fn reference(&self) -> Result<Position, Error> {
        let at = self.place()?;
        Ok(self.alias.unwrap_or(at))
    }

    /// The value itself where this is an alias.
    fn resolved(mut self) -> Result<(Self, &'t Node<'t>), Error> {
        let mut node = self.node()?;
        if let NodeKind::Alias(target) = node.kind {
            self.alias = Some(node.at);
            let alias = std::mem::replace(&mut self.index, target);
            let at = node.at;
            node = self.node()?;
            if (target..node.end).contains(&alias) {
                let message = String::from("Recursive reference not allowed here");
                return Err(Error::at(Fault::Message(message), at));
            }
        }
        if self.depth > DEPTH_MAX || self.aliased_values.get() > ALIASED_VALUES_MAX {
            return Err(Error::at(Fault::TooManyAliased, node.at));
        }
        Ok((self, node))
    }

    /// The text, and whether it is without quotes and tag.
    fn scalar(self) -> Result<(&'t str, bool, Position), Error> {
        let at = self.place()?;
        match &self.resolved()?.1.kind {
            NodeKind::Scalar { text, plain } => Ok((text, *plain, at)),
            _ => Err(Error::at(Fault::Kind("string scalar"), at)),
        }
    }

    fn text(self) -> Result<&'t str, Error> {
        match self.scalar()? {
            (text, true, at) if is_null(text) => {
                Err(Error::at(Fault::Message(String::from("null is not allowed here")), at))
            }
            (text, ..) => Ok(text),
        }
    }

    /// The scalar as a value of the type `ty`.
    fn parsed<T>(self, ty: &'static str, parse: fn(&str) -> Option<T>) -> Result<T, Error> {
        let (text, _, at) = self.scalar()?;
        parse(trimmed(text)).ok_or_else(|| Error::at(Fault::Scalar(ty), at))
    }

    /// The entries of a list or mapping, of which serde calls the beginning `kind`.
    fn entries(self, kind: &'static str) -> Result<Entries<'t>, Error> {
        let (value, node) = self.resolved()?;
        let end = match &node.kind {
            NodeKind::List if kind == "sequence start" => node.end,
            NodeKind::Mapping if kind == "mapping start" => node.end,
            // a key without a value
            NodeKind::Scalar { text, plain: true } if is_null(text) => value.index,
            _ => return Err(Error::at(Fault::Kind(kind), self.place()?)),
        };
        let first = Self { index: value.index + 1, depth: value.depth + 1, ..value };
        let last_key = value.alias.unwrap_or(node.at);
        Ok(Entries { next: first, end, last_key, count: 0, keys: HashSet::new() })
    }

    fn list<'de, V: Visitor<'de>>(self, len: Option<usize>, visitor: V) -> Result<V::Value, Error> {
        let mut entries = self.entries("sequence start")?;
        let value = visitor.visit_seq(&mut entries)?;
        match len {
            Some(len) if entries.is_left() => {
                let expected = format!("a tuple of size {len}");
                Err(Error::invalid_length(entries.count + 1, &expected.as_str()))
            }
            _ => Ok(value),
        }
    }
}

/// What is left of the entries of a list or mapping.
struct Entries<'t> {
    next: Value<'t>,
    /// The index behind the last one.
    end: usize,
    /// Where the last key stands, or the mapping before there is one.
    last_key: Position,
    count: usize,
    keys: HashSet<&'t str>,
}

impl<'t> Entries<'t> {
    fn is_left(&self) -> bool {
        self.next.index < self.end
    }

    /// The next value, and its place.
    fn take(&mut self) -> Result<(Value<'t>, Position), Error> {
        let value = self.next;
        let node = value.node()?;
        self.next.index = node.end;
        self.count += 1;
        if matches!(node.kind, NodeKind::Alias(_)) || value.alias.is_some() {
            value.aliased_values.set(value.aliased_values.get() + 1);
        }
        Ok((value, node.at))
    }

    fn key(&mut self) -> Result<Option<&'t str>, Error> {
        if !self.is_left() {
            return Ok(None);
        }
        let node = self.next.node()?;
        self.last_key = node.key_at;
        let (key, plain) = node.key();
        let fault = match key {
            "<<" if plain => Fault::MergeKey,
            _ if !self.keys.insert(key) => Fault::DuplicateKey,
            _ => return Ok(Some(key)),
        };
        Err(Error::at(fault, node.key_at))
    }
}

impl<'de> SeqAccess<'de> for &mut Entries<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if !self.is_left() {
            return Ok(None);
        }
        let (value, place) = self.take()?;
        let reference = value.reference()?;
        seed.deserialize(value).map(Some).map_err(|error| error.or_at(reference, Some(place)))
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(key) = self.key()? else { return Ok(None) };
        let value = seed.deserialize(StrDeserializer::new(key));
        value.map(Some).map_err(|error: Error| error.or_at(self.last_key, Some(self.last_key)))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (value, place) = self.take()?;
        seed.deserialize(value).map_err(|error| error.or_at(self.last_key, Some(place)))
    }
}

/// A value and where it stands: the line, the column, the value.
struct LocatedValue<'t> {
    value: Value<'t>,
    parts: std::vec::IntoIter<u64>,
}

impl<'de> SeqAccess<'de> for LocatedValue<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.parts.next() {
            Some(part) => seed.deserialize(U64Deserializer::new(part)),
            None => seed.deserialize(self.value),
        }
        .map(Some)
    }
}

/// Scalars of these types are parsed from their text.
macro_rules! parsed {
    ($($method:ident $visit:ident $ty:literal $parse:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parsed($ty, $parse)?)
        })*
    };
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (value, node) = self.resolved()?;
        match &node.kind {
            NodeKind::List => value.list(None, visitor),
            NodeKind::Mapping => value.deserialize_map(visitor),
            NodeKind::Scalar { text, plain: true } if is_null(text) => visitor.visit_unit(),
            NodeKind::Scalar { text, plain } => match typed(text, *plain) {
                Plain::Bool(truth) => visitor.visit_bool(truth),
                Plain::Negative(number) => visitor.visit_i64(number),
                Plain::Whole(number) => visitor.visit_u64(number),
                Plain::Float(number) if number.is_finite() => visitor.visit_f64(number),
                Plain::Float(_) => Err(Error::at(Fault::NotFinite, self.place()?)),
                Plain::Text(text) => visitor.visit_str(text),
            },
            // an alias of an alias cannot be written
            NodeKind::Alias(_) => visitor.visit_unit(),
        }
    }

    parsed! {
        deserialize_bool visit_bool "boolean" truth;
        deserialize_u8 visit_u8 "u8" unsigned;
        deserialize_u16 visit_u16 "u16" unsigned;
        deserialize_u32 visit_u32 "u32" unsigned;
        deserialize_u64 visit_u64 "u64" unsigned;
        deserialize_i8 visit_i8 "i8" signed;
        deserialize_i16 visit_i16 "i16" signed;
        deserialize_i32 visit_i32 "i32" signed;
        deserialize_i64 visit_i64 "i64" signed;
        deserialize_f64 visit_f64 "floating point" float;
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.resolved()?.1.kind {
            NodeKind::Scalar { text, plain: true } if is_null(text) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != LOCATED {
            return visitor.visit_newtype_struct(self);
        }
        let at = self.reference()?;
        visitor.visit_seq(LocatedValue { value: self, parts: vec![at.line, at.column].into_iter() })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.list(None, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.list(Some(len), visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.list(Some(len), visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut entries = self.entries("mapping start")?;
        let value = visitor.visit_map(&mut entries);
        value.map_err(|error| error.or_at(entries.last_key, None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (value, node) = self.resolved()?;
        let read = match &node.kind {
            NodeKind::Scalar { text, .. } => visitor.visit_enum(StrDeserializer::new(text)),
            NodeKind::Mapping => {
                let mut entries = value.entries("mapping start")?;
                let read = visitor.visit_enum(MapAccessDeserializer::new(&mut entries));
                if read.is_ok() && entries.is_left() {
                    let message = "expected end of mapping after enum variant value";
                    let at = entries.next.node()?.key_at;
                    return Err(Error::at(Fault::Message(message.to_owned()), at));
                }
                read
            }
            _ => Err(Error::unplaced(Fault::Kind("scalar or mapping"))),
        };
        let at = self.place()?;
        read.map_err(|error| error.or_at(at, Some(at)))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.resolved()?.1 {
            Node { kind: NodeKind::Scalar { text, plain: true }, .. } if is_null(text) => {
                visitor.visit_unit()
            }
            node => {
                let message = String::from("unexpected value for unit enum variant");
                Err(Error::at(Fault::Message(message), node.at))
            }
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 char bytes byte_buf unit_struct identifier ignored_any
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// The type that a scalar looks like; one in quotes is a text.
fn typed(whole: &str, plain: bool) -> Plain<'_> {
    let text = trimmed(whole);
    if !plain {
        return Plain::Text(whole);
    }
    let is_beyond = |number: &f64| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        number.is_infinite() && digits.starts_with(|first: char| first.is_ascii_digit())
    };
    let number = || match text.starts_with('-') {
        true => signed(text).map(Plain::Negative),
        false => unsigned(text).map(Plain::Whole),
    };
    let beyond = || text.parse().ok().filter(is_beyond);
    let typed = truth(text).map(Plain::Bool).or_else(number);
    typed.or_else(|| float(text).or_else(beyond).map(Plain::Float)).unwrap_or(Plain::Text(whole))
}

fn truth(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match is_one_of(&["true", "yes", "y", "on"]) {
        false if !is_one_of(&["false", "no", "n", "off"]) => None,
        truth => Some(truth),
    }
}

fn unsigned<T: TryFrom<i128>>(text: &str) -> Option<T> {
    signed(text).filter(|_| !text.starts_with('-'))
}

fn signed<T: TryFrom<i128>>(text: &str) -> Option<T> {
    T::try_from(integer(text)?).ok()
}

/// A whole number in the notations of YAML 1.2, and in binary; `_` may separate its digits.
fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = match digits.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    let digits = if radix == 10 { digits } else { &digits[2..] };
    let is_group = |group: &str| !group.is_empty() && !group.starts_with(['+', '-']);
    if !digits.split('_').all(is_group) || (radix == 10 && digits != "0" && digits.starts_with('0'))
    {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    i128::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), radix).ok()
}

fn float(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        ".nan" | "+.nan" | "-.nan" => Some(f64::NAN),
        ".inf" | "+.inf" => Some(f64::INFINITY),
        "-.inf" => Some(f64::NEG_INFINITY),
        _ => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}
