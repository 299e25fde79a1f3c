//! The keys `shared` and `share_of_disk`.

use std::fmt;
use std::path::PathBuf;

use forebay_config::{ConfigError, Located, Source};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::properties::Sharing;

/// `shared` as it is written: a boolean, or the path of the segment.
#[derive(Default)]
pub(super) struct Shared(Option<Segment>);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    path: Option<Located<PathBuf>>,
}

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SharedVisitor)
    }
}

struct SharedVisitor;

impl<'de> Visitor<'de> for SharedVisitor {
    type Value = Shared;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, or a mapping with a `path`")
    }

    fn visit_bool<E>(self, shared: bool) -> Result<Shared, E> {
        Ok(Shared(shared.then(Segment::default)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shared, A::Error> {
        Segment::deserialize(MapAccessDeserializer::new(map)).map(|segment| Shared(Some(segment)))
    }
}

pub(super) fn check(
    source: Source<'_>,
    shared: &Shared,
    part: Option<Located<f64>>,
) -> Result<Sharing, ConfigError> {
    match (&shared.0, part) {
        (None, None) => Ok(Sharing::Alone),
        (Some(_), Some(part)) => {
            let message = "a disk that is `shared` has no fixed part; keep one of the two";
            Err(source.error(part.at, message))
        }
        (None, Some(part)) if (1e-6..=1.0).contains(&part.value) => Ok(Sharing::part(part.value)),
        (None, Some(part)) => {
            let message = format!("found {:?}; expected 0.000001 to 1, such as 0.5", part.value);
            Err(source.error(part.at, message))
        }
        (Some(Segment { path: None }), None) => Ok(Sharing::Segment { path: None }),
        (Some(Segment { path: Some(path) }), None) => {
            if path.value.is_absolute() && path.value.file_name().is_some() {
                return Ok(Sharing::Segment { path: Some(path.value.clone()) });
            }
            let message = "expected the absolute path of a file, such as /run/forebay/data";
            Err(source.error(path.at, message))
        }
    }
}
