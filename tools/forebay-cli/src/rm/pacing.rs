//! How fast files are freed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use forebay::properties::{DiscardCost, Properties};
use forebay::{Class, Deleter, DeleterOptions, DiskConfig, Policy, Scheduler};
use forebay_config::ByteSize;

use crate::failure::Failure;
use crate::{properties_file, span};

/// What is freed per second where nothing else is said: half of what was harmless on a disk of 2024,
/// in extents of a megabyte or more.
const RATE_DEFAULT: u64 = 256 << 20;

/// The same in discards.
const COMMANDS_DEFAULT: u64 = 512;

/// Two steps in each tenth of a second.
const STEP: Duration = Duration::from_millis(50);

/// How fast.
#[derive(Args)]
pub(super) struct PacingOptions {
    /// Free at most this many bytes per second, such as 500MB [default, without --commands and
    /// --disk-share: 256 MB and 512 discards per second, and more if the file system is nearly
    /// full]
    #[arg(long, value_name = "SIZE")]
    rate: Option<ByteSize>,
    /// Send at most this many discards per second: each frees an extent, or a part of one
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    commands: Option<u64>,
    /// Limit discards to this share of the disk's time, such as 20%, by the costs of bytes and
    /// commands in --properties
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "properties")]
    disk_share: Option<f64>,
    /// The properties of the disk: a file that `forebay tune` wrote
    #[arg(long, value_name = "FILE")]
    properties: Option<PathBuf>,
    /// The longest time for which a step may keep the disk busy, by the costs in --properties
    #[arg(long, value_name = "TIME", value_parser = span::parse_positive, requires = "properties")]
    latency_goal: Option<Duration>,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) bytes: Option<u64>,
    pub(super) commands: Option<u64>,
    /// Whether they hold whatever happens.
    strict: bool,
}

/// A pace that was asked for.
pub(super) struct Pacing {
    pub(super) rates: Rates,
    class: Class,
}

/// Reads `20%` or `20`.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let part = number.map(|percent| percent / 100.0).filter(|part| *part > 0.0 && *part <= 1.0);
    part.ok_or_else(|| String::from("expected more than 0% and at most 100%, such as 20%"))
}

fn at_least_one(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| String::from("expected a whole number from 1 on, such as 500"))
}

impl PacingOptions {
    /// The pace for files in `dir`.
    pub(super) fn pacing(&self, dir: &Path) -> Result<Pacing, Failure> {
        if self.rate.is_some_and(|rate| rate.0 == 0) {
            return Err(Failure::Input("--rate 0 would never end; give at least 1".into()));
        }
        let properties = self.properties.as_deref().map(properties_file::load).transpose()?;
        let share = self.disk_share.zip(properties.as_ref());
        let share = share.map(|(part, properties)| of_disk(part, properties, dir)).transpose()?;
        let scheduler = self.scheduler(properties.as_ref())?;
        let class = scheduler.add_class("rm", 100);
        let class = class.map_err(|error| Failure::Run(error.to_string()))?;
        Ok(Pacing { rates: self.rates(share), class })
    }

    fn rates(&self, share: Option<(u64, u64)>) -> Rates {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let rates = Rates {
            bytes: least(self.rate.map(|rate| rate.0), share.map(|(bytes, _)| bytes)),
            commands: least(self.commands, share.map(|(_, commands)| commands)),
            strict: true,
        };
        if rates.bytes.is_some() || rates.commands.is_some() {
            return rates;
        }
        let (bytes, commands) = (Some(RATE_DEFAULT), Some(COMMANDS_DEFAULT));
        Rates { bytes, commands, strict: false }
    }

    fn scheduler(&self, properties: Option<&Properties>) -> Result<Scheduler, Failure> {
        let mut builder = Scheduler::builder();
        for disk in properties.iter().flat_map(|properties| &properties.disks) {
            let mut config = DiskConfig::from_properties(disk);
            if let Some(latency_goal) = self.latency_goal {
                let base_latency = disk.measured.base_latency;
                config = config.policy(Policy::PaceWindow { latency_goal, base_latency });
            }
            builder = builder.disk(config);
        }
        builder.build().map_err(|error| Failure::Input(error.to_string()))
    }
}

/// Bytes and commands per second that take this part of the time of the disk of `dir`.
fn of_disk(part: f64, properties: &Properties, dir: &Path) -> Result<(u64, u64), Failure> {
    let disk = properties.disk_for(dir);
    let disk = disk.map_err(|error| Failure::Input(error.to_string()))?;
    let cost = disk.measured.discard.ok_or_else(|| {
        Failure::Input(
            "--disk-share needs discard_us and discard_gib_us in --properties, which `forebay tune` \
             measures; or give --rate"
                .into(),
        )
    })?;
    Ok(per_second(part, cost))
}

fn per_second(part: f64, cost: DiscardCost) -> (u64, u64) {
    let gib_seconds = cost.gib.as_secs_f64().max(1e-9);
    let bytes = part * (1_u64 << 30) as f64 / gib_seconds;
    let commands = part / cost.command.as_secs_f64().max(1e-9);
    ((bytes as u64).max(1), (commands as u64).max(1))
}

impl Pacing {
    /// What deletes at this pace; what waits for it waits in `trash_in`, or where it is if that is
    /// not said.
    pub(super) fn deleter(&self, trash_in: Option<&Path>) -> Result<Deleter, Failure> {
        let mut options = DeleterOptions::new().step(STEP).backlog_age_max(None);
        if let Some(bytes) = self.rates.bytes {
            options = options.rate(bytes);
        }
        if let Some(commands) = self.rates.commands {
            options = options.commands_per_second(commands);
        }
        if self.rates.strict {
            options = options.free_bytes_min(Some(0));
        }
        if let Some(dir) = trash_in {
            options = options.trash_in(dir);
        }
        Deleter::new(&self.class, options).map_err(|error| Failure::Run(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_disk_is_so_many_bytes_and_commands() {
        let cost = DiscardCost { command: Duration::from_micros(50), gib: Duration::from_secs(1) };
        assert_eq!(per_second(0.25, cost), (1 << 28, 5_000));
        let nothing = DiscardCost { command: Duration::ZERO, gib: Duration::ZERO };
        assert!(per_second(1.0, nothing).0 > 1 << 50);
        let slow = DiscardCost { command: Duration::from_secs(100), gib: Duration::MAX };
        assert_eq!(per_second(0.01, slow), (1, 1));
    }

    #[test]
    fn a_part_is_between_nothing_and_all() {
        assert_eq!(percent("20%"), Ok(0.2));
        assert_eq!(percent("100"), Ok(1.0));
        for text in ["", "%", "0", "0%", "101%", "-1%", "x", "nan", "inf"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
