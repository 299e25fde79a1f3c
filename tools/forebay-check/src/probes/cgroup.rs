//! What the kernel holds this process to.

use std::path::{Path, PathBuf};

use forebay_block::{DeviceNumber, Machine, Mount};

use crate::finding::Finding;
use crate::sources::LIMITS_MEASURED;
use crate::subject::Subject;

/// The files of limits of the first version.
const FILES_V1: [&str; 4] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.write_iops_device",
];

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(device) = &subject.device else { return Vec::new() };
    let machine = subject.machine;
    let Some(groups) = machine.text("proc/self/cgroup") else {
        let what = "limits on this process: there is no /proc/self/cgroup";
        return subject.unknown("proc/self/cgroup", what);
    };
    let numbers: Vec<DeviceNumber> =
        device.all().into_iter().map(|each| each.disk_number).collect();
    let dirs: Vec<(PathBuf, bool)> = groups.lines().flat_map(|line| dirs(machine, line)).collect();
    if dirs.is_empty() {
        return vec![Finding::unknown("limits on this process: no cgroups are mounted")];
    }
    let (mut findings, mut all_read) = (Vec::new(), true);
    for (dir, unified) in &dirs {
        let files: &[&str] = if *unified { &["io.max"] } else { &FILES_V1 };
        for file in files {
            let path = dir.join(file);
            let text = machine.text(&path).unwrap_or_default();
            all_read &= !machine.hides(&path);
            findings.extend(text.lines().filter_map(|line| limit(line, &numbers, &path)));
        }
    }
    if findings.is_empty() && all_read {
        findings.push(Finding::fine("no cgroup limits this process on the disk"));
    }
    findings
}

/// The directories that hold for a line of `/proc/self/cgroup`, outwards, and whether they are of
/// the second version.
fn dirs(machine: &Machine, line: &str) -> Vec<(PathBuf, bool)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let unified = controllers.is_empty();
    if !unified && !controllers.split(',').any(|controller| controller == "blkio") {
        return Vec::new();
    }
    let fits = |mount: &Mount| match unified {
        true => mount.kind == "cgroup2",
        false => mount.kind == "cgroup" && mount.has("blkio"),
    };
    let Some(mount) = Mount::all(&machine.mountinfo()).find(fits) else { return Vec::new() };
    // in a container the path may begin above what is mounted
    let inside = Path::new(path).strip_prefix(&mount.root).unwrap_or_else(|_| Path::new(""));
    let point = mount.point.strip_prefix("/").unwrap_or(&mount.point).to_owned();
    inside.ancestors().map(|dir| (point.join(dir), unified)).collect()
}

/// What a line such as `259:0 rbps=max wbps=1048576 riops=max wiops=max` or `259:0 2000` limits.
fn limit(line: &str, numbers: &[DeviceNumber], path: &Path) -> Option<Finding> {
    let (number, limits) = line.split_once(' ')?;
    if !number.parse().is_ok_and(|number| numbers.contains(&number)) {
        return None;
    }
    let limits: Vec<&str> = limits.split(' ').filter(|limit| !limit.ends_with("=max")).collect();
    let file = path.file_name()?.to_str()?;
    let free = if file == "io.max" {
        format!("{number} rbps=max wbps=max riops=max wiops=max")
    } else {
        format!("{number} 0")
    };
    let path = format!("/{}", path.display());
    (!limits.is_empty()).then(|| {
        Finding::warning(format!("the kernel limits this process: {} in {path}", limits.join(", ")))
            .why(
                "it holds requests back in batches of 100 ms that no scheduler above it sees: \
                 at a limit of 2000 reads per second half of them took 0.7 ms, and 1 % took 106 ms",
            )
            .source(LIMITS_MEASURED)
            .fix(format!(
                "echo '{free}' | sudo tee {path}   # or give forebay the limit as the disk's rate"
            ))
    })
}
