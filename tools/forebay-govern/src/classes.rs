//! Classes: cgroups, or processes with a pattern in their titles, each with a weight.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use forebay_block::Machine;

use crate::changes::started_at;
use crate::error::GovernError;
use crate::governed::Governed;
use crate::hierarchy::cgroup_name;

/// The highest weight of a cgroup.
const WEIGHT_MAX: u32 = 10_000;
const NAME_LEN_MAX: usize = 64;
/// What the cgroups that a governor makes begin with.
const PREFIX: &str = "governed-";

/// A class: `NAME=CGROUP:WEIGHT` or `NAME=process:PATTERN:WEIGHT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    /// Its name.
    pub name: String,
    source: Source,
    weight: u32,
}

/// The source of a class's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A cgroup, as a path below the root.
    Cgroup(PathBuf),
    /// Processes with this pattern in their titles, which are moved into a cgroup.
    Processes(String),
}

/// Checks the name of a class.
///
/// # Errors
/// The text is not a valid name.
pub fn class_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=NAME_LEN_MAX).contains(&text.len()) && text.chars().all(allowed) {
        return Ok(text.to_owned());
    }
    Err(String::from("expected 1 to 64 letters, digits, and characters of _.-"))
}

impl FromStr for ClassSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}` is not a class; expected NAME=CGROUP:WEIGHT or NAME=process:PATTERN:WEIGHT"
            )
        };
        let (name, rest) = text.split_once('=').ok_or_else(expected)?;
        let (of, weight) = rest.rsplit_once(':').ok_or_else(expected)?;
        let weight = weight.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        let weight = weight
            .ok_or_else(|| format!("the weight in `{text}` is not from 1 to {WEIGHT_MAX}"))?;
        let source = match of.strip_prefix("process:") {
            Some("") => return Err(expected()),
            Some(pattern) => Source::Processes(pattern.into()),
            None => Source::Cgroup(cgroup_name(of)?),
        };
        Ok(Self { name: class_name(name)?, source, weight })
    }
}

impl fmt::Display for ClassSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, source, weight } = self;
        match source {
            Source::Cgroup(path) => {
                write!(f, "{name}: weight {weight} for the cgroup {}", path.display())
            }
            Source::Processes(pattern) => {
                write!(f, "{name}: weight {weight} for processes with `{pattern}` in their titles")
            }
        }
    }
}

/// A class of a governed disk.
#[derive(Debug)]
pub(crate) struct Class {
    spec: ClassSpec,
    /// Its cgroup.
    path: PathBuf,
    /// The inode of its cgroup, which identifies it among cgroups of the same name. `None` while there is
    /// no cgroup.
    inode: Option<u64>,
}

impl Class {
    pub(crate) fn new(spec: ClassSpec, governed: &Governed) -> Self {
        let path = match &spec.source {
            Source::Cgroup(path) => governed.root.join(path),
            Source::Processes(_) => {
                governed.root.join(format!("{PREFIX}{}-{}", governed.plan.disk.name, spec.name))
            }
        };
        Self { spec, path, inode: None }
    }

    /// Whether requests of a cgroup, a path below the root, are of this class.
    pub(crate) fn has(&self, root: &Path, cgroup: &str) -> bool {
        let own = self.path.strip_prefix(root).unwrap_or(&self.path);
        Path::new(cgroup).starts_with(own)
    }

    /// Sets the weight of its cgroup if that was created since the last call. Returns a message if
    /// something changed.
    pub(crate) fn refresh(
        &mut self,
        governed: &mut Governed,
    ) -> Result<Option<String>, GovernError> {
        if let Source::Processes(pattern) = &self.spec.source {
            if self.inode.is_none() {
                governed.changes.make(&self.path, false)?;
            }
            move_processes(governed, pattern, &self.path)?;
        }
        let now = fs::symlink_metadata(&self.path).ok().filter(fs::Metadata::is_dir);
        let now = now.map(|found| found.ino());
        if now == self.inode {
            return Ok(None);
        }
        self.inode = now;
        let (name, weight, path) = (&self.spec.name, self.spec.weight, self.path.display());
        if now.is_none() {
            return Ok(Some(format!("{name}: the cgroup {path} does not exist now")));
        }
        match governed.set_weight(&self.path, weight) {
            // The cgroup was removed in the meantime.
            Err(_) if !self.path.exists() => {}
            done => done?,
        }
        Ok(Some(format!("{name}: weight {weight} for {path}")))
    }
}

/// Moves all processes with `pattern` in their titles into a cgroup.
fn move_processes(governed: &mut Governed, pattern: &str, to: &Path) -> Result<(), GovernError> {
    for (process, cgroup) in processes(governed.machine, pattern) {
        let from = governed.root.join(cgroup);
        governed.changes.move_process(process, &from, to)?;
    }
    Ok(())
}

/// The processes with `pattern` in their titles that are in no class yet: their numbers, when they
/// began, and their cgroups. A process that fits two classes stays in the first.
fn processes(machine: &Machine, pattern: &str) -> Vec<((u32, u64), String)> {
    // the title of a governor, and of who started it, has the pattern in an argument
    let is_named =
        |title: &str| title.contains(pattern) && !title.contains(&format!("process:{pattern}"));
    let find = |name: String| {
        let pid = name.parse::<u32>().ok()?;
        let text = |file: &str| machine.text(format!("proc/{pid}/{file}")).unwrap_or_default();
        if !is_named(&text("cmdline").replace('\0', " ")) {
            return None;
        }
        let cgroups = text("cgroup");
        let own = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let started = started_at(&text("stat"))?;
        (!own.starts_with(PREFIX)).then(|| ((pid, started), own.to_owned()))
    };
    machine.names("proc").into_iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_cgroups_or_processes() {
        let class: ClassSpec = "db=system.slice/pg.service:1000".parse().unwrap();
        assert_eq!(class.source, Source::Cgroup("system.slice/pg.service".into()));
        assert_eq!((class.name.as_str(), class.weight), ("db", 1000));
        let class: ClassSpec = "wal=process:postgres: walsender:50".parse().unwrap();
        assert_eq!(class.source, Source::Processes("postgres: walsender".into()));
    }

    #[test]
    fn processes_that_are_in_a_class_and_governors_stay_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, title, cgroup) in [
            (41, "pg_basebackup\0-D\0/data", "5:memory:/\n0::/a/b\n"),
            (42, "pg_basebackup", "0::/governed-sdb-backup\n"),
            (43, "sudo\0forebay\0govern\0--class\0backup=process:pg_basebackup:50", "0::/\n"),
            (44, "tar", "0::/\n"),
        ] {
            let dir = dir.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&dir).unwrap();
            let stat = format!("{pid} (a) b) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 777 0\n");
            for (file, text) in [("cmdline", title), ("cgroup", cgroup), ("stat", &stat)] {
                fs::write(dir.join(file), text).unwrap();
            }
        }
        let found = processes(&Machine::new(dir.path()), "pg_basebackup");
        assert_eq!(found, [((41, 777), String::from("a/b"))]);
    }

    #[test]
    fn errors_of_invalid_classes_name_the_reason() {
        for (text, words) in [
            ("db", "expected NAME=CGROUP"),
            ("db=a", "expected NAME=CGROUP"),
            ("db=a:0", "from 1 to 10000"),
            ("db=a:x", "from 1 to 10000"),
            ("db=a/../b:1", "is not a cgroup"),
            ("db=process::1", "expected NAME="),
            ("d b=a:1", "1 to 64 letters"),
        ] {
            let said = text.parse::<ClassSpec>().unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn class_names_are_those_of_directories() {
        let longest = "x".repeat(64);
        for name in ["backup", "a.b_c-9", ".", &longest] {
            assert_eq!(class_name(name).as_deref(), Ok(name));
        }
        for name in ["", "a/b", "ä", "a b", &"x".repeat(65)] {
            assert!(class_name(name).is_err(), "{name}");
        }
    }
}
