//! Mounts whose files say that they are elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use forebay::properties::Properties;
use forebay::{DEFAULT_DISK, Unlisted, UnlistedError};

use crate::loop_mount::{Lab, disk_of, listing, mount, system};

const MIB: u64 = 1 << 20;

/// An overlay with a file `low` in its lower layer, and where its upper directory is.
pub(crate) fn overlay(lab: &Lab) -> (PathBuf, PathBuf) {
    let on = lab.mounted("ext4", &lab.device, "disk");
    let (lower, merged) = (lab.dir("lower"), lab.dir("merged"));
    let (upper, work) = (on.join("upper"), on.join("work"));
    fs::create_dir(&upper).unwrap();
    fs::create_dir(&work).unwrap();
    fs::write(lower.join("low"), "low").unwrap();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    mount(&["-t", "overlay", "-o", &options, "overlay"], &merged);
    (merged, on)
}

pub(crate) fn a_file_of_an_overlay_is_on_the_disk_of_the_upper_directory() {
    let lab = Lab::new(32 * MIB);
    let (merged, on) = overlay(&lab);
    let scheduler = listing(&on).build().unwrap();
    assert_eq!(disk_of(&scheduler, &merged.join("new")), "disk");
    let low = fs::File::open(merged.join("low")).unwrap();
    assert_eq!(scheduler.disk_of_file(&low).unwrap().name(), "disk");
    assert_eq!(scheduler.disk_of(&merged.join("low")).unwrap().name(), "disk");
    assert_eq!(scheduler.snapshot().unlisted_opens, 0);
}

pub(crate) fn a_reload_has_the_files_of_an_overlay_that_were_looked_up_before() {
    let lab = Lab::new(32 * MIB);
    let (merged, on) = overlay(&lab);
    // nothing of this is a disk's
    let elsewhere = lab.dir("elsewhere");
    mount(&["-t", "tmpfs", "none"], &elsewhere);
    let scheduler = listing(elsewhere).build().unwrap();
    let low = fs::File::open(merged.join("low")).unwrap();
    for opens in 1..=3 {
        assert_eq!(scheduler.disk_of_file(&low).unwrap().name(), DEFAULT_DISK);
        assert_eq!(scheduler.snapshot().unlisted_opens, opens);
    }
    let text = format!(
        "disks:\n  - mountpoint: {}\n    read_iops: 1000\n    write_iops: 1000\n    \
         read_bandwidth: 100000000\n    write_bandwidth: 100000000\n",
        on.display()
    );
    scheduler.reload(&Properties::parse("test", &text).unwrap()).unwrap();
    for _ in 0..3 {
        assert_eq!(scheduler.disk_of_file(&low).unwrap().name(), on.to_str().unwrap());
    }
    assert_eq!(scheduler.snapshot().unlisted_opens, 3);
}

pub(crate) fn an_overlay_whose_upper_directory_is_hidden_is_unlisted() {
    let lab = Lab::new(32 * MIB);
    let (merged, on) = overlay(&lab);
    let scheduler = listing(&on).build().unwrap();
    let refusing = listing(&on).unlisted(Unlisted::Error).build().unwrap();
    let on_disk = listing(&on).unlisted(Unlisted::Disk("disk".into())).build().unwrap();
    // as in a container, which does not see the directories of its host
    mount(&["-t", "tmpfs", "none"], &on);
    let file = merged.join("new");
    assert_eq!(disk_of(&scheduler, &file), DEFAULT_DISK);
    assert_eq!(scheduler.snapshot().unlisted_opens, 2);
    assert_eq!(disk_of(&on_disk, &file), "disk");
    for error in [
        refusing.disk_of(&file).unwrap_err(),
        refusing.disk_of_file(fs::File::open(&file).unwrap()).unwrap_err(),
    ] {
        let advice = format!("add one with `mountpoint: {}`", merged.display());
        assert!(error.to_string().contains(&advice), "{error}");
        let unlisted = error.get_ref().and_then(|error| error.downcast_ref::<UnlistedError>());
        assert_eq!(unlisted.unwrap().path, file);
    }
    assert_eq!(refusing.snapshot().unlisted_opens, 2);
}

pub(crate) fn a_listed_overlay_has_the_files_of_all_its_layers() {
    let lab = Lab::new(32 * MIB);
    let (merged, _) = overlay(&lab);
    let scheduler = listing(&merged).build().unwrap();
    let low = fs::File::open(merged.join("low")).unwrap();
    assert_eq!(scheduler.disk_of_file(&low).unwrap().name(), "disk");
    assert_eq!(disk_of(&scheduler, &merged.join("new")), "disk");
}

pub(crate) fn a_btrfs_subvolume_is_on_the_disk_of_its_device() {
    let lab = Lab::new(256 * MIB);
    let on = lab.mounted("btrfs", &lab.device, "disk");
    let volume = on.join("volume");
    system("btrfs", &["subvolume", "create", volume.to_str().unwrap()]);
    for listed in [on.as_path(), volume.as_path(), Path::new(&lab.device)] {
        let scheduler = listing(listed).build().unwrap();
        assert_eq!(disk_of(&scheduler, &on.join("file")), "disk", "{}", listed.display());
        assert_eq!(disk_of(&scheduler, &volume.join("file")), "disk", "{}", listed.display());
    }
}

pub(crate) fn a_bind_mount_is_on_the_disk_of_what_it_shows() {
    let lab = Lab::new(32 * MIB);
    let on = lab.mounted("ext4", &lab.device, "disk");
    let shown = lab.dir("shown");
    fs::create_dir(on.join("below")).unwrap();
    mount(&["--bind", on.join("below").to_str().unwrap()], &shown);
    fs::write(lab.dir("file").join("one"), "").unwrap();
    let one = lab.dir("file").join("one");
    fs::write(on.join("one"), "").unwrap();
    mount(&["--bind", on.join("one").to_str().unwrap()], &one);
    for listed in [&on, &shown] {
        let scheduler = listing(listed).build().unwrap();
        assert_eq!(disk_of(&scheduler, &shown.join("new")), "disk");
        assert_eq!(disk_of(&scheduler, &one), "disk");
    }
}

pub(crate) fn partitions_are_on_their_disk_and_share_its_budget() {
    let lab = Lab::new(64 * MIB);
    // not by a table, which a kernel may not know how to read
    for (part, start) in [("1", "2048"), ("2", "65536")] {
        system("addpart", &[&lab.device, part, start, "61440"]);
    }
    let part = |number: u32| format!("{}p{number}", lab.device);
    let (one, two) = (lab.mounted("ext4", &part(1), "one"), lab.mounted("ext4", &part(2), "two"));
    for listed in [Path::new(&lab.device), &one, &two, Path::new(&part(1))] {
        let scheduler = listing(listed).build().unwrap();
        assert_eq!(disk_of(&scheduler, &one.join("file")), "disk", "{}", listed.display());
        assert_eq!(disk_of(&scheduler, &two.join("file")), "disk", "{}", listed.display());
    }
}
