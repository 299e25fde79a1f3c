//! What all probes look at.

use forebay_block::{BlockDevice, Machine, Mount};

use crate::environment::Environment;
use crate::finding::Finding;

/// A directory, and all that is known of what is below it.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) environment: &'a Environment,
    pub(crate) mount: Option<Mount>,
    /// The block device of the filesystem; a network has none.
    pub(crate) device: Option<BlockDevice>,
}

impl<'a> Subject<'a> {
    /// What is below the directory of `environment`.
    pub(crate) fn new(machine: &'a Machine, environment: &'a Environment) -> Self {
        Self {
            mount: Mount::holding(&machine.mountinfo(), &environment.dir),
            device: BlockDevice::find(machine, environment.device),
            machine,
            environment,
        }
    }

    /// That `what`, which the file `path` tells, is not seen; nothing where the file is there and
    /// could not be read, for then it is said of all such files.
    pub(crate) fn unknown(&self, path: &str, what: &str) -> Vec<Finding> {
        if self.machine.hides(path) { Vec::new() } else { vec![Finding::unknown(what)] }
    }

    /// The kind of filesystem.
    pub(crate) fn kind(&self) -> &str {
        self.mount.as_ref().map_or("unknown", |mount| &mount.kind)
    }

    /// The disks at the bottom.
    pub(crate) fn disks(&self) -> Vec<&BlockDevice> {
        self.device.as_ref().map(BlockDevice::leaves).unwrap_or_default()
    }

    /// Whether all disks are solid: then parallel requests pay.
    pub(crate) fn is_solid(&self) -> bool {
        let disks = self.disks();
        !disks.is_empty()
            && disks.iter().all(|disk| disk.is_rotational(self.machine) == Some(false))
    }

    /// The disks, as a list of names, by what `of` says of each.
    pub(crate) fn disks_by<K: PartialEq>(
        &self,
        of: impl Fn(&BlockDevice) -> Option<K>,
    ) -> Vec<(K, String)> {
        let mut groups: Vec<(K, Vec<&str>)> = Vec::new();
        for disk in self.disks() {
            let Some(key) = of(disk) else { continue };
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, disks)) => disks.push(&disk.disk),
                None => groups.push((key, vec![&disk.disk])),
            }
        }
        groups.into_iter().map(|(key, disks)| (key, disks.join(", "))).collect()
    }

    /// The disks by what `/sys` says about their requests under `name`.
    pub(crate) fn by_value(&self, name: &str) -> Vec<(String, String)> {
        self.disks_by(|disk| disk.queue(self.machine, name))
    }

    /// The directory as a shell takes it.
    pub(crate) fn dir(&self) -> String {
        quoted(&self.environment.dir.display().to_string())
    }

    /// Where the filesystem is mounted, as a shell takes it.
    pub(crate) fn mount_point(&self) -> String {
        let point = self.mount.as_ref().map(|mount| mount.point.display().to_string());
        quoted(&point.unwrap_or_else(|| self.environment.dir.display().to_string()))
    }

    /// The directory and what it is on, for people.
    pub(crate) fn describe(&self) -> String {
        let on = match (&self.device, &self.mount) {
            (Some(device), _) => device.describe(),
            (None, Some(mount)) => mount.source.clone(),
            (None, None) => format!("device {}", self.environment.device),
        };
        format!("{}: {} on {on}", self.environment.dir.display(), self.kind())
    }
}

/// The command that sets `name` of each of the disks listed.
pub(crate) fn set_queue(disks: &str, name: &str, value: &str) -> String {
    let paths = disks.split(", ").map(|disk| format!("/sys/block/{disk}/queue/{name}"));
    format!("echo {value} | sudo tee {}", paths.collect::<Vec<_>>().join(" "))
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if path.chars().all(plain) { path.into() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_to_a_shell() {
        assert_eq!(quoted("/var/lib/a-b_c.d"), "/var/lib/a-b_c.d");
        assert_eq!(quoted("/a b/$c"), "'/a b/$c'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
    }
}
