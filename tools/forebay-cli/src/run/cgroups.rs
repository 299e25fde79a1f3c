//! The cgroups of classes: `forebay-CLASS` below the root of cgroup v2, and in it one for each command;
//! where systemd runs, a scope of its own for each.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use forebay_block::Machine;
use forebay_govern::{is_gone, root_of_cgroups};
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// What the cgroups of classes begin with.
const PREFIX: &str = "forebay-";
/// The attribute of cgroups of classes that this program has made, which alone it removes.
const MADE: &str = "user.forebay";
/// Attempts to make a class again that another command removes at the same moment.
const TRIES_MAX: u32 = 8;
/// So deep are those of users.
const DEPTH_MAX: u32 = 5;

/// The hierarchy of cgroup v2, and where this process is in it.
pub(super) struct Cgroups {
    pub(super) root: PathBuf,
    own: PathBuf,
}

/// The cgroup of a command, in which this process is too, until it leaves.
pub(super) struct Group {
    pub(super) path: PathBuf,
    /// Where this process was before.
    before: PathBuf,
    class: PathBuf,
}

/// A class, and what its processes have got.
pub(super) struct Class {
    pub(super) name: String,
    /// `io.weight`.
    pub(super) weight: String,
    pub(super) processes: Vec<String>,
    pub(super) usage: Usage,
}

/// What the processes of a cgroup have read, written and waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) read: u64,
    pub(super) written: u64,
    /// Microseconds in which one of them at least waited for a disk; `None` without pressure figures.
    pub(super) waited_us: Option<u64>,
}

impl Cgroups {
    /// The hierarchy of this machine that has the io controller, or what is missing and what to do.
    pub(super) fn find(machine: &Machine) -> Result<Self, String> {
        let root = root_of_cgroups(machine).map_err(|error| error.to_string())?;
        let own = machine.text("proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        Ok(Self { own: root.join(own), root })
    }

    /// A command that replaces `command`: systemd runs it in a scope of `class`.
    pub(super) fn scope(
        &self,
        machine: &Machine,
        class: &str,
        weight: u32,
        command: &[OsString],
    ) -> Result<Vec<OsString>, String> {
        let is_root = rustix::process::geteuid().is_root();
        let controllers =
            machine.text(below(&self.own.join("cgroup.controllers"))).unwrap_or_default();
        if !is_root && !controllers.split(' ').any(|name| name == "io") {
            return Err("systemd does not give the io controller to users: put [Service] and \
                        Delegate=cpu io memory pids into \
                        /etc/systemd/system/user@.service.d/delegate.conf, and log in again"
                .into());
        }
        let mut all: Vec<OsString> =
            ["systemd-run", "--scope", "--quiet", "--collect"].map(Into::into).into();
        all.extend((!is_root).then(|| "--user".into()));
        all.push(format!("--unit={PREFIX}{class}-{}", process::id()).into());
        all.extend([format!("--property=IOWeight={weight}").into(), "--".into()]);
        all.extend_from_slice(command);
        Ok(all)
    }

    /// Moves this process into a new cgroup of `class`, whose weight that sets.
    pub(super) fn enter(&self, class: &str, weight: u32, pid: u32) -> Result<Group, String> {
        let path = self.root.join(format!("{PREFIX}{class}"));
        let group = path.join(pid.to_string());
        let make = || {
            delegate(&self.root)?;
            make_class(&path)?;
            delegate(&path)?;
            write(&path.join("io.weight"), &weight.to_string())?;
            // An earlier command with this number may have left one, with a process in it.
            fs::create_dir_all(&group)?;
            write(&group.join("cgroup.procs"), &pid.to_string())
        };
        // Another command may end between two steps, and remove the class.
        let mut made = make();
        for _ in 0..TRIES_MAX {
            match &made {
                Err(error) if is_gone(error) => made = make(),
                _ => break,
            }
        }
        made.map_err(|error| {
            let _ = fs::remove_dir(&group);
            remove_class(&path);
            format!(
                "cannot make the cgroup {}: {error}; run it as root, or delegate the io controller \
                 to this user: Delegate=io in a drop-in of user@.service",
                group.display()
            )
        })?;
        Ok(Group { path: group, before: self.own.clone(), class: path })
    }

    /// Removes what commands have left behind that were killed, or whose last process has ended since.
    pub(super) fn prune(&self, machine: &Machine) {
        for class in found(machine, &self.root, 0).into_iter().filter(|class| is_made(class)) {
            for name in machine.names(below(&class)) {
                let is_left = name.parse::<u32>().is_ok() && !machine.has(format!("proc/{name}"));
                if is_left {
                    // with a process in it, it stays
                    let _ = fs::remove_dir(class.join(&name));
                }
            }
            remove_class(&class);
        }
    }

    /// All classes.
    pub(super) fn list(&self, machine: &Machine) -> Vec<Class> {
        let of = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.to_owned();
            let weight = machine.text(below(&path.join("io.weight"))).unwrap_or_default();
            let weight = weight.lines().next().unwrap_or_default().trim_start_matches("default ");
            let (weight, usage) = (weight.to_owned(), Usage::of(machine, &path));
            let groups = machine.names(below(&path)).into_iter().map(|name| path.join(name));
            let groups = groups.chain([path.clone()]);
            let processes = groups.flat_map(|group| processes(machine, &group)).collect();
            Some(Class { name, weight, processes, usage })
        };
        found(machine, &self.root, DEPTH_MAX).into_iter().filter_map(of).collect()
    }
}

impl Group {
    /// Leaves it, and removes it; the processes that are still in it, if there are any.
    pub(super) fn leave(self, machine: &Machine, pid: u32) -> Vec<String> {
        // where that fails, this process is the last one in it, and a later command removes it
        let _ = write(&self.before.join("cgroup.procs"), &pid.to_string());
        let left = processes(machine, &self.path);
        let _ = fs::remove_dir(&self.path);
        remove_class(&self.class);
        left
    }
}

impl Usage {
    /// Of the cgroup at `path`.
    pub(super) fn of(machine: &Machine, path: &Path) -> Self {
        let stat = machine.text(below(&path.join("io.stat"))).unwrap_or_default();
        let sum = |key: &str| {
            let fields = stat.split_whitespace().filter_map(|field| field.strip_prefix(key));
            fields.filter_map(|value| value.parse::<u64>().ok()).sum()
        };
        let pressure = machine.text(below(&path.join("io.pressure"))).unwrap_or_default();
        let some = pressure.lines().find(|line| line.starts_with("some "));
        let waited_us = some.and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
        Self { read: sum("rbytes="), written: sum("wbytes="), waited_us }
    }
}

/// The cgroups of classes below `dir`, not deeper than `depth` cgroups in it.
fn found(machine: &Machine, dir: &Path, depth: u32) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for name in machine.names(below(dir)) {
        let path = dir.join(&name);
        if !machine.has(below(&path.join("cgroup.procs"))) {
            continue;
        }
        if name.starts_with(PREFIX) {
            all.push(path);
        } else if depth > 0 {
            all.extend(found(machine, &path, depth - 1));
        }
    }
    all
}

/// A path as the machine takes it, below its root.
fn below(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Makes the cgroup of a class, if there is none yet. A kernel without such attributes (before 5.7)
/// leaves it without one, and so it stays.
fn make_class(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => {
            let _ = setxattr(path, MADE, b"run", XattrFlags::CREATE);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether this program made the cgroup, and not another program or an administrator.
fn is_made(class: &Path) -> bool {
    getxattr(class, MADE, &mut [0u8; 16]).is_ok()
}

/// Removes the cgroup of a class that has neither processes nor cgroups.
fn remove_class(class: &Path) {
    if is_made(class) {
        let _ = fs::remove_dir(class);
    }
}

/// Lets the children of a cgroup have weights.
fn delegate(path: &Path) -> io::Result<()> {
    let file = path.join("cgroup.subtree_control");
    let has = fs::read_to_string(&file)?;
    if has.split_whitespace().any(|name| name == "io") { Ok(()) } else { write(&file, "+io") }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
}

/// The processes in a cgroup, each as its number and name.
fn processes(machine: &Machine, group: &Path) -> Vec<String> {
    let all = machine.text(below(&group.join("cgroup.procs"))).unwrap_or_default();
    let name = |pid: &str| machine.text(format!("proc/{pid}/comm")).unwrap_or_default();
    all.lines().map(|pid| format!("{pid} {}", name(pid)).trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine::new(dir.path().canonicalize().unwrap());
        (dir, machine)
    }

    const V1: &str = "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn missing_requirements_are_reported_with_advice() {
        let none = "22 1 259:1 / / rw - ext4 /dev/vda rw\n";
        for (mountinfo, controllers, words) in [
            (none.to_owned(), "", "no cgroup v2 is mounted"),
            (format!("{V1}{V2}"), "hugetlb", "cgroup_no_v1=blkio"),
            (V2.to_owned(), "cpu memory", "Delegate=io"),
        ] {
            let (_dir, machine) = machine(&[
                ("proc/self/mountinfo", &mountinfo),
                ("sys/fs/cgroup/unified/cgroup.controllers", controllers),
            ]);
            let said = Cgroups::find(&machine).err().unwrap();
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_cgroup_of_the_same_number_that_was_left_is_used() {
        let (dir, machine) = machine(&[
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/unified/cgroup.controllers", "io"),
            ("cg/cgroup.subtree_control", "io"),
            ("cg/forebay-backup/cgroup.subtree_control", "io"),
            ("cg/forebay-backup/io.weight", ""),
            ("cg/forebay-backup/70/cgroup.procs", ""),
        ]);
        let cgroups = Cgroups { root: dir.path().join("cg"), ..Cgroups::find(&machine).unwrap() };
        let group = cgroups.enter("backup", 50, 70).unwrap();
        assert_eq!(fs::read_to_string(group.path.join("cgroup.procs")).unwrap(), "70");
    }

    #[test]
    fn cgroups_of_others_with_such_a_name_are_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let cgroups = Cgroups { root: root.clone(), own: root.clone() };
        // of a process that has ended
        let group = |name: &str| root.join(format!("{PREFIX}{name}")).join("4000000000");
        for name in ["own", "others"] {
            let class = group(name).parent().unwrap().to_owned();
            if name == "own" {
                make_class(&class).unwrap();
            }
            fs::create_dir_all(group(name)).unwrap();
            fs::write(class.join("cgroup.procs"), "").unwrap();
            make_class(&class).unwrap();
            // some file systems have no such attributes
            assert!(name == "own" || !is_made(&class));
        }
        cgroups.prune(&Machine::new("/"));
        assert!(group("others").exists());
        assert_eq!(group("own").exists(), !is_made(group("own").parent().unwrap()));
    }

    #[test]
    fn classes_are_listed_with_what_they_have_got() {
        let class = "sys/fs/cgroup/unified/forebay-backup";
        let in_class = |name: &str| format!("{class}/{name}");
        let (_dir, machine) = machine(&[
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "5:memory:/\n0::/shell\n"),
            ("proc/71/comm", "tar\n"),
            ("sys/fs/cgroup/unified/cgroup.controllers", "io memory"),
            (&in_class("io.weight"), "default 50\n8:0 70\n"),
            (&in_class("io.stat"), "8:0 rbytes=100 wbytes=7 rios=1\n8:16 rbytes=20 wbytes=1\n"),
            (&in_class("io.pressure"), "some avg10=0.00 total=1500\nfull avg10=0.00 total=3\n"),
            (&in_class("cgroup.procs"), ""),
            (&in_class("70/cgroup.procs"), "71\n"),
            ("sys/fs/cgroup/unified/user.slice/cgroup.procs", ""),
            ("sys/fs/cgroup/unified/user.slice/forebay-a-9.scope/cgroup.procs", "71\n"),
        ]);
        let cgroups = Cgroups::find(&machine).unwrap();
        assert_eq!(cgroups.own, Path::new("/sys/fs/cgroup/unified/shell"));
        let classes = cgroups.list(&machine);
        let [Class { name, weight, processes, usage }, scope] = classes.as_slice() else {
            panic!()
        };
        assert_eq!(
            (scope.name.as_str(), scope.processes.as_slice()),
            ("a-9.scope", &["71 tar".to_owned()][..])
        );
        assert_eq!((name.as_str(), weight.as_str()), ("backup", "50"));
        assert_eq!(processes, &["71 tar"]);
        assert_eq!(*usage, Usage { read: 120, written: 8, waited_us: Some(1500) });
    }
}
