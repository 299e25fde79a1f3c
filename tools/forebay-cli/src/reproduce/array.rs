//! The array and the load of experiments on striped arrays.

use forebay_config::ByteSize;
use forebay_core::SHARDS_MAX;
use forebay_experiments::{ARRAYS, ArraySetting, Experiment};

use crate::failure::Failure;
use crate::whole_number;

const BLOCK: u64 = 4096;
const CHUNK_MAX: u64 = 1 << 30;

/// Options of the experiments in [`ARRAYS`], which are as published without them.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct ArrayOptions {
    /// Number of shards, of 2025-parallelism and 2025-raid0-placement [default: as published]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=SHARDS_MAX as u64))]
    shards: Option<u32>,
    /// Requests in flight of each shard, of the same experiments [default: 8]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(1..=256))]
    fibers: Option<u32>,
    /// Chunk size of the array, of the same experiments [default: 1MB]
    #[arg(long, value_name = "SIZE", value_parser = chunk)]
    chunk: Option<u64>,
    /// Number of disks of the array, of the same experiments [default: 4]
    #[arg(long, value_name = "N", value_parser = whole_number::within::<u32>(2..=64))]
    members: Option<u32>,
}

fn chunk(text: &str) -> Result<u64, String> {
    let ByteSize(bytes) = text.parse().map_err(|error| format!("{error}"))?;
    if (BLOCK..=CHUNK_MAX).contains(&bytes) && bytes.is_multiple_of(BLOCK) {
        Ok(bytes)
    } else {
        Err("expected a multiple of 4kB, at most 1GB".into())
    }
}

impl ArrayOptions {
    /// What is set, if all chosen experiments have it.
    pub(super) fn setting(self, chosen: &[Experiment]) -> Result<ArraySetting, Failure> {
        let Self { shards, fibers, chunk, members } = self;
        let setting = ArraySetting { shards, fibers, chunk, members };
        let other = chosen.iter().find(|experiment| !ARRAYS.contains(&experiment.name));
        match (self.given().first(), other) {
            (Some((option, _)), Some(Experiment { name, .. })) => Err(Failure::Input(format!(
                "{name} has no --{option}; name only {} with it",
                ARRAYS.join(" and ")
            ))),
            _ => Ok(setting),
        }
    }

    /// The options that were given, and their values.
    fn given(self) -> Vec<(&'static str, u64)> {
        let Self { shards, fibers, chunk, members } = self;
        let all = [
            ("shards", shards.map(u64::from)),
            ("fibers", fibers.map(u64::from)),
            ("chunk", chunk),
            ("members", members.map(u64::from)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The same on a command line.
    pub(super) fn arguments(self) -> String {
        self.given().iter().map(|(name, value)| format!(" --{name} {value}")).collect()
    }
}
