//! A disk of the machine, as the kernel counts what it does.

use forebay_block::{BlockDevice, CountedDisk, DeviceNumber, DiskStat, Machine};

use crate::metrics::MemberTraffic;

/// What it has done since the last look.
pub(super) enum Look {
    /// Bytes read, written and discarded.
    Done([u64; 3]),
    /// Nothing is known, and why.
    Unknown(String),
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) disk: CountedDisk,
    last: Option<DiskStat>,
    members: Vec<Member>,
}

/// A member of an array whose chunks lie on each member in turn.
#[derive(Debug)]
struct Member {
    number: DeviceNumber,
    last: Option<DiskStat>,
    traffic: MemberTraffic,
}

impl Member {
    fn new(machine: &Machine, device: &BlockDevice) -> Self {
        let traffic = MemberTraffic { member: device.name.clone(), in_flight_ms: 0 };
        Self { number: device.number, last: DiskStat::of(machine, device.number), traffic }
    }

    fn look(&mut self, machine: &Machine) {
        let now = DiskStat::of(machine, self.number);
        if let (Some(now), Some(last)) = (now, self.last) {
            self.traffic.in_flight_ms += now.in_flight_ms_since(&last);
        }
        self.last = now;
    }
}

impl Device {
    /// What it does from now on.
    pub(super) fn new(machine: &Machine, disk: CountedDisk) -> Self {
        let last = DiskStat::of(machine, disk.number);
        let device = BlockDevice::find(machine, disk.number);
        let members = device.iter().flat_map(|device| device.striped_members(machine));
        let members = members.map(|member| Member::new(machine, member)).collect();
        Self { disk, last, members }
    }

    /// For how long requests were in flight on the members of an array whose chunks lie on each of
    /// them in turn; nothing for other disks.
    pub(super) fn members(&self) -> impl Iterator<Item = &MemberTraffic> {
        self.members.iter().map(|member| &member.traffic)
    }

    pub(super) fn look(&mut self, machine: &Machine) -> Look {
        self.members.iter_mut().for_each(|member| member.look(machine));
        let CountedDisk { name, number } = &self.disk;
        let Some(stat) = DiskStat::of(machine, *number) else {
            self.last = None;
            return Look::Unknown(format!("the disk {name} is gone"));
        };
        // One that was gone is another one.
        let done = self.last.replace(stat).map_or([0; 3], |last| stat.since(&last));
        let is_off = || machine.number(format!("sys/dev/block/{number}/queue/iostats")) == Some(0);
        if done == [0; 3] && is_off() {
            return Look::Unknown(format!(
                "the kernel counts nothing of {name}: write 1 into /sys/block/{name}/queue/iostats"
            ));
        }
        Look::Done(done)
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
        match device.look(machine) {
            Look::Done([_, written, _]) => Ok(written / 512),
            Look::Unknown(why) => Err(why),
        }
    }

    #[test]
    fn a_disk_that_vanishes_is_said_to_and_counts_from_where_another_begins() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let machine = Machine::new(root);
        let number = "7:1".parse().unwrap();
        stat(root, 100);
        let mut device = Device::new(&machine, CountedDisk { name: "loop1".into(), number });
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
    fn members_of_a_striped_array_are_counted_and_those_of_a_mirror_are_not() {
        for (level, counted) in [("raid0", &["sda", "sdb"][..]), ("raid1", &[])] {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path();
            for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("md0", "9:0")] {
                write(root, &format!("sys/devices/{name}/dev"), number);
                let link = root.join("sys/dev/block").join(number);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink(format!("../../devices/{name}"), link).unwrap();
            }
            fs::create_dir_all(root.join("sys/devices/md0/slaves")).unwrap();
            for name in ["sda", "sdb"] {
                let link = root.join("sys/devices/md0/slaves").join(name);
                std::os::unix::fs::symlink(format!("../../{name}"), link).unwrap();
            }
            write(root, "sys/devices/md0/md/level", level);
            write(root, "sys/devices/md0/md/chunk_size", "524288\n");
            write(root, "sys/devices/md0/md/raid_disks", "2\n");
            let in_flight = |name: &str, ms: u64| {
                let text = format!("0 0 0 0 0 0 0 0 0 0 {ms} 0 0 0 0");
                write(root, &format!("sys/devices/{name}/stat"), &text);
            };
            ["sda", "sdb", "md0"].into_iter().for_each(|name| in_flight(name, 7));
            let machine = Machine::new(root.canonicalize().unwrap());
            let disk = CountedDisk { name: "md0".into(), number: "9:0".parse().unwrap() };
            let mut device = Device::new(&machine, disk);
            in_flight("sda", 107);
            device.look(&machine);
            in_flight("sdb", 17);
            device.look(&machine);
            let found: Vec<_> = device.members().collect();
            assert_eq!(found.iter().map(|of| of.member.as_str()).collect::<Vec<_>>(), counted);
            let times: Vec<u64> = found.iter().map(|of| of.in_flight_ms).collect();
            assert_eq!(times, [100, 10][..counted.len()]);
        }
    }

    #[test]
    fn a_disk_whose_counters_are_switched_off_is_not_one_that_does_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(dir.path());
        stat(dir.path(), 100);
        write(dir.path(), "sys/dev/block/7:1/queue/iostats", "0\n");
        let disk = CountedDisk { name: "loop1".into(), number: "7:1".parse().unwrap() };
        let mut device = Device::new(&machine, disk);
        assert!(
            done(&mut device, &machine).unwrap_err().contains("/sys/block/loop1/queue/iostats")
        );
        write(dir.path(), "sys/dev/block/7:1/queue/iostats", "1\n");
        assert_eq!(done(&mut device, &machine), Ok(0));
    }
}
