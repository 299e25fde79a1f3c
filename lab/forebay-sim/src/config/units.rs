//! Times as whole numbers of a unit, as serde reads and writes them.

/// Spans in microseconds.
pub(super) mod micros {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_micros() as u64)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

/// Spans in milliseconds.
pub(super) mod millis {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_millis() as u64)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// Latency targets as they are written.
pub(crate) mod latency_target {
    use forebay_core::LatencyTarget;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        target: &Option<LatencyTarget>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        target.map(|target| target.to_string()).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<LatencyTarget>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Times in milliseconds since the start.
pub(super) mod time_millis {
    use core::time::Duration;

    use forebay_core::{Time, saturating_nanos};
    use serde::{Deserializer, Serializer};

    use super::millis;

    pub(crate) fn serialize<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
        millis::serialize(&Duration::from_nanos(at.as_nanos()), to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Time, D::Error> {
        millis::deserialize(from).map(|span| Time::from_nanos(saturating_nanos(span)))
    }
}
