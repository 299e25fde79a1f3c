//! What the YAML library says about a text, in words that tell its reader what to do.

use serde::de::DeserializeOwned;

use crate::deserializer::{Error, Fault};
use crate::file_kind;
use crate::quote::{escaped, printable};
use crate::schema::Schema;
use crate::syntax_tree::{Node, NodeKind, SyntaxTree};
use crate::{ConfigError, Position, known, text_kind};

/// The error in the file called `file` with this text and tree, read as a `T`, that `error`
/// amounts to.
pub(crate) fn config_error<T: DeserializeOwned>(
    file: &str,
    text: &str,
    tree: &SyntaxTree<'_>,
    error: &Error,
) -> ConfigError {
    let (at, fault) = (error.position().unwrap_or_default(), error.fault());
    if let Fault::MissingField(field) = fault {
        return missing_key(file, tree, at, field);
    }
    let value = || tree.value_at(at);
    let keyed = || tree.keyed_at(at);
    let (node, at) = match fault {
        Fault::UnknownField { .. } | Fault::DuplicateKey | Fault::MergeKey => {
            (keyed().or_else(value), at)
        }
        // The position is that of the value or of its key; a mapping may begin where its first key does.
        Fault::Unfit { unexpected, .. } => {
            let node = value().filter(|node| node.kind.is(unexpected)).or_else(keyed);
            (node, node.map_or(at, |node| node.at))
        }
        _ => (value().or_else(keyed), at),
    };
    let key = node.and_then(|node| tree.path(node));
    let message = match fault {
        Fault::UnknownField { field, expected } => {
            let advice = Schema::of::<T>().advice(field, expected, tree, node);
            format!("unknown key `{}`; {advice}", printable(field))
        }
        _ => message(fault, node.map(|node| tree.resolved(node))),
    };
    // an error at the very beginning suggests a wrong file, not a mistake in the right one
    let kind = match fault {
        Fault::UnknownField { field, .. } if key.as_ref() == Some(field) => {
            file_kind::of_tree(tree, Some(field))
        }
        _ if key.is_none() && tree.begins_at(at) => {
            file_kind::of_tree(tree, None).or_else(|| text_kind::of(text))
        }
        _ => None,
    };
    match kind {
        // a key that is known elsewhere may also be a mistake in the right file
        Some(kind) if matches!(fault, Fault::UnknownField { .. }) => {
            ConfigError::at(file, at, key, format!("{kind}; {message}"))
        }
        Some(kind) => ConfigError::at(file, at, key, kind),
        None => ConfigError::at(file, at, key, message),
    }
}

/// An error at the mapping that lacks `field`, or at the key that leads to it.
fn missing_key(file: &str, tree: &SyntaxTree<'_>, at: Position, field: &str) -> ConfigError {
    // The position is that of the last key of the mapping, or the mapping's when it has none.
    let keyed = tree.keyed_at(at).filter(|node| node.at != at);
    let mapping = keyed.map_or_else(|| tree.value_at(at), |node| tree.parent(node));
    let path = mapping.and_then(|node| tree.path(node));
    let key = path.map_or_else(|| field.to_owned(), |path| format!("{path}.{field}"));
    let at = mapping.map_or(at, |node| node.key_at);
    ConfigError::at(file, at, Some(key), format!("the key `{field}` is missing; add it"))
}

fn message(fault: &Fault, node: Option<&Node<'_>>) -> String {
    match fault {
        Fault::UnknownVariant { variant, expected } => {
            let advice = known(variant, expected.iter().copied());
            format!("unknown value `{}`; {advice}", printable(variant))
        }
        Fault::DuplicateKey => {
            String::from("the key appears twice in this mapping; remove one of them")
        }
        Fault::Unfit { unexpected, expected } => {
            format!("found {}; expected {}", printable(yaml_term(unexpected)), yaml_term(expected))
        }
        Fault::Length { len, expected } => format!("found {len} values; expected {expected}"),
        Fault::Kind(kind) => format!("found {}; expected {}", found(node), yaml_term(kind)),
        Fault::Scalar(ty) => {
            let instead =
                whole_number(node, ty).map_or_else(String::new, |n| format!("; write {n}"));
            format!("found {}; expected {}{instead}", found(node), type_in_words(node, ty))
        }
        Fault::NotFinite => format!("found {}; expected a finite number", found(node)),
        Fault::MergeKey => String::from("merge keys are not supported; write the keys out"),
        Fault::TooManyAliased => {
            String::from("the aliases stand for too many values; write them out")
        }
        Fault::Message(message) => escaped(message),
        Fault::UnknownField { .. } | Fault::MissingField(_) => String::new(),
    }
}

/// What stands at a place, as a person would call it.
fn found(node: Option<&Node<'_>>) -> String {
    match node.map(|node| &node.kind) {
        Some(NodeKind::Scalar { text, .. }) => format!("`{}`", printable(text)),
        Some(NodeKind::List) => String::from("a list"),
        Some(NodeKind::Mapping) => String::from("a mapping"),
        Some(NodeKind::Alias(_)) | None => String::from("another value"),
    }
}

/// Serde's names of structures, in the words of this crate.
fn yaml_term(term: &str) -> &str {
    match term {
        "sequence" => "a list",
        "sequence start" => "a list (`- ` before each item, or `[a, b]`)",
        "map" => "a mapping",
        "mapping start" => "a mapping (`KEY: VALUE` lines)",
        "string scalar" => "a single value",
        "unit variant" => "a name alone",
        "newtype variant" | "tuple variant" | "struct variant" => {
            "a mapping from this name to what belongs to it"
        }
        "enum" => "a name",
        "scalar or mapping" => "a name, or a mapping from a name to what belongs to it",
        other => other,
    }
}

/// The whole number that a scalar such as `1e3` or `4.0` amounts to, where one is expected.
fn whole_number(node: Option<&Node<'_>>, ty: &str) -> Option<u64> {
    let Some(NodeKind::Scalar { text, .. }) = node.map(|node| &node.kind) else { return None };
    let is_written_so = ty.starts_with('u') && text.contains(['.', 'e', 'E']);
    let number = text.parse::<f64>().ok().filter(|_| is_written_so)?;
    // up to here every whole number is an f64
    let is_whole = number.fract() == 0.0 && (0.0..=9e15).contains(&number);
    is_whole.then_some(number as u64)
}

/// Whether a whole number stands there, which may be too large.
fn is_digits(node: Option<&Node<'_>>) -> bool {
    let Some(NodeKind::Scalar { text, .. }) = node.map(|node| &node.kind) else { return false };
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is expected in the place of a node that is no value of the Rust type `ty`.
fn type_in_words(node: Option<&Node<'_>>, ty: &str) -> String {
    let max = match ty {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        // The range of the key is narrower, and not known here.
        "u64" if is_digits(node) => return String::from("a smaller number"),
        "u64" => return String::from("a whole number, 0 or more"),
        "i8" | "i16" | "i32" | "i64" => return String::from("a whole number"),
        "floating point" => return String::from("a number, such as 0.5"),
        "boolean" => return String::from("`true` or `false`"),
        other => return format!("a value of type {other}"),
    };
    format!("a whole number from 0 to {max}")
}
