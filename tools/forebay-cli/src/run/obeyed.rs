//! What on a machine obeys weights and priorities of I/O.

use std::path::Path;

use forebay_block::Machine;

/// A disk with queues of its own.
struct Disk {
    name: String,
    /// `MAJ:MIN`.
    number: String,
    scheduler: String,
}

/// Which disks obey nothing that was asked for, one line each for weights and priorities, with what to do;
/// of `chosen`, or of all disks where none is chosen. `root` is that of cgroup v2.
pub(super) fn unobeyed(
    machine: &Machine,
    root: Option<&Path>,
    chosen: &[String],
    asks_priority: bool,
) -> Vec<String> {
    let is_chosen = |disk: &Disk| chosen.is_empty() || chosen.contains(&disk.name);
    let disks: Vec<Disk> = disks(machine).filter(is_chosen).collect();
    let names = |obeys: &dyn Fn(&Disk) -> bool| {
        let names = disks.iter().filter(|disk| !obeys(disk)).map(|disk| disk.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let mut said = Vec::new();
    if let Some(root) = root {
        let qos = machine.text(root.join("io.cost.qos")).unwrap_or_default();
        let names = names(&|disk| disk.scheduler == "bfq" || has_io_cost(&qos, &disk.number));
        if !names.is_empty() {
            said.push(format!(
                "the weight has no effect on {names}, where neither io.cost nor BFQ is on: turn \
                 on io.cost with `forebay govern`, or with the lines of `forebay info --format \
                 io.cost`"
            ));
        }
    }
    let names = names(&|disk| matches!(disk.scheduler.as_str(), "bfq" | "mq-deadline"));
    if asks_priority && !names.is_empty() {
        said.push(format!(
            "the priority has no effect on {names}: echo mq-deadline \
             >/sys/block/DISK/queue/scheduler"
        ));
    }
    let known: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    for name in chosen.iter().filter(|name| !known.contains(&name.as_str())) {
        said.push(format!("unknown disk {name}; use a name from /sys/block, such as sda"));
    }
    said
}

fn disks(machine: &Machine) -> impl Iterator<Item = Disk> {
    machine.names("sys/block").into_iter().filter_map(|name| {
        let dir = Path::new("sys/block").join(&name);
        // what has no queues of requests, no medium, or disks below it is none
        let has_queues = machine.has(dir.join("mq"));
        let is_empty = machine.number(dir.join("size")).unwrap_or(0) == 0;
        if !has_queues || is_empty || !machine.names(dir.join("slaves")).is_empty() {
            return None;
        }
        let number = machine.text(dir.join("dev"))?;
        let schedulers = machine.text(dir.join("queue/scheduler")).unwrap_or_default();
        let chosen = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let scheduler = chosen.map_or(String::new(), |(chosen, _)| chosen.to_owned());
        Some(Disk { name, number, scheduler })
    })
}

/// Whether io.cost is on for a disk, by the text of `io.cost.qos`.
fn has_io_cost(qos: &str, number: &str) -> bool {
    qos.lines().any(|line| {
        let mut words = line.split(' ');
        words.next() == Some(number) && words.any(|word| word == "enable=1")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_disk_that_obeys_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for (name, number, size, scheduler) in [
            ("sda", "8:0", 100, "[none] mq-deadline bfq"),
            ("sdb", "8:16", 100, "none mq-deadline [bfq]"),
            ("sdc", "8:32", 100, "none [mq-deadline] bfq"),
            ("sdd", "8:48", 100, "[none] mq-deadline"),
            ("loop0", "7:0", 0, "[none]"),
        ] {
            let disk = dir.path().join("sys/block").join(name);
            fs::create_dir_all(disk.join("mq/0")).unwrap();
            fs::create_dir_all(disk.join("queue")).unwrap();
            fs::write(disk.join("dev"), number).unwrap();
            fs::write(disk.join("size"), size.to_string()).unwrap();
            fs::write(disk.join("queue/scheduler"), scheduler).unwrap();
        }
        fs::create_dir_all(dir.path().join("cg")).unwrap();
        let qos = "8:0 enable=1 ctrl=user min=80.00\n8:48 enable=0 ctrl=auto\n";
        fs::write(dir.path().join("cg/io.cost.qos"), qos).unwrap();
        let machine = Machine::new(dir.path());
        let root = Some(Path::new("cg"));
        let none: &[String] = &[];
        let said = unobeyed(&machine, root, none, true);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("the weight has no effect on sdc, sdd,"), "{said:?}");
        assert!(said[1].contains("the priority has no effect on sda, sdd:"), "{said:?}");
        let of = |name: &str, asks| unobeyed(&machine, root, &[name.to_owned()], asks);
        assert!(of("sda", false).is_empty() && of("sdb", true).is_empty());
        assert!(of("sdx", false)[0].contains("unknown disk sdx"));
        assert_eq!(unobeyed(&machine, None, none, false), Vec::<String>::new());
    }
}
