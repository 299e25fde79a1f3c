//! A disk of the machine, by the kernel's counters.

use forebay_block::{DeviceNumber, DiskStat, IostatDisk, Machine};

use crate::metrics::MemberTraffic;

/// The traffic of a disk since the last reading.
pub(super) enum Reading {
    /// Bytes read, written and discarded.
    Traffic([u64; 3]),
    /// The reason why the counters are not known.
    Unavailable(String),
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) disk: IostatDisk,
    last: Option<DiskStat>,
    members: Vec<Member>,
}

/// A member of a striped array.
#[derive(Debug)]
struct Member {
    number: DeviceNumber,
    last: Option<DiskStat>,
    traffic: MemberTraffic,
}

impl Member {
    fn new(machine: &Machine, disk: &IostatDisk) -> Self {
        let traffic = MemberTraffic { member: disk.name.clone(), in_flight_ms: 0 };
        Self { number: disk.number, last: DiskStat::of(machine, disk.number), traffic }
    }

    fn read(&mut self, machine: &Machine) {
        let now = DiskStat::of(machine, self.number);
        if let (Some(now), Some(last)) = (now, self.last) {
            self.traffic.in_flight_ms += now.in_flight_ms_since(&last);
        }
        self.last = now;
    }
}

impl Device {
    /// Starts to count the traffic of a disk.
    pub(super) fn new(machine: &Machine, disk: IostatDisk) -> Self {
        let last = DiskStat::of(machine, disk.number);
        let members = disk.members.iter().map(|member| Member::new(machine, member)).collect();
        Self { disk, last, members }
    }

    /// The members of a striped array, with the time for which requests were in flight on each.
    /// Empty for other disks.
    pub(super) fn members(&self) -> impl Iterator<Item = &MemberTraffic> {
        self.members.iter().map(|member| &member.traffic)
    }

    pub(super) fn read(&mut self, machine: &Machine) -> Reading {
        self.members.iter_mut().for_each(|member| member.read(machine));
        let IostatDisk { name, number, .. } = &self.disk;
        let Some(stat) = DiskStat::of(machine, *number) else {
            self.last = None;
            return Reading::Unavailable(format!("the disk {name} is gone"));
        };
        // A device that was gone is a new one.
        let done = self.last.replace(stat).map_or([0; 3], |last| stat.since(&last));
        let is_off = || machine.number(format!("sys/dev/block/{number}/queue/iostats")) == Some(0);
        if done == [0; 3] && is_off() {
            return Reading::Unavailable(format!(
                "the kernel does not count the I/O of {name}: write 1 into \
                 /sys/block/{name}/queue/iostats"
            ));
        }
        Reading::Traffic(done)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn stat(root: &Path, written: u64) {
        let text = format!("0 0 0 0 0 0 {written} 0 0 0 0 0 0 0 0 0 0");
        write(root, "sys/dev/block/7:1/stat", &text);
    }

    fn done(device: &mut Device, machine: &Machine) -> Result<u64, String> {
        match device.read(machine) {
            Reading::Traffic([_, written, _]) => Ok(written / 512),
            Reading::Unavailable(why) => Err(why),
        }
    }

    #[test]
    fn a_disk_that_vanishes_is_said_to_and_counts_from_where_another_begins() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let machine = Machine::new(root);
        let number = "7:1".parse().unwrap();
        stat(root, 100);
        let mut device =
            Device::new(&machine, IostatDisk { name: "loop1".into(), number, members: vec![] });
        stat(root, 150);
        assert_eq!(done(&mut device, &machine), Ok(50));
        fs::remove_file(root.join("sys/dev/block/7:1/stat")).unwrap();
        assert_eq!(done(&mut device, &machine), Err(String::from("the disk loop1 is gone")));
        stat(root, 9_000);
        assert_eq!(done(&mut device, &machine), Ok(0), "nothing is known of before");
        stat(root, 9_007);
        assert_eq!(done(&mut device, &machine), Ok(7));
        stat(root, 3);
        assert_eq!(done(&mut device, &machine), Ok(0), "another one between two looks");
    }

    #[test]
    fn members_of_an_array_are_counted_each() {
        let dir = tempfile::tempdir().unwrap();
        let in_flight = |number: &str, ms: u64| {
            let text = format!("0 0 0 0 0 0 0 0 0 0 {ms} 0 0 0 0");
            write(dir.path(), &format!("sys/dev/block/{number}/stat"), &text);
        };
        ["8:0", "8:16", "9:0"].into_iter().for_each(|number| in_flight(number, 7));
        let machine = Machine::new(dir.path());
        let disk = |name: &str, number: &str, members| IostatDisk {
            name: name.into(),
            number: number.parse().unwrap(),
            members,
        };
        let members = vec![disk("sda", "8:0", vec![]), disk("sdb", "8:16", vec![])];
        let mut device = Device::new(&machine, disk("md0", "9:0", members));
        in_flight("8:0", 107);
        device.read(&machine);
        in_flight("8:16", 17);
        device.read(&machine);
        let found: Vec<_> =
            device.members().map(|of| (of.member.as_str(), of.in_flight_ms)).collect();
        assert_eq!(found, [("sda", 100), ("sdb", 10)]);
    }

    #[test]
    fn a_disk_whose_counters_are_switched_off_is_not_one_that_does_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(dir.path());
        stat(dir.path(), 100);
        write(dir.path(), "sys/dev/block/7:1/queue/iostats", "0\n");
        let disk =
            IostatDisk { name: "loop1".into(), number: "7:1".parse().unwrap(), members: vec![] };
        let mut device = Device::new(&machine, disk);
        assert!(
            done(&mut device, &machine).unwrap_err().contains("/sys/block/loop1/queue/iostats")
        );
        write(dir.path(), "sys/dev/block/7:1/queue/iostats", "1\n");
        assert_eq!(done(&mut device, &machine), Ok(0));
    }
}
