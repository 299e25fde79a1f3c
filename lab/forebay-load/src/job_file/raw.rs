//! The keys of a job file and of a sched-groups file, as they stand in the text.

use std::fmt;

use forebay_config::{ByteSize, Located, Span};
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::model::{Gaps, JobKind};

/// An entry of a job file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawJob {
    pub(super) name: Located<String>,
    #[serde(rename = "type")]
    pub(super) kind: Located<JobKind>,
    pub(super) shards: Located<RawShards>,
    pub(super) data_size: Option<Located<ByteSize>>,
    pub(super) files_count: Option<Located<u64>>,
    /// An earlier place of the option of the same name.
    pub(super) extent_allocation_size_hint: Option<ByteSize>,
    pub(super) shard_info: Option<Located<RawShardInfo>>,
    #[serde(default, deserialize_with = "options")]
    pub(super) options: RawOptions,
}

/// What each shard does.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawShardInfo {
    pub(super) parallelism: Option<Located<u64>>,
    pub(super) rps: Option<Located<u64>>,
    pub(super) batch: Option<Located<u64>>,
    pub(super) limit: Option<Located<u64>>,
    pub(super) reqsize: Option<Located<ByteSize>>,
    pub(super) shares: Option<Located<u64>>,
    pub(super) class: Option<Located<String>>,
    pub(super) bandwidth: Option<Located<ByteSize>>,
    pub(super) start: Option<Span>,
    pub(super) think_time: Option<Located<Span>>,
    pub(super) think_after: Option<Located<Span>>,
    pub(super) execution_time: Option<Located<Span>>,
    pub(super) vectorized: Option<Located<bool>>,
    pub(super) iov_count: Option<Located<u64>>,
}

/// How files are opened, and how fibers wait.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOptions {
    #[serde(default)]
    pub(super) dsync: bool,
    #[serde(default)]
    pub(super) fallocate: bool,
    #[serde(default)]
    pub(super) pause_distribution: Gaps,
    /// Read so that a misspelt one is found, and not used: forebay waits in one way only.
    #[serde(default, rename = "sleep_type")]
    pub(super) _sleep_type: RawSleep,
    pub(super) extent_allocation_size_hint: Option<ByteSize>,
    pub(super) sloppy_size_hint: Option<ByteSize>,
    pub(super) fsync_every: Option<Located<u64>>,
    pub(super) extent_size: Option<Located<ByteSize>>,
    pub(super) paced: Option<Located<bool>>,
}

/// The options, or those of a job without any: programs that write YAML leave the key without a
/// value.
fn options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RawOptions, D::Error> {
    Option::<RawOptions>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// How the original waits for the next tick.
#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawSleep {
    #[default]
    Lowres,
    Steady,
    Busyloop,
}

/// `all`, or a list of shard numbers.
pub(super) enum RawShards {
    All,
    List(Vec<Located<u64>>),
}

impl<'de> Deserialize<'de> for RawShards {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ShardsVisitor;

        impl<'de> Visitor<'de> for ShardsVisitor {
            type Value = RawShards;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`all` or a list of shard numbers such as [0, 2]")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawShards, E> {
                match text {
                    "all" => Ok(RawShards::All),
                    _ => Err(E::custom(format!(
                        "`{text}` is neither `all` nor a list of shard numbers such as [0, 2]"
                    ))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RawShards, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(RawShards::List)
            }
        }

        deserializer.deserialize_any(ShardsVisitor)
    }
}

/// An entry of a sched-groups file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub(super) name: Located<String>,
    pub(super) shares: Located<u64>,
    pub(super) parent: Option<Located<String>>,
}
