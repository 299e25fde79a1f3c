//! Files that the process has mapped, and whose pages are in the page cache.

use forebay_block::{BlockDevice, DeviceNumber, IostatDisk, Machine};

/// The path of a mapped file on one of these disks: I/O through the mapping is unscheduled.
/// Its device is looked up by number, since opening the file would end record locks of the process.
pub(super) fn mapped_file(machine: &Machine, disks: &[&IostatDisk]) -> Option<String> {
    let text = machine.text("proc/self/maps")?;
    let mut others = Vec::new();
    text.lines().find_map(|line| {
        let (number, path) = shared_file(line)?;
        if others.contains(&number) {
            return None;
        }
        let device = BlockDevice::find(machine, number);
        let is_on = |of: &BlockDevice| disks.iter().any(|disk| disk.number == of.disk_number);
        if device.is_some_and(|device| device.all().into_iter().any(is_on)) {
            return Some(path.to_owned());
        }
        others.push(number);
        None
    })
}

/// The device and the path in a line of `maps`, if it is a shared mapping. Private mappings, such
/// as those of libraries, are left out.
fn shared_file(line: &str) -> Option<(DeviceNumber, &str)> {
    let path = line.get(line.find(" /")? + 1..)?;
    let mut words = line.split_whitespace().skip(1);
    let is_shared = words.next()?.ends_with('s');
    let (major, minor) = words.nth(1)?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let number = DeviceNumber { major: number(major)?, minor: number(minor)? };
    is_shared.then_some((number, path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_found_that_is_shared_and_on_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for number in ["7:1", "254:16"] {
            write(&format!("sys/dev/block/{number}/dev"), number);
        }
        let disk = |number: &str| {
            let number = number.parse().unwrap();
            IostatDisk { name: String::from("disk"), number, members: Vec::new() }
        };
        let machine = Machine::new(dir.path());
        let found = |number| mapped_file(&machine, &[&disk(number)]);
        assert_eq!(found("7:1"), None);
        let maps = "55d0-55d1 r-xp 00002000 07:01 3 /usr/bin/program\n\
            7f00-7f01 rw-s 00000000 00:01 9 /memfd:a\n\
            7f10-7f11 rw-p 00000000 00:00 0 \n\
            7f20-7f21 r--s 00000000 fe:10 4 /data/of another\n\
            7f30-7f31 r--s 00000000 07:01 5 /data/table 1\n";
        write("proc/self/maps", maps);
        assert_eq!(found("7:1").as_deref(), Some("/data/table 1"));
        assert_eq!(found("254:16").as_deref(), Some("/data/of another"));
        assert_eq!(found("8:0"), None);
    }
}
