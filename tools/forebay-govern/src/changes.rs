//! The changes of the machine's settings, and how they are restored.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::GovernError;
use crate::files::{Files, is_gone};
use crate::state_file::StateFile;

/// The file with the id of the machine's present boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The number of changes from which ended processes are forgotten.
const CHANGES_MIN: usize = 64;

/// The format of a setting in a file of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The whole file is the setting.
    Whole,
    /// The setting is the word in brackets.
    Chosen,
    /// The setting is the line of the disk, which `default` removes.
    Weight,
    /// The setting is the line of the disk in `io.cost.qos`. With `ctrl=auto` its figures are the
    /// kernel's.
    Qos,
    /// The setting is the line of the disk in `io.cost.model`.
    Model,
    /// The setting is whether the cgroups below may use the io controller.
    Controller,
    /// The setting is the filter of a tracepoint: `none` without a filter, which writing 0 removes.
    Filter,
}

/// One change of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Setting {
        path: PathBuf,
        kind: Kind,
        found: String,
    },
    /// A cgroup was made. The processes of a load end with theirs.
    Directory {
        path: PathBuf,
        is_load: bool,
    },
    Process {
        pid: u32,
        started: u64,
        from: PathBuf,
        to: PathBuf,
    },
}

/// The settings before the changes, as the state file holds them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    boot: String,
    disk: String,
    number: String,
    /// The sequence number of the disk, which differs from that of other disks with the same name.
    sequence: String,
    changes: Vec<Change>,
}

/// The changes of a machine. Each is recorded in the state file before it is made.
#[derive(Debug)]
pub(crate) struct Changes<F> {
    pub(crate) files: F,
    state: StateFile,
    found: Found,
    /// The number of changes at which ended processes are forgotten next.
    forget_at: usize,
}

impl<F: Files> Changes<F> {
    /// Begins, after restoring the changes that an earlier governor of the disk has left, which `say`
    /// gets.
    pub(crate) fn begin(
        files: F,
        state: StateFile,
        disk: &str,
        number: &str,
        say: &mut dyn FnMut(String),
    ) -> Result<Self, GovernError> {
        if let Some(left) = put_back(&files, &state)?.filter(|left| !left.is_empty()) {
            say(format!("a governor of {disk} was killed; put back: {}", left.join(", ")));
        }
        let found = Found {
            boot: trimmed(&files, Path::new(BOOT)),
            sequence: sequence(&files, disk),
            disk: disk.into(),
            number: number.into(),
            changes: Vec::new(),
        };
        Ok(Self { files, state, found, forget_at: CHANGES_MIN })
    }

    /// Records a setting before it is changed. A missing file is ignored.
    pub(crate) fn keep(&mut self, kind: Kind, path: &Path) -> Result<(), GovernError> {
        let is_kept =
            |change: &Change| matches!(change, Change::Setting { path: kept, .. } if kept == path);
        if self.found.changes.iter().any(is_kept) {
            return Ok(());
        }
        let found = match self.files.read(path) {
            Ok(text) => kind.found(&text, &self.found.number),
            // Some disks do not have all settings.
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(());
            }
            Err(error) => return Err(GovernError::at(path)(error)),
        };
        let shared = (kind == Kind::Controller)
            .then(|| found_by_another(&self.state, &self.found.boot, path));
        let found = shared.flatten().unwrap_or(found);
        self.add(Change::Setting { path: path.into(), kind, found })
    }

    /// Whether the disk is there, and no other one that has its name now.
    pub(crate) fn has_disk(&self) -> bool {
        let Found { disk, sequence: found, .. } = &self.found;
        let stat = Path::new("/sys/block").join(disk).join("stat");
        self.files.read(&stat).is_ok() && sequence(&self.files, disk) == *found
    }

    /// Records and changes a setting.
    pub(crate) fn set(&mut self, kind: Kind, path: &Path, text: &str) -> Result<(), GovernError> {
        self.keep(kind, path)?;
        self.files.write(path, text).map_err(GovernError::at(path))
    }

    /// Sets a weight of a cgroup; those above it, from `root` on, let it have one.
    pub(crate) fn set_weight(
        &mut self,
        root: &Path,
        cgroup: &Path,
        text: &str,
    ) -> Result<(), GovernError> {
        let above = cgroup.ancestors().skip(1).take_while(|above| above.starts_with(root));
        for above in above.collect::<Vec<_>>().into_iter().rev() {
            let control = above.join("cgroup.subtree_control");
            self.keep(Kind::Controller, &control)?;
            self.files.write(&control, "+io").map_err(|error| match is_busy(&error) {
                true => GovernError::Missing(format!(
                    "{above} has processes of its own, so cgroups in it can have no weights: give \
                     {above} to the class",
                    above = above.display()
                )),
                false => GovernError::at(&control)(error),
            })?;
        }
        self.set(Kind::Weight, &cgroup.join("io.weight"), text)
    }

    /// Makes a cgroup, for a load whose processes end when it is removed, or for processes that are moved
    /// there. One that another program has made is used, and stays.
    pub(crate) fn make(&mut self, path: &Path, is_load: bool) -> Result<(), GovernError> {
        if self.files.read(&path.join("cgroup.procs")).is_ok() {
            return Ok(());
        }
        self.add(Change::Directory { path: path.into(), is_load })?;
        self.files.make_directory(path).map_err(GovernError::at(path))
    }

    /// Moves a process, which may have ended. `started` identifies it among processes with the same
    /// number.
    pub(crate) fn move_process(
        &mut self,
        (pid, started): (u32, u64),
        from: &Path,
        to: &Path,
    ) -> Result<(), GovernError> {
        if self.found.changes.len() >= self.forget_at {
            self.forget_ended();
        }
        let (from, path) = (from.into(), to.into());
        self.add(Change::Process { pid, started, from, to: path })?;
        match self.files.write(&to.join("cgroup.procs"), &pid.to_string()) {
            Err(error) if !is_gone(&error) => Err(GovernError::at(to)(error)),
            _ => Ok(()),
        }
    }

    /// Forgets processes that have ended, so that the state stays small. The first of each cgroup is kept:
    /// it says where the others in that cgroup came from.
    fn forget_ended(&mut self) {
        let (files, mut cgroups) = (&self.files, BTreeSet::new());
        self.found.changes.retain(|change| match change {
            Change::Process { pid, started, to, .. } => {
                cgroups.insert(to.clone()) || start_of(files, *pid).ok() == Some(Some(*started))
            }
            _ => true,
        });
        self.forget_at = (2 * self.found.changes.len()).max(CHANGES_MIN);
    }

    fn add(&mut self, change: Change) -> Result<(), GovernError> {
        if !self.found.changes.contains(&change) {
            self.found.changes.push(change);
            let text = serde_json::to_string_pretty(&self.found);
            let text = text.map_err(|error| GovernError::Failed(error.to_string()))?;
            self.state.write(&text)?;
        }
        Ok(())
    }

    /// Restores all changes.
    pub(crate) fn put_back(&self) -> Result<(), GovernError> {
        put_back(&self.files, &self.state).map(drop)
    }
}

impl Kind {
    /// The setting of the disk with this number in `text`.
    fn found(self, text: &str, number: &str) -> String {
        let text = text.trim_end();
        let line = || text.lines().find(|line| line.split(' ').next() == Some(number));
        match self {
            Self::Whole => text.into(),
            Self::Filter => if text == "none" { "0" } else { text }.into(),
            Self::Chosen => {
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                chosen.map_or(text, |(chosen, _)| chosen).into()
            }
            Self::Weight => line().map_or_else(|| format!("{number} default"), Into::into),
            Self::Qos | Self::Model => {
                let off = if self == Self::Qos { " enable=0" } else { "" };
                let line = line().map_or_else(|| format!("{number}{off} ctrl=auto"), Into::into);
                match line.split_once("ctrl=auto") {
                    Some((before, _)) => format!("{before}ctrl=auto"),
                    None => line,
                }
            }
            Self::Controller => {
                let has = text.split(' ').any(|name| name == "io");
                if has { "+io".into() } else { "-io".into() }
            }
        }
    }
}

impl Change {
    /// Restores the setting, if it still exists and differs from the recorded one. Returns whether it did.
    fn put_back(&self, files: &impl Files, found: &Found) -> io::Result<bool> {
        let is_other_disk = || sequence(files, &found.disk) != found.sequence;
        match self {
            Self::Setting { path, kind, found: before } => {
                let is_of_disk = path.starts_with("/sys/block")
                    || matches!(kind, Kind::Weight | Kind::Qos | Kind::Model);
                if is_of_disk && is_other_disk() {
                    return Ok(false);
                }
                if kind.found(&files.read(path)?, &found.number) == *before {
                    return Ok(false);
                }
                match files.write(path, before) {
                    // Other programs use the controller that this governor has enabled.
                    Err(error) if *kind == Kind::Controller && is_busy(&error) => return Ok(false),
                    written => written?,
                }
            }
            Self::Directory { path, is_load: true } => files.remove_load(path)?,
            Self::Directory { path, .. } => {
                // Processes that were started there in the meantime are moved too.
                let home = found.home(files, path);
                for pid in files.read(&path.join("cgroup.procs"))?.lines() {
                    files.write(&home.join("cgroup.procs"), pid).or_else(unless_gone)?;
                }
                files.remove_directory(path)?;
            }
            Self::Process { pid, started, from, to } => {
                let procs = files.read(&to.join("cgroup.procs"))?;
                // The process may have moved or ended, and another process may have its number.
                if start_of(files, *pid)? != Some(*started)
                    || !procs.lines().any(|one| one == pid.to_string())
                {
                    return Ok(false);
                }
                files.write(&from.join("cgroup.procs"), &pid.to_string())?;
            }
        }
        Ok(true)
    }
}

impl Found {
    /// Where a process of a cgroup came from that is still there, or else the cgroup above it.
    fn home<'a>(&'a self, files: &impl Files, cgroup: &'a Path) -> &'a Path {
        let mut from = self.changes.iter().filter_map(|change| match change {
            Change::Process { from, to, .. } if to == cgroup => Some(from.as_path()),
            _ => None,
        });
        let is_there = |from: &&Path| files.read(&from.join("cgroup.procs")).is_ok();
        from.find(is_there).or_else(|| cgroup.parent()).unwrap_or(cgroup)
    }
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    if is_gone(&error) { Ok(()) } else { Err(error) }
}

/// Restores the changes in the state file, the last one first, and removes the file. Returns what it
/// restored or removed; `None` without a file.
pub(crate) fn put_back(
    files: &impl Files,
    state: &StateFile,
) -> Result<Option<Vec<String>>, GovernError> {
    let Some(text) = state.read()? else { return Ok(None) };
    let place = state.path.display();
    let found: Found = serde_json::from_str(&text).map_err(|error| {
        GovernError::Failed(format!(
            "cannot read {place}: {error}; restore its settings by hand, and remove it"
        ))
    })?;
    let _alone = state.put_back_alone()?;
    let (mut restored, mut failed) = (Vec::new(), Vec::new());
    // Settings do not survive a reboot.
    if trimmed(files, Path::new(BOOT)) == found.boot {
        let is_own = |change: &&Change| !change.is_needed_by_another(state, &found.boot);
        for change in found.changes.iter().rev().filter(is_own) {
            match change.put_back(files, &found) {
                Ok(true) => restored.push(change.name()),
                Err(error) if !is_gone(&error) => {
                    failed.push(format!("{}: {error}", change.name()));
                }
                _ => {}
            }
        }
        if !failed.is_empty() {
            let (failed, disk) = (failed.join(", "), &found.disk);
            return Err(GovernError::Failed(format!(
                "not put back: {failed}; {place} has what was found: forebay govern --restore {disk}"
            )));
        }
    }
    state.remove()?;
    Ok(Some(restored))
}

/// How the governor of another disk, which needs it too, has found whether cgroups have the controller.
fn found_by_another(state: &StateFile, boot: &str, path: &Path) -> Option<String> {
    let others = state.others();
    let others = others.iter().filter_map(|text| serde_json::from_str::<Found>(text).ok());
    let mut changes = others.filter(|other| other.boot == boot).flat_map(|other| other.changes);
    changes.find_map(|change| match change {
        Change::Setting { path: other, kind: Kind::Controller, found } if other == path => {
            Some(found)
        }
        _ => None,
    })
}

impl Change {
    /// Whether a governor of another disk puts it back later.
    fn is_needed_by_another(&self, state: &StateFile, boot: &str) -> bool {
        matches!(self, Self::Setting { path, kind: Kind::Controller, .. }
            if found_by_another(state, boot, path).is_some())
    }

    fn name(&self) -> String {
        match self {
            Self::Setting { path, .. } | Self::Directory { path, .. } => path.display().to_string(),
            Self::Process { pid, .. } => format!("process {pid}"),
        }
    }
}

/// When a process began, in ticks since the boot, according to its `stat`.
pub(crate) fn started_at(stat: &str) -> Option<u64> {
    // The name of a process may contain any characters.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

fn start_of(files: &impl Files, pid: u32) -> io::Result<Option<u64>> {
    let stat = files.read(&Path::new("/proc").join(pid.to_string()).join("stat"))?;
    Ok(started_at(&stat))
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error())
}

/// The sequence number of a disk. A loop device keeps its settings when its file is replaced.
fn sequence(files: &impl Files, disk: &str) -> String {
    if disk.starts_with("loop") {
        return String::new();
    }
    trimmed(files, &Path::new("/sys/block").join(disk).join("diskseq"))
}

fn trimmed(files: &impl Files, path: &Path) -> String {
    files.read(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
