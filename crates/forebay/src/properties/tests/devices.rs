//! Look-ups of the disk of a path.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::samples::measured;
use crate::properties::{Device, DiskProperties, Properties, PropertiesError};

fn properties(disks: &[&[&str]]) -> Properties {
    let disk = |mountpoints: &&[&str]| DiskProperties {
        mountpoints: mountpoints.iter().map(PathBuf::from).collect(),
        ..measured()
    };
    Properties { disks: disks.iter().map(disk).collect() }
}

#[test]
fn a_directory_is_on_the_disk_of_its_device() {
    let dir = tempfile::tempdir().unwrap();
    let nested = dir.path().join("a");
    std::fs::create_dir(&nested).unwrap();
    let here = dir.path().to_str().unwrap();

    let properties = properties(&[&["/proc"], &["/proc/self", here]]);
    // Two disks claim the device of /proc, and only one claims that of the directory.
    assert_eq!(properties.disk_for(&nested).unwrap(), &properties.disks[1]);
    let error = properties.disk_for(Path::new("/proc/self")).unwrap_err();
    assert!(matches!(&error, PropertiesError::CoveredTwice { device, .. }
        if *device == Device::of(Path::new("/proc")).unwrap()));
    assert!(error.to_string().starts_with("the mountpoints `/proc`, `/proc/self` of two disks"));
}

#[test]
fn a_directory_that_no_mountpoint_covers_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let device = Device::of(dir.path()).unwrap();
    let error = properties(&[&["/proc"], &["/proc/self"]]).disk_for(dir.path()).unwrap_err();
    let PropertiesError::NotCovered { mounted_at: Some(root), .. } = &error else {
        panic!("expected another error than {error}");
    };
    assert_eq!(Device::of(root).unwrap(), device);
    let (dir, root) = (dir.path().display(), root.display());
    assert_eq!(
        error.to_string(),
        format!(
            "the io-properties do not cover `{dir}`: their mountpoints are `/proc`, `/proc/self`; \
             add an entry whose mountpoint is on the same device as `{dir}` (device {device}, \
             mounted at {root})"
        )
    );
}

#[test]
fn a_path_that_is_not_there_is_an_error_that_names_it() {
    let error = properties(&[&["/"]]).disk_for(Path::new("/not/there")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot look up `/not/there`: No such file or directory (os error 2); create it, or name \
         a directory that exists"
    );
    let error = properties(&[&["/", "/not/there"]]).disk_for(Path::new("/")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot look up the mountpoint `/not/there` of the io-properties: No such file or \
         directory (os error 2); mount it, or remove it from the file"
    );
}

/// Some block device of this machine, if there is any.
fn block_device() -> io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir("/dev")? {
        let entry = entry?;
        if entry.file_type()?.is_block_device() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

#[test]
fn a_block_device_stands_for_itself() {
    let Some(device) = block_device().unwrap() else {
        return;
    };
    let properties = properties(&[&["/proc"], &[device.to_str().unwrap()]]);
    assert_eq!(properties.disk_for(&device).unwrap(), &properties.disks[1]);
    assert_ne!(Device::of(&device).unwrap(), Device::of(Path::new("/dev")).unwrap());
}
