//! Whether the directory is on a disk of this machine at all.

use std::path::Path;

use forebay_block::{Backing, Mount};

use crate::finding::Finding;
use crate::subject::{Subject, quoted};

pub(crate) fn probe(subject: &Subject<'_>) -> Vec<Finding> {
    let Some(mount) = &subject.mount else {
        let what = "how it is mounted: /proc/self/mountinfo does not say";
        return subject.unknown("proc/self/mountinfo", what);
    };
    let mut findings = vec![match Backing::of(&mount.kind) {
        Backing::Memory => in_memory(mount),
        Backing::Network => elsewhere(mount),
        Backing::Kernel => of_the_kernel(mount),
        Backing::Program => answered_by_program(mount),
        Backing::Disk if mount.kind == "overlay" => overlay(),
        Backing::Disk => on_disk(subject, mount),
    }];
    findings.extend(below_loop(subject));
    findings
}

fn in_memory(mount: &Mount) -> Finding {
    let kind = &mount.kind;
    Finding::error(format!("{kind} keeps files in memory; there is no disk to schedule"))
        .fix("name a directory on a disk")
}

fn of_the_kernel(mount: &Mount) -> Finding {
    let kind = &mount.kind;
    Finding::error(format!("{kind} has only the kernel's own files; no others can be created"))
        .fix("name a directory on a disk")
}

fn elsewhere(Mount { kind, source, .. }: &Mount) -> Finding {
    Finding::error(format!("{kind} is the disk of another machine ({source})"))
        .why("what its disk does, and who else uses it, cannot be seen from here")
        .fix("name a directory on a disk of this machine, or run this on the server")
}

fn answered_by_program(Mount { kind, source, .. }: &Mount) -> Finding {
    let beneath = Path::new(source).is_absolute() && !source.starts_with("/dev/");
    Finding::warning(format!("{kind}: a program answers, not the kernel"))
        .why(
            "it has queues and latencies of its own, which no one can see, and direct I/O may end \
             in its cache instead of at a disk",
        )
        .fix(if beneath {
            format!("forebay check {}   # the directory beneath", quoted(source))
        } else {
            "name a directory on a disk".into()
        })
}

fn overlay() -> Finding {
    Finding::warning("an overlay, as containers have it; its disk cannot be seen")
        .why("the first write to a file of the image copies the whole file")
        .fix("keep the data on a volume, and name its directory")
}

fn on_disk(subject: &Subject<'_>, mount: &Mount) -> Finding {
    if subject.device.is_none() {
        let number = subject.environment.device;
        return Finding::unknown(format!("the disk: /sys knows no device {number}"));
    }
    if mount.has("ro") {
        return Finding::error("mounted read-only")
            .fix(format!("sudo mount -o remount,rw {}", subject.mount_point()));
    }
    Finding::fine(format!("{}, on a disk of this machine", mount.kind))
}

fn below_loop(subject: &Subject<'_>) -> Vec<Finding> {
    let files = subject.disks();
    let files = files.iter().filter_map(|disk| Some((&disk.name, disk.loop_file()?)));
    let say = |(name, file): (&String, &str)| {
        let parent = file.rsplit_once('/').map_or("/", |(parent, _)| parent);
        Finding::note(format!("{name} is the file {file}, not a disk"))
            .why("findings are about this device, and not about the disk that holds the file")
            .fix(format!("forebay check {}", quoted(if parent.is_empty() { "/" } else { parent })))
    };
    files.map(say).collect()
}
