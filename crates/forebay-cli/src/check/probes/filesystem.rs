//! Whether the directory is on a disk of this machine at all.

use super::super::finding::Finding;
use super::super::subject::Subject;

const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", "hugetlbfs"];
const NETWORKS: [&str; 10] =
    ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "glusterfs", "lustre", "afs"];

pub(super) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(mount) = &subject.mount else {
        return vec![Finding::unseen("how it is mounted: /proc/self/mountinfo does not say")];
    };
    let kind = mount.kind.as_str();
    let mut findings = Vec::new();
    if IN_MEMORY.contains(&kind) {
        findings.push(
            Finding::error(format!("{kind} keeps files in memory; there is no disk to schedule"))
                .mend("name a directory on a disk"),
        );
    } else if NETWORKS.contains(&kind) {
        findings.push(
            Finding::error(format!("{kind} is the disk of another machine ({})", mount.source))
                .why("what its disk does, and who else uses it, cannot be seen from here")
                .mend("name a directory on a disk of this machine, or run this on the server"),
        );
    } else if kind == "overlay" {
        findings.push(
            Finding::warning("an overlay, as containers have it; its disk cannot be seen")
                .why("the first write to a file of the image copies the whole file")
                .mend("keep the data on a volume, and name its directory"),
        );
    } else if kind.starts_with("fuse") && kind != "fuseblk" {
        findings.push(
            Finding::warning(format!("{kind}: a program answers, not the kernel"))
                .why("it has queues and latencies of its own, which no one can see")
                .mend("name a directory on a disk"),
        );
    } else if subject.device.is_none() {
        let number = subject.calls.device;
        findings.push(Finding::unseen(format!("the disk: /sys knows no device {number}")));
    } else if mount.has("ro") {
        findings.push(
            Finding::error("mounted read-only")
                .mend(format!("sudo mount -o remount,rw {}", subject.mount_point())),
        );
    } else {
        findings.push(Finding::fine(format!("{kind}, on a disk of this machine")));
    }
    findings.extend(below_loop(subject));
    findings
}

fn below_loop(subject: &Subject<'_>) -> Vec<Finding> {
    let files = subject.disks();
    let files = files.iter().filter_map(|disk| Some((&disk.name, disk.loop_file()?)));
    let say = |(name, file): (&String, &str)| {
        let parent = file.rsplit_once('/').map_or("/", |(parent, _)| parent);
        Finding::note(format!("{name} is the file {file}, not a disk"))
            .why("what is said here of the device is not said of the disk that holds the file")
            .mend(format!("forebay check {}", if parent.is_empty() { "/" } else { parent }))
    };
    files.map(say).collect()
}
