//! The hierarchy of cgroup v2 with the io controller.

use std::path::{Component, Path, PathBuf};

use forebay_block::{Machine, Mount};

use crate::error::GovernError;

/// The root of cgroup v2 with the io controller.
///
/// # Errors
/// No cgroup v2 is mounted, or it does not have the io controller. The message says what to do.
pub fn root_of_cgroups(machine: &Machine) -> Result<PathBuf, GovernError> {
    let mountinfo = machine.mountinfo();
    let mount = Mount::all(&mountinfo).find(|mount| mount.kind == "cgroup2").ok_or_else(|| {
        GovernError::Missing(
            "no cgroup v2 is mounted, so I/O has no weights: mount -t cgroup2 none \
             /sys/fs/cgroup/unified"
                .into(),
        )
    })?;
    let root = mount.point;
    if has_controller(machine, &root, "io") {
        return Ok(root);
    }
    let v1 = Mount::all(&mountinfo).any(|mount| mount.kind == "cgroup" && mount.has("blkio"));
    Err(GovernError::Missing(if v1 {
        "the io controller is bound to cgroup v1, which has no weight for io.cost: start the kernel \
         with cgroup_no_v1=blkio"
            .into()
    } else {
        format!(
            "the io controller is not in {}/cgroup.controllers: run it outside of the container, or \
             where systemd manages this one, with Delegate=io in a drop-in of its unit",
            root.display()
        )
    }))
}

/// Whether a cgroup may use a controller.
pub(crate) fn has_controller(machine: &Machine, cgroup: &Path, controller: &str) -> bool {
    let path = cgroup.join("cgroup.controllers");
    let all = machine.text(path.strip_prefix("/").unwrap_or(&path)).unwrap_or_default();
    all.split(' ').any(|name| name == controller)
}

/// The path of a cgroup below the root, which must not contain `.` or `..`.
pub(crate) fn cgroup_name(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text.trim_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if text.is_empty() || path.as_os_str().is_empty() || !is_plain || text.contains("//") {
        return Err(format!(
            "`{text}` is not a cgroup; expected a path below the root, such as \
             system.slice/postgresql.service"
        ));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_names_below_the_root() {
        for (text, path) in [("a", "a"), ("/a/b.slice/", "a/b.slice"), ("a b", "a b")] {
            assert_eq!(cgroup_name(text).as_deref(), Ok(Path::new(path)));
        }
        for text in ["", "/", "..", "a/../b", "./a", "a//b"] {
            assert!(cgroup_name(text).is_err(), "{text}");
        }
    }
}
